package agent

import (
	"heddle/internal/agent/definition"
	"heddle/internal/agent/locations"
	"heddle/internal/agent/migration"
)

// newLocations returns the host's part in overlay segments.
func newLocations(s *shared, d *definition.Part, st *settler, moves *migration.Part) *locations.Part {
	return locations.New(locations.Host{Reader: s.Reader, Loop: s.Loop, Log: s.log, Events: s.events,
		Complain: s.Complain, Kernel: func() locations.Kernel { return s.kernel }, Defines: d.Defines,
		Wait: s.state.WaitOf, Settle: st.settle, GenerationOf: func(port string) uint64 {
			if n := s.state.NICOf(port); n != nil {
				return moves.GenerationOf(n.VM, n.Adapter)
			}
			return 0
		}})
}
