package agent

import (
	"heddle/internal/agent/connection"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/staticports"
	"heddle/internal/plan"
)

// newStaticPorts returns the host's part in static ports.
func newStaticPorts(s *shared, d *definition.Part, cn *connected, ps *ports, cg *changer,
	c *connection.Connection) *staticports.Part {
	st := staticports.New(staticports.Host{Loop: s.Loop, Log: s.log, Events: s.events, Complain: s.Complain,
		Document: s.state, Adapters: &s.state.NICs, Save: ps.save, Change: cg.change, Static: d.IsStatic,
		Kept: d.IsKept, OnlySwitch: ps.onlySwitch, Port: cn.port, Present: cn.isPresent,
		Waits: func(id plan.PortID) bool {
			w := s.state.WaitOf(id)
			return w != nil && !w.Awake
		},
		Settings: d.Setting, AnySettings: d.AnySettings})
	st.Ask(c)
	return st
}
