package guest

import (
	"fmt"

	"heddle/internal/host/qmp"
	"heddle/internal/plan"
)

// Adapters is what QEMU monitors showed of the adapters behind taps (D1, D2), by the monitor's socket. It is not
// safe for use by several goroutines.
type Adapters map[string]Sight

// Take takes in news of monitors.
func (s Adapters) Take(news map[string]Sight) {
	for socket, n := range news {
		s[socket] = n
		if n.equal(Sight{}) {
			delete(s, socket)
		}
	}
}

// Onto adds to a port's fact what its monitor shows of its adapter, and gives why nothing is known though it should be; ""
// otherwise.
func (s Adapters) Onto(p *plan.Port, f *plan.Fact) string {
	shown, ok := s[p.Monitor.Socket]
	if !ok {
		return ""
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
		return ""
	}
	return fmt.Sprintf("what its guest made of the adapter is not known: QEMU monitor %q %s", p.Monitor.Socket, why)
}

// adapter finds the adapter with that id, "" meaning the only one, or says why there is none.
func (s Sight) adapter(nic string) (qmp.RxFilter, string) {
	if nic == "" && len(s.filters) > 1 {
		return qmp.RxFilter{}, "shows several adapters: give the id of the one behind this port as nic"
	}
	for _, f := range s.filters {
		if nic == "" || f.Name == nic {
			return f, ""
		}
	}
	return qmp.RxFilter{}, "does not show the adapter: it must be a virtio-net card, and nic its id"
}
