package difftest

import (
	"encoding/binary"
	"slices"
	"time"

	"heddle/internal/plan"
)

// sentFrame is a frame that went in lately.
type sentFrame struct {
	at       plan.PortID
	dst, src plan.MAC
	seg      domain
	when     time.Duration
}

// remembered is the number of latest frames that are answered and reflected.
const remembered = 12

func (g *generator) remember(f sentFrame) {
	if len(g.sent) >= remembered {
		g.sent = g.sent[1:]
	}
	g.sent = append(g.sent, f)
}

// frame makes a frame for a member, from the latest ones of its switch or from nothing.
func (g *generator) frame(m *Member) []byte {
	f := sentFrame{at: m.ID, dst: g.destination(m), src: g.source(m), seg: g.domainFor(m.ID)}
	if before, ok := g.before(m.ID.Switch); ok && m.Number == 0 && before.at != m.ID && g.chance(50) {
		f.src = before.src // the physical network sends it back
		if g.chance(60) {
			f.dst = before.dst
		}
		if g.maySend(m.ID, before.seg) {
			f.seg = before.seg
		}
	} else if ok && g.chance(45) {
		switch g.IntN(5) {
		case 0, 1: // reflected, or seen elsewhere
			f.dst, f.src = before.dst, before.src
		case 2: // answered
			f.dst = before.src
			if !before.dst.IsGroup() {
				f.src = before.dst
			}
		case 3:
			f.src = before.src
		default:
			f.dst = before.src
		}
		if g.chance(80) && g.maySend(m.ID, before.seg) {
			f.seg = before.seg
		}
	}
	return g.assemble(m, f)
}

// hostFrame makes a frame of the host's own that leaves by an uplink, or now and then one that is somebody else's and
// passes there.
func (g *generator) hostFrame(m *Member) []byte {
	f := sentFrame{at: m.ID, dst: g.destination(m), src: m.DeviceMAC, seg: g.domainFor(m.ID)}
	if before, ok := g.before(m.ID.Switch); ok && g.chance(50) {
		f.dst = before.src // answered
		if g.maySend(m.ID, before.seg) {
			f.seg = before.seg
		}
	}
	if g.chance(8) {
		f.src = g.source(m)
	}
	return g.assemble(m, f)
}

// assemble writes a frame out, with a payload and a size of its own.
func (g *generator) assemble(m *Member, f sentFrame) []byte {
	f.when = g.clock
	g.remember(f)
	tags := g.tags(m, f.seg)
	out := append(append([]byte(nil), f.dst[:]...), f.src[:]...)
	out = append(out, tags...)
	payload := g.payload()
	if slices.Contains(groups, f.dst) && g.chance(70) { // a type that goes with it, or nearly
		binary.BigEndian.PutUint16(payload, pick[uint16](g, 0x8809, 0x88cc, 0x888e, 0x88f7, 0x8808))
	}
	if g.rare.IntN(100) < 4 {
		payload = g.probe()
	}
	if g.guarded && g.guards.IntN(2) == 0 {
		payload = g.claim(m)
	}
	if g.checked && g.probes.IntN(8) == 0 {
		payload = g.healthProbe()
	}
	return runnable(g.size(m, append(out, payload...), len(tags)/4))
}

// probe is a frame that looks for loops, when its destination is broadcast, or one that is like it.
func (g *generator) probe() []byte {
	b := append([]byte{0x88, 0xb5, 'H', 'd', 'L', 'p'}, make([]byte, 52+g.rare.IntN(8))...)
	switch g.rare.IntN(6) {
	case 0:
		b[5] = 'q' // somebody else's experiment
	case 1:
		b = b[:2+50+g.rare.IntN(8)] // 56 are a whole one
	case 2:
		b[1] = 0xb6
	}
	return b
}

// atTheLimit makes the event that matters a second or an ageing time after one of the latest frames, give or take a
// millisecond: the same source from outside (S91, S92), or a frame to it (S17).
func (g *generator) atTheLimit() (s Step, ok bool) {
	if len(g.sent) == 0 {
		return s, false
	}
	before := pick(g, g.sent...)
	due := before.when + pick(g, time.Second, time.Second, g.aged) + time.Duration(g.IntN(3)-1)*time.Millisecond
	if due < g.clock {
		return s, false
	}
	m := g.member(before)
	if m == nil {
		return s, false
	}
	f := sentFrame{at: m.ID, dst: before.src, src: g.source(m), seg: before.seg}
	if m.Number == 0 && g.chance(70) {
		f.dst, f.src = g.destination(m), before.src
	}
	s.After, g.clock = due-g.clock, due
	s.At, s.Frame = m.ID, g.assemble(m, f)
	return s, true
}

// before is one of the latest frames of a switch.
func (g *generator) before(sw string) (f sentFrame, ok bool) {
	for range 4 {
		if len(g.sent) > 0 {
			if f = pick(g, g.sent...); f.at.Switch == sw {
				return f, true
			}
		}
	}
	return f, false
}

func (g *generator) source(m *Member) plan.MAC {
	if g.bonded && g.kin.IntN(3) == 0 {
		if p := g.relative(m); p != nil {
			return p.InitialMAC
		}
	}
	forging := 60
	if p := g.plan.Port(m.ID); p != nil && !p.Policy.ForgedTransmits.V {
		forging = 15
	}
	switch r := g.IntN(200); {
	case r < 1:
		return plan.MAC{}
	case r < 3:
		return plan.MAC{0x01, 0, 0x5e, 0, 0, 1}
	case m.Number != 0 && g.chance(100-forging):
		if own := g.configured(m.ID); !own.IsZero() && (m.SeenMAC.IsZero() || g.chance(60)) {
			return own
		} else if !m.SeenMAC.IsZero() {
			return m.SeenMAC
		}
	case r < 40:
		return pick(g, g.macs[m.ID.Switch]...)
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
	{0x01, 0x80, 0xc2, 0, 0, 0x01}, // PAUSE
	{0x01, 0x80, 0xc2, 0, 0, 0x02}, // LACP
	{0x01, 0x80, 0xc2, 0, 0, 0x03}, // EAPOL, LLDP
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
		return pick(g, g.macs[m.ID.Switch]...)
	}
	return g.station()
}

// domainFor is a domain that a port or uplink may send in, where a few tries find one.
func (g *generator) domainFor(id plan.PortID) (d domain) {
	for range 6 {
		d = domain{pick[uint16](g, 0x8100, 0x8100, 0x88a8), pick(g, g.vlans...)}
		if d.vid == 0 {
			d = domain{}
		}
		if p := g.plan.Port(id); p != nil && p.Policy.VLAN.V.Mode == plan.VLANAccess {
			d = domain{0x8100, p.Policy.VLAN.V.ID}
		}
		if g.maySend(id, d) {
			break
		}
	}
	return d
}

// maySend reports whether a port or uplink is in a domain.
func (g *generator) maySend(id plan.PortID, d domain) bool {
	if p := g.plan.Port(id); p != nil {
		return member(p.Policy.VLAN.V, d)
	}
	u := g.plan.Uplink(id)
	return u != nil && u.VLANs.Has(d.vid)
}

// tags is the tag stack of a frame: mostly what says its domain, now and then what may not be.
func (g *generator) tags(m *Member, d domain) []byte {
	protocol := func() uint16 { return pick[uint16](g, 0x8100, 0x8100, 0x88a8) }
	p := g.plan.Port(m.ID)
	hidden := p != nil && p.Policy.VLAN.V.Mode != plan.VLANTrunk
	switch r := g.IntN(100); {
	case r < 2:
		return g.tag(protocol(), 4095)
	case r < 6:
		return g.tag(protocol(), pick(g, g.vlans...))
	case r < 8:
		return append(g.tag(protocol(), pick(g, g.vlans...)), g.tag(protocol(), pick(g, g.vlans...))...)
	}
	if d.vid == 0 || hidden {
		if g.chance(15) {
			return g.tag(protocol(), 0)
		}
		return nil
	}
	tags := g.tag(d.protocol, d.vid)
	for g.chance(12) {
		tags = append(tags, g.tag(protocol(), pick(g, g.vlans...))...)
	}
	return tags
}

func (g *generator) tag(tpid, vid uint16) []byte {
	if g.chance(40) {
		vid |= uint16(g.IntN(16)) << 12
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, tpid), vid)
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
	switch g.IntN(15) {
	case 11, 12:
		return g.extended()
	case 13: // IP of a version that its type does not say
		kind := pick[uint16](g, 0x0800, 0x86dd)
		return put(kind, pick[byte](g, 0x45, 0x55, 0x65), 0, 0, 40, 0, 1, 0, 0, 64, pick[byte](g, 6, 17))
	case 14: // IPv4 that ends within layer 4; padding follows
		return put(0x0800, 0x45, 0, 0, byte(20+g.IntN(16)), 0, 1, 0, 0, 64, pick[byte](g, 6, 17, 132, 1, 33, 136))
	case 0:
		return put(0x0806, 0, 1, 8, 0, 6, 4, 0, 1) // ARP request
	case 1, 2:
		return put(0x0800, 0x45, 0, 0, 40, 0, 1, 0, 0, 64, pick[byte](g, 6, 17, 132, 1)) // IPv4
	case 3:
		// IPv4 fragment, or none
		return put(0x0800, 0x45, 0, 0, 40, 0, 1, pick[byte](g, 0x20, 0x20, 0x40, 0x1f, 0), byte(g.IntN(2)), 64, 17)
	case 4:
		return put(0x0800, 0x4f, 0, 0, 200, 0, 1, 0, 0, 64, 6) // IPv4 with options it does not have
	case 5, 9:
		return put(0x86dd, 0x60, 0, 0, 0, 0, 40, pick[byte](g, 6, 17, 132, 58), 64) // IPv6; neighbour discovery
	case 6:
		return put(0x86dd, 0x60, 0, 0, 0, 0, 40, pick[byte](g, 44, 0, 60), 64) // IPv6 fragment, or other extensions
	case 10:
		// IPv4 with options, or a wrong length
		return put(0x0800, 0x40|byte(4+g.IntN(5)), 0, 0, 60, 0, 1, 0, 0, 64, pick[byte](g, 6, 17))
	case 7:
		// LLDP, slow protocols, RARP, an odd tag, PPPoE
		return put(pick[uint16](g, 0x88cc, 0x8809, 0x8035, 0x9100, 0x8864))
	}
	return put(uint16(g.IntN(1536))) // a length
}

// extended is type and payload of an IPv6 packet with extension headers, at times with more than are followed.
func (g *generator) extended() []byte {
	n := 1 + g.IntN(3)
	if g.chance(20) {
		n = 7 + g.IntN(4)
	}
	next, headers := pick[byte](g, 6, 17, 132, 58, 33, 136, 59), []byte(nil)
	for range n {
		number := pick[byte](g, 44, 44, 44, 0, 43, 51, 60, 135, 139, 140)
		headers = append(g.extension(number, next), headers...)
		next = number
	}
	body := []byte{0x60, 0, 0, 0, 0, 0, next, 64}
	body = append(append(g.bytes(body, 32), headers...), g.bytes(nil, g.IntN(24))...)
	binary.BigEndian.PutUint16(body[4:], uint16(len(body)-40-g.IntN(3)*g.IntN(9)))
	return append(binary.BigEndian.AppendUint16(nil, 0x86dd), body...)
}

// extension is an extension header of that number, which some other follows; at times it says a length that it does not
// have.
func (g *generator) extension(number, next byte) []byte {
	h := []byte{next, 0, 0, 0, 0, 0, 0, byte(g.IntN(256))}
	switch {
	case number == 44:
		binary.BigEndian.PutUint16(h[2:], pick[uint16](g, 0, 0, 1, 1, 8, 9))
	case g.chance(10):
		h[1] = byte(g.IntN(4))
	case number != 51 && g.chance(20):
		h[1] = 1
		h = append(h, make([]byte, 8)...)
	}
	return h
}

func (g *generator) bytes(to []byte, n int) []byte {
	for range n {
		to = append(to, byte(g.Uint32()))
	}
	return to
}

// size cuts a frame short or makes it longer: runts of 14 bytes and more, frames at and above an MTU, up to 9 kB.
func (g *generator) size(m *Member, f []byte, tags int) []byte {
	switch r := g.IntN(100); {
	case r < 3:
		return f[:14+g.IntN(min(len(f), 50)-13)]
	case r < 6:
		return f[:min(len(f), 14+4*min(tags, 2)+g.IntN(4))]
	case r < 12:
		mtu := pick(g, 1280, 1400, 1500, 2000, m.MTU)
		return grow(f, 14+4*min(tags, 2)+mtu-1+g.IntN(3))
	case r < 13:
		return grow(f, 8990+g.IntN(40))
	}
	return f
}

// patterned is where the bytes of a long frame become zeros: what the kernel takes in one test run.
const patterned = 3584

func grow(f []byte, n int) []byte {
	for i := len(f); i < n; i++ {
		if i < patterned {
			f = append(f, byte(i))
		} else {
			f = append(f, 0)
		}
	}
	return f[:n]
}

// runnable returns an untagged IP frame without room for its IP header another type: the kernel takes no such frame
// in a test run. Below a tag it does.
func runnable(f []byte) []byte {
	t := binary.BigEndian.Uint16(f[12:])
	if (t == 0x0800 && len(f) < 14+20) || (t == 0x86dd && len(f) < 14+40) {
		binary.BigEndian.PutUint16(f[12:], 0x0806)
	}
	return f
}
