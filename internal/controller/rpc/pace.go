package rpc

import (
	"context"

	"golang.org/x/time/rate"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of what a host's reports cost, which are judged as a whole at each change. A host sends a few a second, so
// that one with 10,000 ports stays below a quarter of them. Who sends more is read more slowly: an agent puts what
// happens meanwhile into one report.
const (
	// paceRate is how many bytes of reports of a host are judged in a second, on average; paceBurst how many at once.
	paceRate  = 16 << 20
	paceBurst = 64 << 20
	// paceLeast is what a report costs at least, in bytes.
	paceLeast = 64 << 10
)

// pace bounds how often a host reports.
type pace struct{ *rate.Limiter }

func newPace() pace { return pace{rate.NewLimiter(paceRate, paceBurst)} }

// wait waits for the turn of a message, if it is a report.
func (p pace) wait(ctx context.Context, f *fleet, h *host, m *controllerv1.FollowSliceRequest) error {
	if m.GetReport() == nil && m.GetChange() == nil {
		return nil
	}
	f.mu.Lock()
	cost := h.report.size()
	f.mu.Unlock()
	return p.WaitN(ctx, min(paceBurst, max(paceLeast, cost)))
}
