package dataplane

import (
	"errors"
	"fmt"
	"maps"
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

// locator is the part of the kernel that is told where the MACs of other hosts are.
type locator struct{ overlays *overlays }

// Number returns the number of an overlay segment, which is the VLAN of its frames on the tunnel's device; false for
// one that no port is in.
func (l locator) Number(seg compile.OverlaySegment) (number uint16, ok bool) {
	number, ok = l.overlays.kernel.slots.Segments[seg]
	return number, ok
}

// Locate tells the tunnel of a switch where MACs are, and of which nothing is known any more. What the host's own file
// says of a MAC counts more. With all, put is everything: what was said before is forgotten. A location whose segment
// or endpoint is not in the active plan counts from when it is. A switch without a tunnel takes nothing.
func (l locator) Locate(sw string, all bool, put []overlay.Location, removed []overlay.Key) error {
	o := l.overlays
	if !o.loaded {
		return nil
	}
	if o.located[sw] == nil || all {
		o.located[sw] = map[overlay.Key]netip.Addr{}
	}
	touched := make([]overlay.Key, 0, len(put)+len(removed))
	for _, p := range put {
		o.located[sw][p.Key] = p.Endpoint
		touched = append(touched, p.Key)
	}
	for _, key := range removed {
		delete(o.located[sw], key)
		touched = append(touched, key)
	}
	if all {
		o.announced.doubted = true
		return o.relocate()
	}
	vnis := o.vnisOf(sw)
	want := map[abi.LocationKey]abi.Location{}
	var gone []abi.LocationKey
	for _, key := range touched {
		at, loc, ok := o.announcement(sw, vnis, key)
		if ok {
			want[at] = loc
		} else if _, had := o.announced.all[at]; had || o.announced.doubted && at.Whole != 0 {
			gone = append(gone, at)
		}
	}
	return o.announce(want, gone)
}

// announced are the locations in the kernel's table that controllers named.
type announced struct {
	all map[abi.LocationKey]abi.Location
	// doubted: the table may have others, as hosts' own frames have been believed meanwhile.
	doubted bool
}

// vnis are those of a switch in the tunnels' tables.
type vnis struct {
	tunnel uint32 // its slot
	has    map[uint32]bool
}

func (o *overlays) vnisOf(sw string) vnis {
	slot, ok := o.kernel.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	all := vnis{slot, map[uint32]bool{}}
	for name := range o.written.Numbers {
		if ok && name.Slot == slot {
			all.has[name.Vni] = true
		}
	}
	return all
}

// announcement is the entry of the kernel's table for a MAC of a VNI; false where there is to be none.
func (o *overlays) announcement(sw string, in vnis, key overlay.Key) (at abi.LocationKey, loc abi.Location, ok bool) {
	whole := compile.WholeVNI(in.tunnel, key)
	at, has := whole, in.has[key.VNI]
	if vlan, one := key.Inside.VLAN(); one && has {
		var number uint32
		number, has = o.written.Numbers[abi.SegmentName{Slot: in.tunnel, Vni: key.VNI, VLAN: uint32(vlan)}]
		at = compile.InSegment(in.tunnel, number, key.MAC)
	}
	if !has {
		return abi.LocationKey{}, loc, false
	}
	address, said := o.located[sw][key]
	if _, static := o.written.Locations[whole]; !said || static {
		return at, loc, false
	}
	number, named := o.numbers.Of(in.tunnel, address)
	return at, abi.Location{Endpoint: number, Source: abi.LocationAnnounced}, named
}

// forgetTold forgets what controllers have said of segments that are gone, whose numbers others may get.
func (o *overlays) forgetTold(gone map[uint32]bool) error {
	for at := range o.announced.all {
		if at.Whole != abi.ToldInSegment || !gone[at.Segment] {
			continue
		}
		if err := entries.Delete(o.maps.Locations, at); err != nil {
			return fmt.Errorf("forget where a MAC is: %w", err)
		}
		delete(o.announced.all, at)
	}
	return nil
}

// relocate makes the kernel's table what controllers have said, after segments or endpoints have changed.
func (o *overlays) relocate() error {
	if !o.loaded || len(o.located) == 0 {
		return nil // with nobody having said anything since the process began, what an earlier one was told stays
	}
	want := map[abi.LocationKey]abi.Location{}
	for sw, all := range o.located {
		in := o.vnisOf(sw)
		for key := range all {
			if at, loc, ok := o.announcement(sw, in, key); ok {
				want[at] = loc
			}
		}
	}
	var gone []abi.LocationKey
	for at := range o.announced.all {
		if _, stays := want[at]; !stays {
			gone = append(gone, at)
		}
	}
	if !o.announced.doubted {
		maps.DeleteFunc(want, func(at abi.LocationKey, loc abi.Location) bool {
			had, ok := o.announced.all[at]
			return ok && had == loc
		})
	}
	if err := o.announce(want, gone); err != nil {
		o.announced.doubted = true
		return err
	}
	o.announced.doubted = false
	return nil
}

// announce writes and removes locations, many at a time.
func (o *overlays) announce(put map[abi.LocationKey]abi.Location, gone []abi.LocationKey) error {
	for _, at := range gone {
		if _, static := o.written.Locations[at]; static {
			delete(o.announced.all, at)
			continue
		}
		if err := entries.Delete(o.maps.Locations, at); err != nil {
			return fmt.Errorf("forget where a MAC is: %w", err)
		}
		delete(o.announced.all, at)
	}
	keys := slices.Collect(maps.Keys(put))
	for batch := range slices.Chunk(keys, locationBatch) {
		values := make([]abi.Location, len(batch))
		for i, at := range batch {
			values[i] = put[at]
		}
		if n, err := o.maps.Locations.BatchUpdate(batch, values, nil); err != nil {
			return fmt.Errorf("write where %d MACs are, of which the table took %d: %w", len(batch), n,
				explainFull(err))
		}
		for i, at := range batch {
			o.announced.all[at] = values[i]
		}
	}
	return nil
}

// locationBatch is how many locations one system call writes.
const locationBatch = 4096

func explainFull(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) || err == nil {
		return err
	}
	return fmt.Errorf("%w (the table has room for %d)", err, overlay.MaxLocations)
}

// stopsLearning notes that tunnels learn no more: what they have learned is forgotten when the plan is active, and the
// controllers' word holds.
func (o *overlays) stopsLearning(want map[uint32]abi.Tunnel) {
	for slot, was := range o.written.Tunnels {
		next, ok := want[slot]
		o.deaf = o.deaf || ok && was.Rules&abi.TunnelLearns != 0 && next.Rules&abi.TunnelLearns == 0
	}
}

// forgetLearned forgets what tunnels learned that learn no more.
func (o *overlays) forgetLearned() error {
	if !o.deaf {
		return nil
	}
	if err := o.sweepShown(); err != nil {
		return err
	}
	o.deaf, o.announced.doubted = false, true
	return nil
}
