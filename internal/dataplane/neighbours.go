package dataplane

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// NeighbourReader reads who has which address in the overlay segments that existed when it was made. One goroutine may
// use it, in parallel with the one that uses the Kernel, until the Kernel is closed. The nil reader knows nobody.
type NeighbourReader struct {
	maps     tunnelMaps
	segments boundSegments
	keys     map[compile.OverlaySegment]uint32 // in the kernel's tables
	tunnels  map[string]uint32                 // slots, by switch
	ticks    uint64
	hz       uint64
}

// Neighbours returns a reader for the present overlay segments.
func (l locator) Neighbours() (*NeighbourReader, error) {
	o := l.overlays
	if !o.loaded {
		return nil, nil
	}
	r := &NeighbourReader{maps: o.maps, segments: o.boundSegments(), hz: o.kernel.hz, tunnels: map[string]uint32{},
		keys: map[compile.OverlaySegment]uint32{}}
	for key, s := range r.segments {
		r.keys[s.OverlaySegment] = key
	}
	for id, slot := range o.kernel.slots.Ports {
		if id.Name == spec.TunnelName {
			r.tunnels[id.Switch] = slot
		}
	}
	var err error
	r.ticks, err = o.now()
	return r, err
}

// List returns the addresses that keep wants, each with its owner as the tunnel's program would find it, sorted by
// switch, segment and address. An address that is contested is listed too.
func (r *NeighbourReader) List(keep func(*overlay.Bound) bool) ([]overlay.Bound, error) {
	if r == nil {
		return nil, nil
	}
	heard, err := entries.All[abi.BindingKey, abi.Binding](r.maps.Bindings)
	if err != nil {
		return nil, err
	}
	told, err := entries.All[abi.BindingKey, abi.ToldBinding](r.maps.ToldBindings)
	if err != nil {
		return nil, err
	}
	var list []overlay.Bound
	add := func(key abi.BindingKey) {
		if b, ok := r.segments.known(key, heard[key], told[key], r.ticks, r.hz); ok && keep(&b) {
			list = append(list, b)
		}
	}
	for key := range heard {
		add(key)
	}
	for key := range told {
		if _, both := heard[key]; !both {
			add(key)
		}
	}
	slices.SortFunc(list, func(a, b overlay.Bound) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.VLAN, b.VLAN),
			a.IP.Compare(b.IP))
	})
	return list, nil
}

// known is what is known of an address: of what was heard and what was told the later one counts. The zero value of
// either says nothing.
func (s boundSegments) known(key abi.BindingKey, heard abi.Binding, told abi.ToldBinding, now, hz uint64) (
	b overlay.Bound, ok bool) {
	one, isHeard := s.bound(key, now, heard.Seen, hz)
	other, isTold := s.bound(key, now, told.Seen, hz)
	isHeard, isTold = isHeard && heard.Seen != 0, isTold && told.Seen != 0
	contested := heard.Contested != 0 && int64(heard.Contested-now) > 0
	switch {
	case isHeard && (contested || !isTold || heard.Seen >= told.Seen):
		b, b.MAC, b.Rival, b.Contested = one, heard.MAC, heard.Rival, contested
		flagged(&b, heard.Flags)
	case isTold:
		b, b.MAC, b.Told, b.Contested = other, told.MAC, true, contested
		flagged(&b, told.Flags)
	}
	return b, isHeard || isTold
}

// Endpoint returns behind which endpoint of another host a MAC is, as the tunnel's program would find it; not valid
// where it would find none.
func (r *NeighbourReader) Endpoint(s compile.OverlaySegment, mac plan.MAC) (netip.Addr, error) {
	if r == nil {
		return netip.Addr{}, nil
	}
	l, _, err := locatedIn(r.maps, r.keys[s], overlay.Key{VNI: s.VNI, MAC: mac}, r.ticks, r.hz)
	return l.Endpoint, err
}

// Counts reads what a switch's tunnel has counted of ARP and ND; zero for a switch without one.
func (r *NeighbourReader) Counts(sw string) (n NeighbourCounts, err error) {
	if r == nil {
		return n, nil
	}
	slot, ok := r.tunnels[sw]
	if !ok {
		return n, nil
	}
	var c abi.NeighbourCounts
	if err := r.maps.NeighbourCounts.Lookup(slot, &c); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return n, fmt.Errorf("read what the tunnel of %s has counted of ARP and ND: %w", sw, err)
	}
	return NeighbourCounts{c.N[abi.NeighbourSpoofed], c.N[abi.NeighbourUnbound], c.N[abi.NeighbourContested]}, nil
}

// NeighbourCounts are what a switch's tunnel has counted of ARP and ND: packets whose sender's MAC is not that of the
// frame, new addresses beyond a MAC's share, and claims to an address whose owner still speaks.
type NeighbourCounts struct{ Spoofed, Unbound, Contested uint64 }
