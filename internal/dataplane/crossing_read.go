package dataplane

import (
	"errors"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
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

// Locations reads where the MACs of a switch's segments are known to be; learned ones that are too old are among them.
func (r *CrossingRecorder) Locations(sw string) (map[Located]overlay.Location, error) {
	all, err := readAll[abi.LocationKey, abi.Location](r.maps.Locations)
	if err != nil {
		return nil, err
	}
	slot := r.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	out := map[Located]overlay.Location{}
	rank := map[Located]int{} // of what was found, which a higher one replaces
	for key, l := range all {
		for seg, n := range r.slots.Segments {
			number, by := uint32(n), 0
			switch {
			case key == compile.WholeVNI(slot, overlay.Key{VNI: seg.VNI, MAC: key.MAC}):
				by = 1
			case key == compile.InSegment(slot, number, key.MAC):
				by = 2
			case key == abi.LocationKey{Segment: slot<<16 | number, MAC: key.MAC}:
				by = 3
			}
			if by > 0 && l.Source == abi.LocationStatic {
				by = 4
			}
			at := Located{seg.VNI, seg.VLAN, key.MAC}
			if seg.Switch == sw && by > rank[at] {
				rank[at] = by
				out[at] = overlay.Location{Endpoint: r.addr[l.Endpoint],
					Key: overlay.Key{VNI: seg.VNI, MAC: key.MAC}, Source: sourceOf(l.Source)}
			}
		}
	}
	return out, nil
}

// Slots are where ports and segments are in the recorder's tables.
func (r *CrossingRecorder) Slots() *compile.Slots { return r.slots }

// Located is what a location is for, in one VLAN inside a VNI.
type Located struct {
	VNI  uint32
	VLAN uint16
	MAC  plan.MAC
}
