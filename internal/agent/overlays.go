package agent

import (
	"slices"

	"heddle/internal/agent/locations"
	"heddle/internal/agent/migration"
	"heddle/internal/spec"
)

// newLocations returns the host's part in overlay segments.
func newLocations(s *shared, ps *ports, st *settler, moves *migration.Part) *locations.Part {
	return locations.New(locations.Host{Reader: s.Reader, Loop: s.Loop, Log: s.log, Events: s.events,
		Complain: s.Complain, Kernel: func() locations.Kernel { return s.kernel }, Defines: ps.isDefined,
		Wait: s.state.WaitOf, Settle: st.settle, GenerationOf: func(port string) uint64 {
			if n := s.state.NICOf(port); n != nil {
				return moves.GenerationOf(n.VM, n.Adapter)
			}
			return 0
		}})
}

// isDefined reports whether controllers define a switch.
func (ps *ports) isDefined(name string) bool {
	return ps.slice != nil && slices.ContainsFunc(ps.slice.Switches, func(s spec.Switch) bool { return s.Name == name })
}
