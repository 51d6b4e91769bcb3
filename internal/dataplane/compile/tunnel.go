package compile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// TunnelTables are the contents of the tables of the tunnels' programs.
type TunnelTables struct {
	Tunnels   map[uint32]abi.Tunnel // by the tunnel's slot
	Segments  map[uint32]abi.OverlaySegment
	Numbers   map[abi.SegmentName]uint32
	Endpoints map[abi.EndpointName]abi.Endpoint
	// Locations are those of the file.
	Locations map[abi.LocationKey]abi.Location
	// Trunks are the ports that are trunks inside a VNI, by slot.
	Trunks map[uint32]abi.OverlayTrunk
}

// EndpointNumbers are the numbers of the endpoints of other hosts: 1–16383.
type EndpointNumbers map[abi.EndpointName]uint32

// Assign gives each endpoint that the desired state names a number; one that has a number keeps it. busy are numbers
// that nobody may have yet.
func (n EndpointNumbers) Assign(d binding.Desired, s *Slots, busy map[uint32]bool) error {
	used := maps.Clone(busy)
	if used == nil {
		used = map[uint32]bool{}
	}
	for _, number := range n {
		used[number] = true
	}
	next := uint32(1)
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		slot := s.Ports[sw.Tunnel.ID]
		for _, e := range d.Reach[sw.Name].Endpoints {
			name := endpointName(slot, e.Address)
			if _, ok := n[name]; ok {
				continue
			}
			for used[next] {
				next++
			}
			if next >= abi.MaxEndpoints {
				return fmt.Errorf("switch %s: a host can speak to at most %d endpoints of other hosts", sw.Name,
					abi.MaxEndpoints-1)
			}
			used[next], n[name] = true, next
		}
	}
	return nil
}

// Tunnels compiles what the tunnels' programs read. It is pure: the same input gives the same tables.
func Tunnels(d binding.Desired, s *Slots, n EndpointNumbers) *TunnelTables {
	t := &TunnelTables{Tunnels: map[uint32]abi.Tunnel{}, Segments: map[uint32]abi.OverlaySegment{},
		Numbers: map[abi.SegmentName]uint32{}, Endpoints: map[abi.EndpointName]abi.Endpoint{},
		Locations: map[abi.LocationKey]abi.Location{}, Trunks: map[uint32]abi.OverlayTrunk{}}
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel != nil {
			t.add(sw, d, s, n)
		}
	}
	return t
}

func (t *TunnelTables) add(sw *plan.Switch, d binding.Desired, s *Slots, n EndpointNumbers) {
	slot, fact, reach := s.Ports[sw.Tunnel.ID], d.Facts[sw.Tunnel.ID], d.Reach[sw.Name]
	own := ownTunnel(fact, reach.Learn)
	near := nearOf(sw.Tunnel, fact, reach)
	if near != nil {
		own.Rules |= abi.TunnelTwoTier
	}
	listed := overlay.StaticOf(sw)
	if len(listed) == 0 {
		own.Rules |= abi.TunnelUnlisted
	}
	own.Hold = uint32(sw.Tunnel.Hold / time.Second)
	t.Tunnels[slot] = own
	host := map[netip.Addr]string{}
	for _, e := range reach.Endpoints {
		name := endpointName(slot, e.Address)
		rec := abi.Endpoint{Address: name.Address, Flags: abi.EndpointNamed, Slot: slot}
		if e.Address.Is6() {
			rec.Flags |= abi.EndpointIpv6
		}
		if near != nil && !near(e.Address) {
			rec.Flags |= abi.EndpointFar
		}
		if e.MTU != 0 {
			rec.MTU = uint32(max(e.MTU-overlay.Headroom(e.Address), 1))
		}
		t.Endpoints[name] = rec
		host[e.Address] = e.Host
	}
	members := map[uint32]tiers{}
	for _, g := range reach.Segments {
		members[g.VNI] = tiersOf(membersOf(g.Members, host, &own), near, reach)
	}
	has := map[uint32]bool{}
	for seg, number := range s.Segments {
		if seg.Switch != sw.Name {
			continue
		}
		key := slot<<16 | uint32(number)
		m := members[seg.VNI]
		rec := abi.OverlaySegment{Vni: seg.VNI, VLAN: seg.VLAN, Count: uint16(len(m.all)), Several: uint16(m.several),
			Near: uint16(m.near)}
		for i, a := range m.all {
			rec.Member[i] = uint16(n[endpointName(slot, a)])
		}
		t.Segments[key] = rec
		t.Numbers[abi.SegmentName{Slot: slot, Vni: seg.VNI, VLAN: uint32(seg.VLAN)}] = uint32(number)
		has[seg.VNI] = true
	}
	for _, l := range listed {
		if has[l.VNI] {
			t.Locations[WholeVNI(slot, l.Key)] = abi.Location{Endpoint: n[endpointName(slot, l.Endpoint)],
				Source: abi.LocationStatic}
		}
	}
	t.addTrunks(sw, s, slot)
}

// addTrunks adds the ports of a switch that are trunks inside a VNI.
func (t *TunnelTables) addTrunks(sw *plan.Switch, s *Slots, tunnel uint32) {
	for _, p := range sw.Ports {
		if !IsTrunk(p) {
			continue
		}
		rec := abi.OverlayTrunk{Slot: tunnel, Vni: p.VNI}
		if p.Policy.VLAN.V.Set.Has(0) {
			rec.Flags = abi.TrunkUntagged
		}
		t.Trunks[s.Ports[p.ID]] = rec
	}
}

// WholeVNI is the key of a location that holds in every VLAN inside a VNI, of the switch with the tunnel at that slot.
func WholeVNI(tunnel uint32, k overlay.Key) abi.LocationKey {
	return abi.LocationKey{Segment: k.VNI, MAC: k.MAC, Whole: uint16(tunnel)}
}

// InSegment is the key of what controllers say of a MAC in one segment of the tunnel at that slot, by its number.
func InSegment(tunnel, number uint32, mac plan.MAC) abi.LocationKey {
	return abi.LocationKey{Segment: tunnel<<16 | number, MAC: mac, Whole: abi.ToldInSegment}
}

// ownTunnel returns this host's ends of a tunnel.
func ownTunnel(fact plan.Fact, learns bool) abi.Tunnel {
	var own abi.Tunnel
	for _, a := range fact.Endpoints {
		w := words(a)
		switch {
		case a.Is4() && own.Ipv4 < abi.LocalEndpoints:
			own.Own4[own.Ipv4] = w[0]
			own.Ipv4++
		case a.Is6() && own.Ipv6 < abi.LocalEndpoints:
			own.Own6[own.Ipv6] = w
			own.Ipv6++
		}
	}
	own.Mtu4 = uint32(max(fact.MTU-overlay.Headroom(netip.IPv4Unspecified()), 0))
	own.Mtu6 = uint32(max(fact.MTU-overlay.Headroom(netip.IPv6Unspecified()), 0))
	if learns {
		own.Rules |= abi.TunnelLearns
	}
	return own
}

// membersOf returns the endpoints that get a copy: one of each host, of a family that this host has.
func membersOf(all []netip.Addr, host map[netip.Addr]string, own *abi.Tunnel) (list []netip.Addr) {
	served := map[string]bool{}
	for _, a := range all {
		h, named := host[a]
		if !named || h != "" && served[h] || a.Is4() && own.Ipv4 == 0 || a.Is6() && own.Ipv6 == 0 {
			continue
		}
		served[h] = true
		list = append(list, a)
	}
	return list[:min(len(list), abi.MaxSegmentMembers)]
}

// nearOf returns whether an address is in this host's subnet, which is that of its first endpoint; nil unless the
// tunnel replicates in two tiers.
func nearOf(tun *plan.Tunnel, fact plan.Fact, reach overlay.Reach) func(netip.Addr) bool {
	if !overlay.TwoTier(tun) || len(fact.Endpoints) == 0 {
		return nil
	}
	own := reach.SubnetOf(fact.Endpoints[0])
	return func(a netip.Addr) bool { return reach.SubnetOf(a) == own }
}

// tiers are the members of a segment: those of this host's subnet first, then one of each other subnet, which get what
// is for several, then the others.
type tiers struct {
	all           []netip.Addr
	near, several int
}

func tiersOf(members []netip.Addr, near func(netip.Addr) bool, reach overlay.Reach) tiers {
	if near == nil {
		return tiers{all: members, several: len(members)}
	}
	var first, proxies, rest []netip.Addr
	served := map[netip.Prefix]bool{}
	for _, a := range members {
		switch in := reach.SubnetOf(a); {
		case near(a):
			first = append(first, a)
		case served[in]:
			rest = append(rest, a)
		default:
			served[in] = true
			proxies = append(proxies, a)
		}
	}
	return tiers{slices.Concat(first, proxies, rest), len(first), len(first) + len(proxies)}
}

// Of returns the number of an endpoint of a tunnel; false for one that has none.
func (n EndpointNumbers) Of(slot uint32, a netip.Addr) (uint32, bool) {
	number, ok := n[endpointName(slot, a)]
	return number, ok
}

func endpointName(slot uint32, a netip.Addr) abi.EndpointName {
	return abi.EndpointName{Slot: slot, Address: words(a)}
}

// words returns an address as the program has it: in network byte order, IPv4 in the first word.
func words(a netip.Addr) (w [4]uint32) {
	b := a.AsSlice()
	for i := range len(b) / 4 {
		w[i] = binary.NativeEndian.Uint32(b[i*4:])
	}
	return w
}

// AddressOf returns the address of an endpoint.
func AddressOf(e abi.Endpoint) netip.Addr { return address(e.Address, e.Flags&abi.EndpointIpv6 == 0) }

// OwnOf returns this host's endpoints of a tunnel, of one family, in the order in which frames are spread over them.
func OwnOf(t abi.Tunnel, ipv4 bool) []netip.Addr {
	own := make([]netip.Addr, 0, abi.LocalEndpoints)
	if ipv4 {
		for _, w := range t.Own4[:min(t.Ipv4, abi.LocalEndpoints)] {
			own = append(own, address([4]uint32{w}, true))
		}
		return own
	}
	for _, w := range t.Own6[:min(t.Ipv6, abi.LocalEndpoints)] {
		own = append(own, address(w, false))
	}
	return own
}

// address is the opposite of words.
func address(w [4]uint32, ipv4 bool) netip.Addr {
	var b [16]byte
	for i, part := range w {
		binary.NativeEndian.PutUint32(b[i*4:], part)
	}
	if ipv4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}

// Gone returns the keys of a map that another one does not have.
func Gone[K comparable, V, W any](had map[K]V, want map[K]W) (gone []K) {
	for k := range had {
		if _, ok := want[k]; !ok {
			gone = append(gone, k)
		}
	}
	return slices.Clip(gone)
}
