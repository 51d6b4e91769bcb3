package agent

import (
	"heddle/internal/agent/held"
	"heddle/internal/agent/part"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// newHolding returns the devices of ports and uplinks.
func newHolding(s *shared, cn *connected, ps *ports, rs *records, ef *effect, restoring *held.Restoring,
	parts *part.Table) *held.Part {
	return held.New(held.Host{Reader: s.Reader, Log: s.log, Events: s.events, Agent: s.name, Place: s.place,
		Devices:  func() held.Devices { return s.dev },
		Attached: func(ifindex uint32) bool { return s.kernel.Adopted(ifindex) }, Document: &s.state.Devices,
		Save: func() error { return s.store.Save(s.state) }, Commanded: ef.forCommandNow, Anew: ef.anew,
		Remember: func() func() { before := ps.intent(); return func() { ps.restore(before) } },
		Resets: func(p *plan.Port) []string {
			if !ps.resets(p.ID.Switch, p.PortGroup) {
				return nil
			}
			return ps.reset(p.ID.Name)
		},
		KeepsAddresses: func(port string) bool { return rs.adopted(port) != nil && cn.port(port) != nil },
		Connected:      func() []spec.Port { return s.state.Ports }, VMs: owned{s}.vms, MayTake: owned{s}.mayTake,
		Taken: parts.Taken}, restoring)
}
