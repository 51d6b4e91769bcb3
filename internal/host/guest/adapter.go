package guest

import (
	"context"
	"slices"
	"sync"
	"time"

	"heddle/internal/host/qmp"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Adapters are what QEMU monitors showed about the adapters behind taps (D1, D2), by the monitor's socket. It is for
// one goroutine.
type Adapters map[string]Sight

// Take applies news of monitors.
func (s Adapters) Take(news map[string]Sight) {
	for socket, n := range news {
		s[socket] = n
		if n.equal(Sight{}) {
			delete(s, socket)
		}
	}
}

// Onto adds to a port's fact what its monitor shows about its adapter. It returns why nothing is known, if something
// should be.
func (s Adapters) Onto(p *plan.Port, f *plan.Fact) problem.Problem {
	shown, ok := s[p.Monitor.Socket]
	if !ok {
		return problem.Problem{}
	}
	why := shown.why
	if shown.seen {
		var filter qmp.RxFilter
		if filter, why = shown.adapter(p.Monitor.NIC); why == "" {
			f.SeenMAC, f.Promiscuous = plan.MAC(filter.MAC), plan.AsksNo
			if filter.Promiscuous {
				f.Promiscuous = plan.AsksYes
			}
		}
	}
	if why == "" {
		return problem.Problem{}
	}
	return problem.Problem{Code: why, Device: p.Monitor.Socket}
}

// adapter finds the adapter with that id, "" meaning the only one. It returns the problem if there is none.
func (s Sight) adapter(nic string) (qmp.RxFilter, problem.Code) {
	if nic == "" && len(s.filters) > 1 {
		return qmp.RxFilter{}, problem.AdapterAmbiguous
	}
	for _, f := range s.filters {
		if nic == "" || f.Name == nic {
			return f, ""
		}
	}
	return qmp.RxFilter{}, problem.AdapterUnknown
}

// served are the adapters of the ports that a monitor serves. No other lock is taken under its own: the loop sets them
// while it holds the lock of all monitors.
type served struct {
	mu   sync.Mutex
	nics []string // sorted
}

// become sets them, and reports whether they are others than before.
func (s *served) become(nics []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := slices.Equal(s.nics, nics)
	s.nics = nics
	return !same
}

// lacked reports whether an adapter that a port has is not among those that the monitor shows.
func (s *served) lacked(filters []qmp.RxFilter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.nics, func(nic string) bool {
		_, why := Sight{filters: filters}.adapter(nic)
		return why == problem.AdapterUnknown
	})
}

// filters reports the adapters' filters until the connection ends.
func (w *watch) filters(ctx context.Context, c *qmp.Client, show shows) (served bool, err error) {
	refresh := time.NewTimer(monitorRefresh)
	defer refresh.Stop()
	w.look()
	for retry := lackedRetry; ; {
		select {
		case <-ctx.Done():
			return served, ctx.Err()
		case <-c.Done():
			return served, c.Err()
		case <-w.changed:
			retry = lackedRetry
		case <-refresh.C:
		}
		asking, cancel := context.WithTimeout(ctx, monitorTimeout)
		filters, err := c.RxFilters(asking)
		cancel()
		if err != nil {
			return served, err
		}
		show(false, func(s *Sight) { s.seen, s.filters, s.why = true, filters, "" })
		served = true
		next := monitorRefresh
		if w.served.lacked(filters) {
			next, retry = retry, min(2*retry, monitorRefresh)
		}
		refresh.Reset(next)
		if !pause(ctx, monitorPause) {
			return served, ctx.Err()
		}
	}
}
