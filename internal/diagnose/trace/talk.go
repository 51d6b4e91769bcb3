package trace

import (
	"fmt"
	"heddle/internal/diagnose"
	"net/netip"
	"slices"
	"strings"

	"heddle/internal/plan"
)

// exchange is one frame of a conversation, without its ends.
type exchange struct {
	protocol, name string
	back           bool // from the second station to the first
	fields         func(src, dst station) *packet
}

// station is one end of a conversation.
type station struct {
	at     *place
	mac    plan.MAC // the MAC to which the other end sends
	sends  plan.MAC // the MAC that its adapter uses, even if the port does not accept it (S3)
	v4, v6 netip.Addr
}

// exchanges returns the frames that two stations must exchange to talk, in both directions.
func exchanges() []exchange {
	request := func(s, d station) *packet {
		return &packet{dst: broadcast, fields: &diagnose.Fields{ARP: &diagnose.Addresses{Src: s.v4, Dst: d.v4}}}
	}
	reply := func(s, d station) *packet {
		return &packet{dst: d.mac, reply: true,
			fields: &diagnose.Fields{ARP: &diagnose.Addresses{Src: s.v4, Dst: d.v4}}}
	}
	ipv4 := func(s, d station) *packet {
		return &packet{dst: d.mac, fields: &diagnose.Fields{IP: &diagnose.Addresses{Src: s.v4, Dst: d.v4}}}
	}
	ipv6 := func(s, d station) *packet {
		return &packet{dst: d.mac, fields: &diagnose.Fields{IP: &diagnose.Addresses{Src: s.v6, Dst: d.v6}}}
	}
	solicit := func(s, d station) *packet {
		group := solicited(d.v6)
		m, _ := groupMAC(group)
		return &packet{dst: m, target: d.v6, fields: &diagnose.Fields{IP: &diagnose.Addresses{Src: s.v6, Dst: group}}}
	}
	return []exchange{
		{"ARP", "request", false, request}, {"ARP", "reply", true, reply}, {"ARP", "request", true, request},
		{"ARP", "reply", false, reply},
		{"IPv4", "packet", false, ipv4}, {"IPv4", "packet", true, ipv4},
		{"IPv6", "solicitation", false, solicit}, {"IPv6", "solicitation", true, solicit},
		{"IPv6", "packet", false, ipv6}, {"IPv6", "packet", true, ipv6},
	}
}

// solicited returns the multicast group for requests for an address (RFC 4291 §2.7.1).
func solicited(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// talk finds out whether two places can talk, and over what path.
func (t *tracer) talk(r *diagnose.Report, from, to *place) error {
	if from.uplink != nil && to.uplink != nil {
		return fmt.Errorf("%s and %s are both uplinks: nothing goes from uplink to uplink", from.id.Name, to.id.Name)
	}
	a, err := t.station(from, 1)
	if err != nil {
		return err
	}
	b, err := t.station(to, 2)
	if err != nil {
		return err
	}
	r.Talk = &diagnose.Talk{}
	for _, x := range exchanges() {
		src, dst := a, b
		if x.back {
			src, dst = b, a
		}
		if err := t.hop(r, x, src, dst); err != nil {
			return err
		}
	}
	sum(r.Talk)
	t.limits(r, from, to)
	return nil
}

// station gives an end of a conversation its addresses: its own if they are known.
func (t *tracer) station(at *place, n byte) (station, error) {
	s := station{at: at, mac: t.model.MACOf(at.id), v4: t.ownAddress(at, true), v6: t.ownAddress(at, false)}
	s.sends = s.mac
	if seen := t.Facts[at.id].SeenMAC; at.port != nil && !seen.IsZero() {
		s.sends = seen
	}
	if at.uplink != nil {
		s.mac = plan.MAC{0, 0, 0x5e, 0, 0x53, n}
		s.sends = s.mac
	}
	if as := t.as[at].mac; !as.IsZero() {
		s.mac, s.sends = as, as
	}
	if s.mac.IsZero() {
		return s, fmt.Errorf("the MAC of port %s is not known: trace a frame with --src-mac or --dst-mac instead",
			at.id.Name)
	}
	if !s.v4.IsValid() {
		s.v4 = netip.AddrFrom4([4]byte{192, 0, 2, n})
	}
	if !s.v6.IsValid() {
		s.v6 = LinkLocal(s.mac)
	}
	return s, nil
}

// hop sends one frame and records what happens to it.
func (t *tracer) hop(r *diagnose.Report, x exchange, src, dst station) error {
	p := x.fields(src, dst)
	p.src = src.sends
	t.tags(src.at, dst.at, p, func(string, ...any) {})
	b, err := p.bytes()
	if err != nil {
		return err
	}
	f, err := t.one(src.at, dst.at, b)
	if err != nil {
		return err
	}
	h := diagnose.Hop{Protocol: x.protocol, Frame: x.name, From: src.at.id.Name, To: dst.at.id.Name, Reason: f.Reason,
		Kernel: f.Kernel, Differ: f.Differences}
	r.Agree = r.Agree && len(f.Differences) == 0
	for _, c := range f.Causes {
		if c.Port != "" && c.Port != dst.at.id.Name {
			continue
		}
		if h.Reason == "" {
			h.Reason = c.Reason
		}
		if !slices.ContainsFunc(r.Talk.Causes, func(o diagnose.Cause) bool { return same(&o, &c) }) {
			r.Talk.Causes = append(r.Talk.Causes, c)
		}
	}
	judge(&h, &f, dst.at)
	r.Talk.Hops = append(r.Talk.Hops, h)
	return nil
}

// same reports whether two causes mean the same to the operator.
func same(c, o *diagnose.Cause) bool {
	return c.Reason == o.Reason && c.Port == o.Port && c.Policy == o.Policy && c.From == o.From &&
		c.Command == o.Command
}

// judge sets whether the frame arrives, and how.
func judge(h *diagnose.Hop, f *diagnose.Frame, to *place) {
	var left []string
	for _, c := range f.Copies {
		if c.To == to.id.Name && c.Kind != diagnose.ToHost {
			h.Verdict, h.Path, h.Reason = diagnose.Yes, "on this host", ""
			if to.uplink != nil {
				h.Path = leaves(c)
			}
			return
		}
		if c.Kind == diagnose.ToUplink {
			left = append(left, leaves(c))
		}
	}
	h.Verdict, h.Path = diagnose.No, "-"
	if len(left) > 0 && f.Delivered {
		h.Verdict, h.Path = diagnose.Unknown, strings.Join(left, "; ")
	}
	for _, c := range f.Causes { // if it is refused here, it does not matter what leaves
		if c.Port == to.id.Name && h.Verdict == diagnose.Unknown && c.Reason != otherSwitch {
			h.Verdict = diagnose.No
		}
	}
}

func leaves(c diagnose.Copy) string {
	if out := c.Leaves(); len(out) > 0 {
		return fmt.Sprintf("leaves by %s, %s", c.To, c.Packets(1))
	}
	return fmt.Sprintf("leaves by %s, %s", c.To, c.Tag)
}

// sum sets each protocol's verdict: the worst of its hops.
func sum(t *diagnose.Talk) {
	for _, h := range t.Hops {
		i := slices.IndexFunc(t.Protocols, func(p diagnose.Protocol) bool { return p.Name == h.Protocol })
		if i < 0 {
			t.Protocols = append(t.Protocols, diagnose.Protocol{Name: h.Protocol, Verdict: diagnose.Yes})
			i = len(t.Protocols) - 1
		}
		p := &t.Protocols[i]
		if h.Verdict == diagnose.No || h.Verdict == diagnose.Unknown && p.Verdict == diagnose.Yes {
			p.Verdict = h.Verdict
		}
		text := h.Path
		if h.Verdict == diagnose.No {
			text = fmt.Sprintf("%s from %s: %s", h.Frame, h.From, h.Reason)
		}
		if !strings.Contains(p.Path, text) {
			p.Path = strings.TrimPrefix(p.Path+"; "+text, "; ")
		}
	}
}

// limits adds notes about what the answer assumes and what cannot be known here.
func (t *tracer) limits(r *diagnose.Report, from, to *place) {
	add := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if slices.ContainsFunc(r.Talk.Hops, func(h diagnose.Hop) bool { return h.Verdict == diagnose.Unknown }) {
		add("what leaves by an uplink: whether the physical network, or a router beyond it, brings it to %s cannot "+
			"be known on this host", to.id.Name)
	} else if from.tunnel || to.tunnel {
		add("beyond the tunnel: whether the network between the hosts carries its packets, and what the other host " +
			"does with them, cannot be known on this host")
	} else if from.uplink != nil || to.uplink != nil {
		add("beyond the uplink: whether the physical network carries the VLAN and knows the way cannot be known on " +
			"this host")
	}
	if len(from.sw.Uplinks) > 0 && slices.ContainsFunc(r.Talk.Causes, func(c diagnose.Cause) bool {
		return c.Reason == otherSegment
	}) {
		add("from one VLAN to another packets go by a router: whether there is one beyond the uplinks cannot be " +
			"known on this host")
	}
	for _, end := range []*place{from, to} {
		if end.port == nil && t.as[end].mac.IsZero() {
			add("%s stands for a station beyond it with the MAC 00:00:5e:00:53:0%d", end.id.Name, 1+b2i(end == to))
		}
		if end.port == nil {
			continue
		}
		if seen := t.Facts[end.id].SeenMAC; !seen.IsZero() && seen != t.model.MACOf(end.id) {
			add("%s's adapter uses the MAC %s, and its port does not accept that: its frames are traced with it",
				end.id.Name, seen)
		}
		if end.port.Policy.VLAN.V.Mode == plan.VLANTrunk {
			add("%s is a trunk: its guest is taken to send with the VLAN that the other end is in", end.id.Name)
		}
		if p := end.port.Policy.Teaming.Policy.V; len(end.sw.Uplinks) > 1 && (p == "ip-hash" || len(end.sw.LAGs) > 0) {
			add("%s chooses its uplink by a hash of addresses: with other addresses than those assumed it may be "+
				"another", end.id.Name)
		}
	}
	if !t.ownAddress(from, true).IsValid() || !t.ownAddress(to, true).IsValid() {
		add("IP addresses of guests are not known here: 192.0.2.1, 192.0.2.2 and link-local ones stand for them; " +
			"filters in the guests are not seen")
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
