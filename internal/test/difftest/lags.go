package difftest

import (
	"fmt"

	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

var hashes = []spec.LAGHash{spec.HashMAC, spec.HashIP, spec.HashIPVLAN, spec.HashIPPort, spec.HashIPPortVLAN, ""}

// lags bundles some of a switch's uplinks, where it has more than one.
func (g *generator) lags(s *spec.Switch) (list []spec.LAG) {
	if len(s.Uplinks) < 2 || g.chance(55) {
		return nil
	}
	left := g.Perm(len(s.Uplinks))
	for i := 0; len(left) > 0 && i < 2 && (i == 0 || g.chance(40)); i++ {
		n := min(len(left), 1+g.IntN(4))
		lag := spec.LAG{Name: fmt.Sprintf("lag%d", i+1), Hash: pick(g, hashes...)}
		for _, k := range left[:n] {
			lag.Uplinks = append(lag.Uplinks, s.Uplinks[k].Name)
		}
		left = left[n:]
		list = append(list, lag)
	}
	return list
}

// changeLAG rolls the hash or the order of a LAG's members.
func (g *generator) changeLAG(s *spec.Switch) {
	if len(s.LAGs) == 0 {
		return
	}
	lag := &s.LAGs[g.IntN(len(s.LAGs))]
	if g.chance(50) {
		lag.Hash = pick(g, hashes...)
		return
	}
	g.Shuffle(len(lag.Uplinks), func(i, j int) { lag.Uplinks[i], lag.Uplinks[j] = lag.Uplinks[j], lag.Uplinks[i] })
}

// entries names what the teaming lists of a switch can have.
func entries(s *spec.Switch) []string {
	names := s.Standalone()
	for i := range s.LAGs {
		names = append(names, s.LAGs[i].Name)
	}
	return names
}

// setTeamFacts rolls what failback and load-based teaming have decided for a port.
func (g *generator) setTeamFacts(m *Member, s *State) {
	m.Resting, m.Assigned = nil, ""
	for i := range s.Config.Switches {
		sw := &s.Config.Switches[i]
		names := entries(sw)
		if sw.Name != m.ID.Switch || len(names) == 0 {
			continue
		}
		for g.chance(30) && len(m.Resting) < len(names) {
			m.Resting = append(m.Resting, pick(g, names...))
		}
		if g.chance(60) {
			m.Assigned = pick(g, names...)
		}
	}
}

// out is why an uplink is not used, "" mostly.
func (g *generator) out(percent int) problem.Code {
	if g.chance(percent) {
		return problem.LACPNotInSync
	}
	return ""
}
