package difftest

import "heddle/internal/spec"

// monitoring rolls what is metered: nothing at all in a part of the cases, and some group and uplink in the others.
func (g *generator) monitoring(c *spec.Config) {
	off := g.meters.IntN(3) == 0
	roll := func() (m spec.Monitoring) {
		on := !off && g.meters.IntN(3) > 0
		m.IPFIX = &on
		all := []spec.Observe{"", spec.ObserveIngress, spec.ObserveEgress, spec.ObserveBoth}
		m.Observe = all[g.meters.IntN(len(all))]
		return m
	}
	for i := range c.Switches {
		s := &c.Switches[i]
		s.IPFIX.SamplingRate = []int{0, 0, 0, 1, 3}[g.meters.IntN(5)]
		for j := range s.PortGroups {
			s.PortGroups[j].Monitoring = roll()
		}
		for j := range s.Uplinks {
			s.Uplinks[j].Monitoring = roll()
		}
	}
}
