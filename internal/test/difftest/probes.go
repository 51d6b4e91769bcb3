package difftest

import "encoding/binary"

// healthChecks rolls which switches have a health check: one of two, on every third host.
func (g *generator) healthChecks() {
	for i := range g.state.Config.Switches {
		g.state.Config.Switches[i].HealthCheck = g.probes.IntN(2) == 0
	}
}

// healthProbe is the type and the payload of a frame that looks like a probe between hosts, or nearly, behind up to
// nine tags more.
func (g *generator) healthProbe() (b []byte) {
	for range max(0, g.probes.IntN(20)-10) {
		tag := uint16(0x8100)
		if g.probes.IntN(3) == 0 {
			tag = 0x88a8
		}
		b = binary.BigEndian.AppendUint16(b, tag)
		b = binary.BigEndian.AppendUint16(b, uint16(g.probes.IntN(1<<16)))
	}
	kinds := []uint16{0x8922, 0x8922, 0x8922, 0x8923, 0x0800, 0x8100}
	b = binary.BigEndian.AppendUint16(b, kinds[g.probes.IntN(len(kinds))])
	return append(b, []byte("HdlH\x01\x01 and what else a probe has in it, which no rule reads")[:g.probes.IntN(50)]...)
}
