package guest

import (
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
