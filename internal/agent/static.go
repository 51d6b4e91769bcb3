package agent

import (
	"heddle/internal/agent/connection"
	"heddle/internal/agent/staticports"
	"heddle/internal/plan"
)

// newStaticPorts returns the host's part in static ports.
func newStaticPorts(s *shared, cn *connected, ps *ports, cg *changer, c *connection.Connection) *staticports.Part {
	st := staticports.New(staticports.Host{Loop: s.Loop, Log: s.log, Events: s.events, Complain: s.Complain,
		Document: s.state, Adapters: &s.state.NICs, Save: ps.save, Change: cg.change, Static: ps.isStatic,
		Kept: keeper{ps}.isKept, OnlySwitch: ps.onlySwitch, Port: cn.port, Present: cn.isPresent,
		Waits: func(id plan.PortID) bool {
			w := s.state.WaitOf(id)
			return w != nil && !w.Awake
		},
		Settings: defined{ps}.setting, AnySettings: func() bool { return len(defined{ps}.settings()) > 0 }})
	st.Ask(c)
	return st
}

// isStatic reports whether a port group that controllers hand this host has static ports.
func (ps *ports) isStatic(sw, group string) bool {
	if ps.slice == nil || (keeper{ps}).isKept(sw, group) { // which no controller binds ports of
		return false
	}
	for i := range ps.slice.Switches {
		for k := range ps.slice.Switches[i].PortGroups {
			g := &ps.slice.Switches[i].PortGroups[k]
			if ps.slice.Switches[i].Name == sw && g.Name == group {
				return g.HasStaticPorts()
			}
		}
	}
	return false
}
