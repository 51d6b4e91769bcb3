package difftest

import (
	"encoding/binary"

	"heddle/internal/plan"
)

// sentFrame is a frame that went in lately.
type sentFrame struct {
	at       plan.PortID
	dst, src plan.MAC
	tags     []byte
}

// remembered is the number of latest frames that are answered and reflected.
const remembered = 12

func (g *generator) remember(f sentFrame) {
	if len(g.sent) >= remembered {
		g.sent = g.sent[1:]
	}
	g.sent = append(g.sent, f)
}

// frame makes a frame for a member, from the latest ones or from nothing.
func (g *generator) frame(m *Member) []byte {
	f := sentFrame{at: m.ID, dst: g.destination(m), src: g.source(m), tags: g.tags(m)}
	if len(g.sent) > 0 && g.chance(35) {
		before := pick(g, g.sent...)
		switch g.IntN(4) {
		case 0: // reflected, or seen elsewhere
			f.dst, f.src = before.dst, before.src
		case 1: // answered
			f.dst, f.src = before.src, before.dst
		case 2:
			f.src = before.src
		default:
			f.dst = before.src
		}
		if g.chance(50) {
			f.tags = before.tags
		}
	}
	g.remember(f)
	out := append(append([]byte(nil), f.dst[:]...), f.src[:]...)
	out = append(out, f.tags...)
	return g.size(m, append(out, g.payload()...), len(f.tags)/4)
}

func (g *generator) source(m *Member) plan.MAC {
	switch r := g.IntN(100); {
	case r < 2:
		return plan.MAC{}
	case r < 4:
		return plan.MAC{0x01, 0, 0x5e, 0, 0, 1}
	case r < 35 && m.Number != 0 && !m.SeenMAC.IsZero():
		return m.SeenMAC
	case r < 50:
		if own := g.configured(m.ID); !own.IsZero() {
			return own
		}
		return g.station()
	case r < 62:
		return pick(g, g.macs...)
	}
	return g.station()
}

// configured is the initial MAC of a port, zero for none.
func (g *generator) configured(id plan.PortID) plan.MAC {
	for i := range g.state.Config.Ports {
		if p := &g.state.Config.Ports[i]; p.Name == id.Name && p.Switch == id.Switch && p.MAC != "" {
			return mustMAC(p.MAC)
		}
	}
	return plan.MAC{}
}

// groups are the group destinations that mean something to somebody.
var groups = []plan.MAC{
	{0x01, 0x80, 0xc2, 0, 0, 0x00}, // STP
	{0x01, 0x80, 0xc2, 0, 0, 0x02}, // LACP
	{0x01, 0x80, 0xc2, 0, 0, 0x0e}, // LLDP
	{0x01, 0x80, 0xc2, 0, 0, 0x0f},
	{0x01, 0x80, 0xc2, 0, 0, 0x10},
	{0x01, 0x80, 0xc2, 0, 1, 0x00},
	{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc}, // CDP
	{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd}, // PVST
	{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xce},
}

func (g *generator) destination(m *Member) plan.MAC {
	switch r := g.IntN(100); {
	case r < 1:
		return plan.MAC{}
	case r < 15:
		return plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	case r < 20:
		return pick(g, plan.MAC{0x33, 0x33, 0, 0, 0, 1}, plan.MAC{0x01, 0, 0x5e, 0, 0, 0xfb})
	case r < 25:
		return pick(g, groups...)
	case r < 29 && !m.DeviceMAC.IsZero():
		return m.DeviceMAC
	case r < 65:
		return pick(g, g.macs...)
	}
	return g.station()
}

// tags is the tag stack of a frame: mostly what the port or uplink may send, now and then what it may not.
func (g *generator) tags(m *Member) []byte {
	tag := func(tpid, vid uint16) []byte {
		tci := vid
		if g.chance(40) {
			tci |= uint16(g.IntN(16)) << 12
		}
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, tpid), tci)
	}
	protocol := func() uint16 { return pick[uint16](g, 0x8100, 0x8100, 0x88a8) }
	switch r := g.IntN(100); {
	case r < 40:
		return nil
	case r < 48:
		return tag(protocol(), 0)
	case r < 50:
		return tag(protocol(), 4095)
	case r < 90:
		return tag(protocol(), pick(g, g.vlans...))
	case r < 97:
		return append(tag(protocol(), pick(g, g.vlans...)), tag(protocol(), pick(g, g.vlans...))...)
	}
	three := append(tag(protocol(), pick(g, g.vlans...)), tag(protocol(), 7)...)
	return append(three, tag(protocol(), 8)...)
}

// payload is type and payload of a frame.
func (g *generator) payload() []byte {
	body := make([]byte, 52+g.IntN(30))
	for i := range body {
		body[i] = byte(g.Uint32())
	}
	put := func(t uint16, first ...byte) []byte {
		copy(body, first)
		return append(binary.BigEndian.AppendUint16(nil, t), body...)
	}
	switch g.IntN(9) {
	case 0:
		return put(0x0806, 0, 1, 8, 0, 6, 4, 0, 1) // ARP request
	case 1, 2:
		return put(0x0800, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, pick[byte](g, 6, 17, 1)) // IPv4
	case 3:
		return put(0x0800, 0x45, 0, 0, 40, 0, 1, 0x20, byte(g.IntN(2)), 64, 17) // IPv4 fragment
	case 4:
		return put(0x0800, 0x4f, 0, 0, 200, 0, 1, 0, 0, 64, 6) // IPv4 with options it does not have
	case 5:
		return put(0x86dd, 0x60, 0, 0, 0, 0, 40, pick[byte](g, 6, 17, 58), 64) // IPv6; neighbour discovery
	case 6:
		return put(0x86dd, 0x60, 0, 0, 0, 0, 40, 44, 64) // IPv6 fragment
	case 7:
		return put(pick[uint16](g, 0x88cc, 0x8809, 0x8035, 0x9100, 0x8864)) // LLDP, slow protocols, RARP, an odd tag, PPPoE
	}
	return put(uint16(g.IntN(1536))) // a length
}

// size cuts a frame short or makes it longer: runts of 14 bytes and more, frames at and above an MTU, up to 9 kB.
func (g *generator) size(m *Member, f []byte, tags int) []byte {
	switch r := g.IntN(100); {
	case r < 6:
		return f[:14+g.IntN(min(len(f), 50)-13)]
	case r < 10:
		return f[:min(len(f), 14+4*min(tags, 2)+g.IntN(4))]
	case r < 16:
		mtu := pick(g, 1280, 1400, 1500, 2000, m.MTU)
		return grow(f, 14+4*min(tags, 2)+mtu-1+g.IntN(3))
	case r < 17:
		return grow(f, 8990+g.IntN(40))
	}
	return f
}

func grow(f []byte, n int) []byte {
	for len(f) < n {
		f = append(f, byte(len(f)))
	}
	return f[:n]
}
