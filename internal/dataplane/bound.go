package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Bound says which MAC has an address of an overlay segment, as the tunnel's program would find it at the time of the
// copy; false where it would find nobody, or not know which of two. The VLAN is that inside the VNI, 0 for none.
func (s *Snapshot) Bound(sw string, a overlay.Address) (b overlay.Bound, ok bool, err error) {
	number, has := s.overlays[compile.OverlaySegment{Switch: sw, VNI: a.VNI, VLAN: a.VLAN}]
	slot, tunnel := s.slots[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	if !has || !tunnel || s.tunnels.Bindings == nil {
		return b, false, nil
	}
	key := abi.BindingKey{Segment: slot<<16 | uint32(number)}
	sixteen := a.IP.As16()
	copy(bytesOf(key.Address[:]), sixteen[:])
	var t abi.Tunnel
	var heard abi.Binding
	var told abi.ToldBinding
	for _, read := range []error{s.tunnels.Tunnels.Lookup(slot, &t), s.tunnels.Bindings.Lookup(key, &heard),
		s.tunnels.ToldBindings.Lookup(key, &told)} {
		if read != nil && !errors.Is(read, ebpf.ErrKeyNotExist) {
			return b, false, fmt.Errorf("find out who has %s: %w", a.IP, read)
		}
	}
	in := boundSegments{key.Segment: {compile.OverlaySegment{Switch: sw, VNI: a.VNI, VLAN: a.VLAN}, uint64(t.Hold)}}
	b, ok = in.known(key, heard, told, s.ticks, s.hz)
	if t.Hold == 0 || heard.Contested != 0 && int64(heard.Contested-s.ticks) > 0 {
		return overlay.Bound{}, false, nil
	}
	return b, ok, nil
}
