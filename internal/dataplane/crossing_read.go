package dataplane

import (
	"errors"
	"net/netip"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/observe"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Counters reads what the programs count at a switch's tunnel.
func (r *CrossingRecorder) Counters(sw string) (observe.Counters, error) {
	slot := r.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	perCPU := make([]abi.Counters, ebpf.MustPossibleCPU())
	var rare abi.RareCounters
	if err := errors.Join(r.maps.Counts.Lookup(slot, &perCPU), r.maps.RareCounts.Lookup(slot, &rare)); err != nil {
		return observe.Counters{}, err
	}
	c := sum(perCPU)
	addReasons(c.Drops, abi.ReasonsPerCPU, rare.Drops[:])
	addReasons(c.Refused, abi.ReasonsPerCPU, rare.Refused[:])
	return c, nil
}

// CrossingTables are what a switch's tunnel knows of the stations of its segments.
type CrossingTables struct {
	Bindings map[overlay.Address]abi.Binding
	Told     map[overlay.Address]abi.ToldBinding
	Speakers map[Located]abi.NeighbourSpeaker
	// Shown are learned locations, of an endpoint that is not valid where it is gone.
	Shown map[Located]ShownAt
	// Said is what the file and the controllers say.
	Said map[overlay.Key]overlay.Location
	// Held is how many MACs are learned behind each endpoint by its own count.
	Held   map[netip.Addr]int
	Counts NeighbourCounts
}

// ShownAt is a learned location, and when the last frame showed it.
type ShownAt struct {
	Endpoint netip.Addr
	Seen     uint64 // milliseconds
}

// Tables reads what the tunnel of a switch knows. Entries of segments that the switch has not any more are left out.
func (r *CrossingRecorder) Tables(sw string) (t CrossingTables, err error) {
	slot := r.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	segments := map[uint32]compile.OverlaySegment{}
	for seg, n := range r.slots.Segments {
		if seg.Switch == sw {
			segments[slot<<16|uint32(n)] = seg
		}
	}
	t = CrossingTables{Bindings: map[overlay.Address]abi.Binding{}, Told: map[overlay.Address]abi.ToldBinding{},
		Speakers: map[Located]abi.NeighbourSpeaker{}}
	heard, err1 := entries.All[abi.BindingKey, abi.Binding](r.maps.Bindings)
	told, err2 := entries.All[abi.BindingKey, abi.ToldBinding](r.maps.ToldBindings)
	speakers, err3 := entries.All[abi.LocationKey, abi.NeighbourSpeaker](r.maps.Speakers)
	if err := errors.Join(err1, err2, err3, r.readLocations(slot, segments, &t)); err != nil {
		return t, err
	}
	address := func(key abi.BindingKey) (overlay.Address, bool) {
		seg, ok := segments[key.Segment]
		return overlay.Address{VNI: seg.VNI, VLAN: seg.VLAN,
			IP: netip.AddrFrom16([16]byte(bytesOf(key.Address[:]))).Unmap()}, ok
	}
	for key, b := range heard {
		if at, ok := address(key); ok {
			t.Bindings[at] = b
		}
	}
	for key, b := range told {
		if at, ok := address(key); ok {
			t.Told[at] = b
		}
	}
	for key, s := range speakers {
		if seg, ok := segments[key.Segment]; ok {
			t.Speakers[Located{seg.VNI, seg.VLAN, key.MAC}] = s
		}
	}
	var c abi.NeighbourCounts
	if err := r.maps.NeighbourCounts.Lookup(slot, &c); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return t, err
	}
	t.Counts = NeighbourCounts{c.N[abi.NeighbourSpoofed], c.N[abi.NeighbourUnbound], c.N[abi.NeighbourContested]}
	return t, nil
}

func (r *CrossingRecorder) readLocations(slot uint32, segments map[uint32]compile.OverlaySegment,
	t *CrossingTables) error {
	t.Shown, t.Said = map[Located]ShownAt{}, map[overlay.Key]overlay.Location{}
	t.Held = map[netip.Addr]int{}
	all, err := entries.All[abi.LocationKey, abi.Location](r.maps.Locations)
	if err != nil {
		return err
	}
	for key, l := range all {
		at, k := r.addressOf(l.Endpoint), overlay.Key{VNI: key.Segment, MAC: key.MAC}
		seg, there := segments[key.Segment]
		switch {
		case there && key.Whole == 0:
			t.Shown[Located{seg.VNI, seg.VLAN, key.MAC}] = ShownAt{at, l.Seen}
			continue
		case there && key.Whole == abi.ToldInSegment:
			k.VNI, k.Inside = seg.VNI, overlay.In(seg.VLAN)
		case key.Whole != uint16(slot):
			continue
		}
		t.Said[k] = overlay.Location{Key: k, Endpoint: at, Source: sourceOf(l.Source)}
	}
	for name, number := range r.overlays.numbers {
		var e abi.Endpoint
		if err := r.maps.Endpoints.Lookup(number, &e); err != nil {
			return err
		}
		if name.Slot == slot && e.Held > 0 {
			t.Held[compile.AddressOf(e)] = int(e.Held)
		}
	}
	return nil
}

// Slots are where ports and segments are in the recorder's tables.
func (r *CrossingRecorder) Slots() *compile.Slots { return r.slots }

// Located is what a location is for, in one VLAN inside a VNI.
type Located struct {
	VNI  uint32
	VLAN uint16
	MAC  plan.MAC
}
