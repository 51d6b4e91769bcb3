package dataplane

import (
	"net/netip"
	"slices"

	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Reached is what the kernel's tables have of the endpoints of other hosts, for the tunnel of a switch: what an earlier
// process was told. The hosts' names are not in the tables. Of each host only one endpoint has members, so that a frame
// for all reaches it once.
func (l locator) Reached(sw string) (r overlay.Reach) {
	o := l.overlays
	slot, ok := o.kernel.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	if !o.loaded || !ok {
		return r
	}
	address := map[uint16]netip.Addr{}
	for name, e := range o.written.Endpoints {
		if name.Slot == slot {
			a := compile.AddressOf(e)
			address[uint16(o.numbers[name])] = a
			r.Endpoints = append(r.Endpoints, overlay.Endpoint{Address: a})
		}
	}
	slices.SortFunc(r.Endpoints, func(a, b overlay.Endpoint) int { return a.Address.Compare(b.Address) })
	listed := map[uint32]bool{}
	for key, s := range o.written.Segments {
		if key>>16 != slot || listed[s.Vni] {
			continue
		}
		listed[s.Vni] = true // the VLANs inside a VNI have the same members
		one := overlay.Segment{VNI: s.Vni}
		for _, number := range s.Member[:s.Count] {
			if a, named := address[number]; named {
				one.Members = append(one.Members, a)
			}
		}
		r.Segments = append(r.Segments, one)
	}
	slices.SortFunc(r.Segments, func(a, b overlay.Segment) int { return int(a.VNI) - int(b.VNI) })
	return r
}
