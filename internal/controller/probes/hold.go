package probes

import (
	"slices"
	"strings"
	"time"

	"heddle/internal/fabric"
)

// holds says for how long a finding has to last before anybody is told: paths are probed one after the other, so that
// what a fault is shows only after a round.
func holds(f *fabric.Finding) time.Duration {
	switch f.Code {
	case fabric.Bundle, fabric.NoBundle, fabric.Lossy, fabric.Slow, fabric.Apart:
		return fabric.Round + 10*time.Second
	}
	return 0
}

// hold takes findings out of a verdict that have not lasted. The caller holds the lock.
func (h *Hub) hold(v *fabric.Verdict, now time.Time) {
	lasting := map[string]time.Time{}
	v.Findings = slices.DeleteFunc(v.Findings, func(f fabric.Finding) bool {
		key := string(f.Code) + " " + f.Switch + " " + strings.Join(f.Ends, " ") + strings.Join(f.Others, " ")
		since, ok := h.lasting[key]
		if !ok {
			since = now
		}
		lasting[key] = since
		return now.Sub(since) < holds(&f)
	})
	h.lasting = lasting
}
