package trace

import (
	"errors"
	"fmt"
	"heddle/internal/diagnose"
	"net/netip"

	"heddle/internal/plan"
)

// Placeholders for unknown addresses: those reserved for documentation (RFC 5737, 3849, 7042).
const (
	somePort = 49152
	someone  = "00:00:5e:00:53:01"
	some4    = "192.0.2.1"
	some6    = "2001:db8::1"
)

// fill makes a frame from fields. assumed describes values that were filled in and that the user may want to give.
func (t *tracer) fill(from, to *place, given *diagnose.Fields) (frame []byte, assumed []string, err error) {
	if err := check(given); err != nil {
		return nil, nil, err
	}
	f := *given
	p := &packet{fields: &f}
	note := func(format string, args ...any) { assumed = append(assumed, fmt.Sprintf(format, args...)) }
	if p.src, err = t.source(from, &f, note); err != nil {
		return nil, nil, err
	}
	t.addresses(from, &f, note)
	if err := t.destination(from, to, p, note); err != nil {
		return nil, nil, err
	}
	t.tags(from, to, p, note)
	frame, err = p.bytes()
	return frame, assumed, err
}

// source returns the address that the sender would use.
func (t *tracer) source(from *place, f *diagnose.Fields, note func(string, ...any)) (plan.MAC, error) {
	if f.SrcMAC != nil {
		return *f.SrcMAC, nil
	}
	if as := t.as[from].mac; !as.IsZero() {
		return as, nil
	}
	if from.uplink != nil {
		m, err := plan.ParseMAC(someone)
		note("source %s: it stands for a station beyond %s; --src-mac gives another", someone, from.id.Name)
		return m, err
	}
	m := t.model.MACOf(from.id)
	if m.IsZero() {
		return m, fmt.Errorf("the MAC of port %s is not known: give --src-mac", from.id.Name)
	}
	return m, nil
}

// addresses fills in the packet's source address and ports.
func (t *tracer) addresses(from *place, f *diagnose.Fields, note func(string, ...any)) {
	for _, a := range []**diagnose.Addresses{&f.ARP, &f.IP} {
		if *a == nil || (*a).Src.IsValid() {
			continue
		}
		c := **a
		if c.Src = t.ownAddress(from, c.Dst.Is4()); !c.Src.IsValid() {
			if c.Src = netip.MustParseAddr(some4); !c.Dst.Is4() {
				c.Src = netip.MustParseAddr(some6)
			}
			note("source address %s: the sender's own is not known here; it only matters to hashes of addresses "+
				"and the address guard", c.Src)
		}
		*a = &c
	}
	for _, p := range []**diagnose.Ports{&f.TCP, &f.UDP} {
		if *p != nil && (*p).Src == 0 {
			*p = &diagnose.Ports{Src: somePort, Dst: (*p).Dst}
		}
	}
}

// destination determines the destination MAC of the frame. If the sender would have to ask for it first, that request
// is traced.
func (t *tracer) destination(from, to *place, p *packet, note func(string, ...any)) error {
	f := p.fields
	if f.DstMAC != nil {
		p.dst = *f.DstMAC
		p.reply = f.ARP != nil && !p.dst.IsGroup()
		return nil
	}
	if f.ARP != nil {
		p.dst = broadcast
		return nil
	}
	if f.IP != nil {
		if m, ok := groupMAC(f.IP.Dst); ok {
			p.dst = m
			return nil
		}
	}
	if to != nil {
		p.dst = t.model.MACOf(to.id)
		if as := t.as[to].mac; !as.IsZero() {
			p.dst = as
		} else if to.uplink != nil {
			p.dst = plan.MAC{0, 0, 0x5e, 0, 0x53, 1}
			note("destination %s: it stands for a station beyond %s; --dst-mac gives another", p.dst, to.id.Name)
		}
		if p.dst.IsZero() {
			return fmt.Errorf("the MAC of port %s is not known: give --dst-mac", to.id.Name)
		}
		return nil
	}
	if f.IP == nil {
		return errors.New("say whom the frame is for: --to, --dst-mac, --ip or --arp")
	}
	t.nextHop(from, p, note)
	return nil
}

// nextHop finds the MAC of the packet's destination among host ports, whose addresses are known; otherwise the request
// for it is traced instead of the packet.
func (t *tracer) nextHop(from *place, p *packet, note func(string, ...any)) {
	dst := p.fields.IP.Dst
	for _, port := range from.sw.Ports {
		for _, text := range port.Addresses {
			if a, err := netip.ParsePrefix(text); err == nil && a.Addr() == dst {
				p.dst = t.model.MACOf(port.ID)
				note("destination %s: %s is an address of host port %s", p.dst, dst, port.ID.Name)
				return
			}
		}
	}
	question := "ARP request"
	p.dst = broadcast
	if !dst.Is4() {
		question, p.target = "neighbour solicitation", dst
		group := solicited(dst)
		p.dst, _ = groupMAC(group)
		p.fields.IP = &diagnose.Addresses{Src: p.fields.IP.Src, Dst: group}
	} else {
		p.fields.ARP, p.fields.IP = p.fields.IP, nil
	}
	p.fields.TCP, p.fields.UDP, p.fields.ICMP, p.fields.Length = nil, nil, false, 0
	note("the next hop's MAC is not known here: traced as the %s for %s that comes first; --to or --dst-mac sends "+
		"the packet itself", question, dst)
}

// tags gives the frame the requested tags; if none are requested, the tag of the receiver's segment at a place that
// sees tags.
func (t *tracer) tags(from, to *place, p *packet, note func(string, ...any)) {
	f := p.fields
	if f.Outer != nil {
		p.tags = append(p.tags, typeAD<<16|uint32(*f.Outer))
	}
	if f.VLAN != nil {
		p.tags = append(p.tags, typeQ<<16|uint32(*f.VLAN))
	}
	if len(p.tags) > 0 || to == nil || to.sw != from.sw {
		return
	}
	if tag := commonTag(from, to); tag != 0 {
		p.tags = []uint32{tag}
		note("%s: as %s is in; --vlan gives another", tagWords(uint16(tag>>16), uint16(tag)), to.id.Name)
	}
}

// commonTag returns the tag of a frame from one place in a segment of the other; 0 for none, or if they share no
// segment.
func commonTag(from, to *place) uint32 {
	seesTags := from.uplink != nil || from.port.Policy.VLAN.V.Mode == plan.VLANTrunk
	if !seesTags {
		return 0
	}
	kind := uint32(typeQ)
	if from.port != nil && from.port.Policy.VLAN.V.AD || from.uplink != nil && to.port != nil &&
		to.port.Policy.VLAN.V.AD {
		kind = typeAD
	}
	for id := range uint16(4095) {
		if carries(from, id, kind) && carries(to, id, kind) {
			if id == 0 {
				return 0
			}
			return kind<<16 | uint32(id)
		}
	}
	if to.port != nil && to.port.Policy.VLAN.V.Mode == plan.VLANAccess {
		return typeQ<<16 | uint32(to.port.Policy.VLAN.V.ID)
	}
	return 0
}

// carries reports whether a place is in the segment of a VLAN; 0 is the untagged one.
func carries(p *place, id uint16, kind uint32) bool {
	if p.uplink != nil {
		return p.uplink.VLANs.Has(id)
	}
	v := &p.port.Policy.VLAN.V
	switch v.Mode {
	case plan.VLANAccess:
		return v.ID == id && kind == typeQ
	case plan.VLANTrunk:
		return v.Set.Has(id) && (id == 0 || v.AD == (kind == typeAD))
	}
	return id == 0
}
