package dataplane

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Bindings are those that all tunnels have heard and that are in force, sorted.
func (l locator) Bindings() ([]overlay.Bound, error) {
	o := l.overlays
	if !o.loaded {
		return nil, nil
	}
	now, err := o.now()
	if err != nil {
		return nil, err
	}
	heard, err := entries.All[abi.BindingKey, abi.Binding](o.maps.Bindings)
	if err != nil {
		return nil, err
	}
	var list []overlay.Bound
	segments := o.boundSegments()
	for key, b := range heard {
		if one, ok := segments.bound(key, now, b.Seen, o.kernel.hz); ok {
			one.MAC, one.Rival, one.Contested = b.MAC, b.Rival, int64(b.Contested-now) > 0
			flagged(&one, b.Flags)
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b overlay.Bound) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.VLAN, b.VLAN),
			a.IP.Compare(b.IP), cmp.Compare(a.Age, b.Age))
	})
	return list, nil
}

func flagged(b *overlay.Bound, flags uint8) {
	b.Here, b.Advertised = flags&abi.BindingHere != 0, flags&abi.BindingAdvertised != 0
	b.Router, b.Unverified = flags&abi.BindingRouter != 0, flags&abi.BindingUnverified != 0
}

// boundSegment is a segment in the kernel's tables, with the time for which its bindings hold.
type boundSegment struct {
	compile.OverlaySegment
	hold uint64 // seconds
}

type boundSegments map[uint32]boundSegment

func (o *overlays) boundSegments() boundSegments {
	all := boundSegments{}
	for name, number := range o.written.Numbers {
		for id, slot := range o.kernel.slots.Ports {
			if slot == name.Slot && id.Name == spec.TunnelName {
				all[slot<<16|number] = boundSegment{compile.OverlaySegment{Switch: id.Switch, VNI: name.Vni,
					VLAN: uint16(name.VLAN)}, uint64(o.written.Tunnels[slot].Hold)}
			}
		}
	}
	return all
}

// bound is a binding that is in force: with its segment, and how long ago its owner was heard.
func (s boundSegments) bound(key abi.BindingKey, now, seen, hz uint64) (b overlay.Bound, ok bool) {
	in, ok := s[key.Segment]
	ticks := uint64(max(int64(now-seen), 0))
	if !ok || ticks > in.hold*hz {
		return b, false
	}
	b.Switch = in.Switch
	b.Address = overlay.Address{VNI: in.VNI, VLAN: in.VLAN,
		IP: netip.AddrFrom16([16]byte(bytesOf(key.Address[:]))).Unmap()}
	b.Age = time.Duration(ticks) * time.Second / time.Duration(hz)
	return b, true
}

// bindingKey is that of an address in the kernel's tables; false for a segment that no port of the switch is in.
func (o *overlays) bindingKey(sw string, a overlay.Address) (key abi.BindingKey, ok bool) {
	number, has := o.kernel.slots.Segments[compile.OverlaySegment{Switch: sw, VNI: a.VNI, VLAN: a.VLAN}]
	slot, tunnel := o.kernel.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	key.Segment = slot<<16 | uint32(number)
	sixteen := a.IP.As16()
	copy(bytesOf(key.Address[:]), sixteen[:])
	return key, has && tunnel
}

// Bind tells the tunnel of a switch which MACs of other hosts have which addresses, as the controllers say, and of
// which addresses that is not known any more: these are forgotten also where the tunnel has heard them from other
// hosts. With all, put is everything. None of put's owners is an IPv6 router.
func (l locator) Bind(sw string, all bool, put []overlay.Binding, removed []overlay.Address) error {
	o := l.overlays
	if !o.loaded {
		return nil
	}
	now, err := o.now()
	if err != nil {
		return err
	}
	want := map[abi.BindingKey]bool{}
	for i := range put {
		key, ok := o.bindingKey(sw, put[i].Address)
		if !ok {
			continue
		}
		want[key] = true
		b := abi.ToldBinding{MAC: put[i].MAC, Flags: abi.BindingAdvertised,
			Seen: now - min(uint64(max(put[i].Age, 0).Seconds()*float64(o.kernel.hz)), now-1)}
		if err := o.maps.ToldBindings.Put(key, &b); err != nil {
			return fmt.Errorf("write which MAC has %s: %w", put[i].IP, err)
		}
	}
	for _, a := range removed {
		if key, ok := o.bindingKey(sw, a); ok && !want[key] {
			if err := o.unbind(key); err != nil {
				return err
			}
		}
	}
	if !all {
		return nil
	}
	slot := o.kernel.slots.Ports[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	return o.unbindTold(func(key abi.BindingKey) bool { return key.Segment>>16 != slot || want[key] })
}

// unbind forgets one address of another host. What was heard from a guest of this host stays: the controllers say of it
// only what this host has told them, and that is how it knows it.
func (o *overlays) unbind(key abi.BindingKey) error {
	var heard abi.Binding
	err := entries.Delete(o.maps.ToldBindings, key)
	if err == nil {
		err = o.maps.Bindings.Lookup(key, &heard)
	}
	if err == nil && heard.Flags&abi.BindingHere == 0 {
		err = entries.Delete(o.maps.Bindings, key)
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget which MAC has an address: %w", err)
	}
	return nil
}

// unbindTold forgets what controllers have told, except for what stays.
func (o *overlays) unbindTold(stays func(abi.BindingKey) bool) error {
	told, err := entries.All[abi.BindingKey, abi.ToldBinding](o.maps.ToldBindings)
	if err != nil {
		return err
	}
	for key := range told {
		if stays(key) {
			continue
		}
		if err := entries.Delete(o.maps.ToldBindings, key); err != nil {
			return fmt.Errorf("forget which MAC has an address: %w", err)
		}
	}
	return nil
}

// Unbind forgets bindings that the tunnel has heard, which Bindings has listed. An address that another MAC has taken
// meanwhile is forgotten too: then its owner is asked for.
func (l locator) Unbind(list []overlay.Bound) error {
	for i := range list {
		key, ok := l.overlays.bindingKey(list[i].Switch, list[i].Address)
		if !ok {
			continue
		}
		if err := entries.Delete(l.overlays.maps.Bindings, key); err != nil {
			return fmt.Errorf("forget which MAC has %s: %w", list[i].IP, err)
		}
	}
	return nil
}

// unbindStale forgets the bindings of segments that are gone, whose numbers other segments may get, and those that are
// out of force. An address that is contested stays so until that is over.
func (o *overlays) unbindStale() error {
	now, err := o.now()
	if err != nil {
		return err
	}
	segments := o.boundSegments()
	heard, err := entries.All[abi.BindingKey, abi.Binding](o.maps.Bindings)
	if err != nil {
		return err
	}
	for key, b := range heard {
		_, holds := segments.bound(key, now, b.Seen, o.kernel.hz)
		_, there := segments[key.Segment]
		if holds || there && int64(b.Contested-now) > 0 && b.Contested != 0 {
			continue
		}
		if err := entries.Delete(o.maps.Bindings, key); err != nil {
			return fmt.Errorf("forget which MAC has an address: %w", err)
		}
	}
	return o.unbindTold(func(key abi.BindingKey) bool { _, ok := segments[key.Segment]; return ok })
}
