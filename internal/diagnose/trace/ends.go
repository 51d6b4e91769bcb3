package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"heddle/internal/model"
	"heddle/internal/plan"
)

// Seen is a source address of frames from a port or uplink, from the flows of metered ports.
type Seen struct {
	At   plan.PortID
	MAC  plan.MAC
	Addr netip.Addr
}

// identity is the addresses with which an end sends and receives, if it was named by an address; zero fields are the
// port's own.
type identity struct {
	mac  plan.MAC
	addr netip.Addr
}

// lead is a place that an address may belong to, and how that is known.
type lead struct {
	at  *place
	as  identity
	how string
}

// sign is one way to find out that an address is at a place.
type sign struct {
	how string
	is  func(*place) bool
}

// end returns the port or uplink for a name, a MAC or an IP address. note says how an address was found.
func (t *tracer) end(name string) (at *place, note string, err error) {
	if at, err = t.find(name); err == nil {
		return at, "", nil
	}
	var leads []lead
	if m, bad := plan.ParseMAC(name); bad == nil {
		if leads = t.withMAC(m); len(leads) == 0 {
			return nil, "", &NotFoundError{fmt.Sprintf("no port has the MAC %s, and none has learned it; the MACs of "+
				"this host: heddle mac list", m)}
		}
	} else if a, bad := netip.ParseAddr(name); bad == nil {
		if leads = t.withAddress(a.Unmap().WithZone("")); len(leads) == 0 {
			return nil, "", &NotFoundError{t.noAddress(a)}
		}
	} else {
		return nil, "", err
	}
	if len(leads) > 1 {
		return nil, "", fmt.Errorf("%s is at %s: say which port", name, namesOf(leads))
	}
	one := leads[0]
	t.as[one.at] = one.as
	return one.at, fmt.Sprintf("%s is at %s %s: %s", name, one.at.kind(), one.at.id.Name, one.how), nil
}

func namesOf(leads []lead) string {
	list := make([]string, len(leads))
	for i, l := range leads {
		list[i] = l.at.id.Name
	}
	slices.Sort(list)
	return strings.Join(list, " and ")
}

// withMAC returns the places that have a MAC.
func (t *tracer) withMAC(m plan.MAC) []lead {
	if m.IsZero() || m.IsGroup() {
		return nil
	}
	return t.leads(func(*place) identity { return identity{mac: m} },
		sign{"the port's own MAC", func(p *place) bool { return p.port != nil && t.model.MACOf(p.id) == m }},
		sign{"its adapter uses this MAC", func(p *place) bool { return p.port != nil && t.Facts[p.id].SeenMAC == m }},
		sign{"learned there", func(p *place) bool {
			return slices.ContainsFunc(t.Learned, func(l model.MAC) bool { return l.Port == p.id && l.MAC == m })
		}},
		sign{"flows come from it", func(p *place) bool {
			return slices.ContainsFunc(t.Seen, func(s Seen) bool { return s.At == p.id && s.MAC == m })
		}})
}

// withAddress returns the places that have an IP address.
func (t *tracer) withAddress(a netip.Addr) []lead {
	as := func(p *place) identity {
		for _, s := range slices.Concat(t.Seen, t.Refused) {
			if s.At == p.id && s.Addr == a {
				return identity{addr: a, mac: s.MAC}
			}
		}
		return identity{addr: a, mac: t.neighbour(p, a)}
	}
	in := func(list []Seen, p *place) bool {
		return slices.ContainsFunc(list, func(s Seen) bool { return s.At == p.id && s.Addr == a })
	}
	return t.leads(as,
		sign{"the host port's address", func(p *place) bool {
			return slices.ContainsFunc(hostAddresses(p), func(l netip.Prefix) bool { return l.Addr() == a })
		}},
		sign{"listed there for the address guard", func(p *place) bool {
			return slices.ContainsFunc(guardList(p), func(l netip.Prefix) bool {
				return l.IsSingleIP() && l.Addr() == a
			})
		}},
		sign{"the link-local address of its MAC", func(p *place) bool {
			return p.port != nil && LinkLocal(t.model.MACOf(p.id)) == a
		}},
		sign{"flows come from it", func(p *place) bool { return p.port != nil && in(t.Seen, p) }},
		sign{"the host's neighbour", func(p *place) bool { return !t.neighbour(p, a).IsZero() }},
		sign{"frames in its name were refused there", func(p *place) bool { return in(t.Refused, p) }},
		sign{"of a prefix that is listed there for the address guard", func(p *place) bool {
			return slices.ContainsFunc(guardList(p), func(l netip.Prefix) bool { return l.Contains(a) })
		}},
		sign{"flows come in from it", func(p *place) bool { return in(t.Seen, p) }})
}

// neighbour returns the MAC that the host itself knows for an address, if that MAC is at the port.
func (t *tracer) neighbour(p *place, a netip.Addr) plan.MAC {
	for _, n := range t.Neighbours {
		if n.Addr == a && p.port != nil && t.hasMAC(p, n.MAC) {
			return n.MAC
		}
	}
	return plan.MAC{}
}

// hasMAC reports whether a MAC is a port's own, its adapter's, or learned there.
func (t *tracer) hasMAC(p *place, m plan.MAC) bool {
	return t.model.MACOf(p.id) == m || t.Facts[p.id].SeenMAC == m ||
		slices.ContainsFunc(t.Learned, func(l model.MAC) bool { return l.Port == p.id && l.MAC == m })
}

// leads returns the places with the first of the signs that any place has.
func (t *tracer) leads(as func(*place) identity, signs ...sign) (found []lead) {
	for _, s := range signs {
		for _, p := range t.places {
			if s.is(p) {
				found = append(found, lead{p, as(p), s.how})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// noAddress says where an address was looked for, and how else to name the end.
func (t *tracer) noAddress(a netip.Addr) string {
	guarded := 0
	for _, p := range t.places {
		guarded += min(len(guardList(p)), 1)
	}
	lists := "no port lists any for the address guard"
	if guarded > 0 {
		lists = fmt.Sprintf("nor one of those that %d ports list for the address guard", guarded)
		if guarded == 1 {
			lists = "nor one that 1 port lists for the address guard"
		}
	}
	flows := "no metered flow comes from it"
	if !t.Metered {
		flows = "no port is metered, so that flows do not show it"
	}
	return fmt.Sprintf("it is not known which port has %s: it is no host port's address and no neighbour of the host, "+
		"%s, and %s; give the port (heddle port list) or its MAC (heddle mac list)", a, lists, flows)
}

// hostAddresses returns a host port's own addresses.
func hostAddresses(at *place) (list []netip.Prefix) {
	if at.port == nil {
		return nil
	}
	for _, text := range at.port.Addresses {
		if a, err := netip.ParsePrefix(text); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// guardList returns the addresses and prefixes that are listed at a port for its address guard.
func guardList(at *place) (list []netip.Prefix) {
	if at.port == nil {
		return nil
	}
	for _, text := range at.port.Policy.AddressGuard.Addresses.V {
		if a, err := netip.ParseAddr(text); err == nil {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		} else if p, err := netip.ParsePrefix(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// ownAddress returns a known address of an end in a family: the one by which it was named, a host port's, or one that
// is listed at the port.
func (t *tracer) ownAddress(at *place, four bool) netip.Addr {
	if a := t.as[at].addr; a.IsValid() && a.Is4() == four {
		return a
	}
	var network netip.Addr
	for _, p := range slices.Concat(hostAddresses(at), guardList(at)) {
		first := p.Addr().Next()
		switch {
		case p.Addr().Is4() != four:
		case p.IsSingleIP() || p != p.Masked(): // not a network
			return p.Addr()
		case !network.IsValid() && p.Contains(first):
			network = first
		}
	}
	return network
}

// LinkLocal returns the link-local address derived from a MAC (RFC 4291 appendix A).
func LinkLocal(m plan.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3],
		14: m[4], 15: m[5]})
}
