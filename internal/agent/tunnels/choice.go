package tunnels

import (
	"fmt"
	"net/netip"
	"slices"

	"heddle/internal/overlay"
)

// endpointChoice is by what one of several addresses of a device becomes this host's end of a tunnel.
type endpointChoice struct {
	present []netip.Addr       // the ends that are in use
	far     []overlay.Endpoint // of other hosts
}

// serves reports whether some other host can be reached from an address, or none is known.
func (c endpointChoice) serves(a netip.Addr) bool {
	return len(c.far) == 0 || slices.ContainsFunc(c.far, func(e overlay.Endpoint) bool {
		return e.Address.Is4() == a.Is4()
	})
}

// rank is how good an address is; the lowest is best. An address without a network of its own (/32, /128) is often one
// that moves between hosts: it serves only where there is no other.
func (c endpointChoice) rank(p netip.Prefix) (n int) {
	if !c.serves(p.Addr()) {
		n += 4
	}
	if p.IsSingleIP() {
		n += 2
	}
	if !slices.Contains(c.present, p.Addr()) {
		n++
	}
	return n
}

// endpointAmong chooses among the addresses of a device, of which the best come first: the one that is named, if
// there is one, else the best one. The zero Addr is none.
func endpointAmong(have []netip.Prefix, named netip.Addr, by endpointChoice) (best netip.Addr) {
	least := 0
	for _, p := range have {
		switch n := by.rank(p); {
		case named.IsValid() && p.Addr() != named:
		case !best.IsValid() || n < least:
			best, least = p.Addr(), n
		}
	}
	return best
}

// familyApart says that no other host's endpoint has an address of a family that this host's endpoints have; nil if one
// does, and where there are none.
func familyApart(own []netip.Addr, r overlay.Reach) error {
	if len(own) == 0 || len(r.Endpoints) == 0 {
		return nil
	}
	for _, e := range r.Endpoints {
		if slices.ContainsFunc(own, func(a netip.Addr) bool { return a.Is4() == e.Address.Is4() }) {
			return nil
		}
	}
	here, there := "IPv6", "IPv4"
	if own[0].Is4() {
		here, there = there, here
	}
	return fmt.Errorf("endpoint address %s is of %s, and all other hosts have endpoints of %s: give this host one of "+
		"%s", own[0], here, there, there)
}
