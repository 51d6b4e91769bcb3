package agent

import (
	"heddle/internal/agent/captures"
	"heddle/internal/uplinks"
)

// capturewatch tells the captures which plan is active.
type capturewatch struct{ *captures.Captures }

// Settled is called in the loop after each reconcile.
func (c capturewatch) Settled(now uplinks.InForce) { c.Planned(now.Plan) }

// Close does nothing: captures end with those who ask for them.
func (c capturewatch) Close() error { return nil }
