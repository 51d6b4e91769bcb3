package dataplane

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// HeardAt is what a tunnel has heard of an address; see abi.Binding. Times are on the clock of the snapshot, 0 = never.
type HeardAt struct {
	MAC, Rival               plan.MAC
	Here, Advertised, Router bool
	Seen, Changed, Contested time.Duration
	Turns                    int
	// Unannounced: the owner here has sent nothing to several stations since the address is its own.
	Unannounced bool
	// Unverified: it is not sure that MAC has the address; see enum binding_flag for the other three. Asked is in
	// eighths of a second.
	Unverified, Questioned, Unheard, Probed bool
	Asked                                   uint16
}

// ToldAt is what controllers have told of an address.
type ToldAt struct {
	MAC  plan.MAC
	Seen time.Duration
}

// Bound reads what the live tunnel of a switch knows of an address of an overlay segment; nil for nothing. Whether that
// still counts is the reader's to say.
func (s *Snapshot) Bound(sw string, a overlay.Address) (heard *HeardAt, told *ToldAt, err error) {
	number, has := s.overlays[compile.OverlaySegment{Switch: sw, VNI: a.VNI, VLAN: a.VLAN}]
	slot, tunnel := s.slots[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	if !has || !tunnel || s.tunnels.Bindings == nil {
		return nil, nil, nil
	}
	key := abi.BindingKey{Segment: slot<<16 | uint32(number)}
	sixteen := a.IP.As16()
	copy(bytesOf(key.Address[:]), sixteen[:])
	var h abi.Binding
	if err = s.tunnels.Bindings.Lookup(key, &h); err == nil {
		heard = &HeardAt{MAC: h.MAC, Rival: h.Rival, Here: h.Flags&abi.BindingHere != 0,
			Advertised: h.Flags&abi.BindingAdvertised != 0, Router: h.Flags&abi.BindingRouter != 0, Seen: s.at(h.Seen),
			Changed: s.at(h.Changed), Contested: s.at(h.Contested), Turns: int(h.Turns),
			Unannounced: h.Flags&abi.BindingUnannounced != 0,
			Unverified:  h.Flags&abi.BindingUnverified != 0, Questioned: h.Flags&abi.BindingAsked != 0,
			Unheard: h.Flags&abi.BindingUnheard != 0, Probed: h.Flags&abi.BindingProbed != 0, Asked: h.Asked}
	}
	var t abi.ToldBinding
	if err == nil || errors.Is(err, ebpf.ErrKeyNotExist) {
		if err = s.tunnels.ToldBindings.Lookup(key, &t); err == nil {
			told = &ToldAt{MAC: t.MAC, Seen: s.at(t.Seen)}
		}
	}
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, nil, fmt.Errorf("find out who has %s: %w", a.IP, err)
	}
	return heard, told, nil
}
