package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// LocatedAt is behind which endpoint of another host frames have shown a MAC, and when the last one did, on the clock
// of the snapshot.
type LocatedAt struct {
	Endpoint netip.Addr
	Seen     time.Duration
}

// Located reads what the live tunnel of a switch knows of where a MAC of an overlay segment is: what the controllers
// or the file say, of the segment and of the whole VNI, and what frames have shown; nothing where the endpoint is gone.
func (s *Snapshot) Located(sw string, vni uint32, vlan uint16, mac plan.MAC) (said []overlay.Location, shown *LocatedAt,
	err error) {
	number, has := s.overlays[compile.OverlaySegment{Switch: sw, VNI: vni, VLAN: vlan}]
	slot, tunnel := s.slots[plan.PortID{Switch: sw, Name: spec.TunnelName}]
	if !has || !tunnel || s.tunnels.Locations == nil {
		return nil, nil, nil
	}
	key := overlay.Key{VNI: vni, MAC: mac}
	var at LocatedAt
	for _, way := range []struct {
		abi.LocationKey
		overlay.Inside
	}{{compile.WholeVNI(slot, key), 0}, {compile.InSegment(slot, uint32(number), mac), overlay.In(vlan)}} {
		var by overlay.Source
		if by, at, err = s.locatedBy(way.LocationKey); err != nil {
			return nil, nil, err
		}
		if key.Inside = way.Inside; at.Endpoint.IsValid() {
			said = append(said, overlay.Location{Key: key, Endpoint: at.Endpoint, Source: by})
		}
	}
	if err == nil {
		_, at, err = s.locatedBy(abi.LocationKey{Segment: slot<<16 | uint32(number), MAC: mac})
	}
	if err == nil && at.Endpoint.IsValid() {
		shown = &at
	}
	return said, shown, err
}

// locatedBy is an entry of the table of locations; of no endpoint where there is none, or its endpoint is gone.
func (s *Snapshot) locatedBy(key abi.LocationKey) (by overlay.Source, at LocatedAt, err error) {
	var l abi.Location
	var e abi.Endpoint
	if err = s.tunnels.Locations.Lookup(key, &l); err == nil {
		err = s.tunnels.Endpoints.Lookup(l.Endpoint, &e)
	}
	switch {
	case errors.Is(err, ebpf.ErrKeyNotExist):
		return 0, at, nil
	case err != nil:
		return 0, at, fmt.Errorf("find out where %s is: %w", plan.MAC(key.MAC), err)
	case e.Flags&abi.EndpointNamed != 0:
		at = LocatedAt{compile.AddressOf(e), s.at(l.Seen)}
	}
	return sourceOf(l.Source), at, nil
}

// locatedIn is where a MAC is that is in a segment of the tunnels' tables.
func locatedIn(tables tunnelMaps, segment uint32, key overlay.Key, now, hz uint64) (overlay.Location, bool, error) {
	var t abi.Tunnel
	if err := tables.Tunnels.Lookup(segment>>16, &t); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return overlay.Location{}, false, fmt.Errorf("read a tunnel of the kernel's table: %w", err)
	}
	return located(tables, t, segment, key, now, hz)
}

// located is where a MAC is that is in a segment of that tunnel: by the file, else by frames of the segment where the
// tunnel learns, else by what the controllers say of the segment, else by what they say of the whole VNI.
func located(tables tunnelMaps, t abi.Tunnel, segment uint32, key overlay.Key, now, hz uint64) (l overlay.Location,
	ok bool, err error) {
	said, ok, err := locatedBy(tables, compile.WholeVNI(segment>>16, key), now, hz)
	if err != nil || ok && said.Source == overlay.Static {
		said.Key = key
		return said, ok, err
	}
	ways := []abi.LocationKey{compile.InSegment(segment>>16, segment&0xffff, key.MAC)}
	if t.Rules&abi.TunnelLearns != 0 {
		ways = append([]abi.LocationKey{{Segment: segment, MAC: key.MAC}}, ways...)
	}
	for _, way := range ways {
		if l, is, err := locatedBy(tables, way, now, hz); is || err != nil {
			l.Key = key
			return l, is, err
		}
	}
	said.Key = key
	return said, ok, nil
}

// locatedBy is the location in the tunnels' tables, without its key.
func locatedBy(tables tunnelMaps, key abi.LocationKey, now, hz uint64) (l overlay.Location, ok bool, err error) {
	var at abi.Location
	if err := tables.Locations.Lookup(key, &at); err != nil {
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return l, false, nil
		}
		return l, false, fmt.Errorf("find out where %s is: %w", plan.MAC(key.MAC), err)
	}
	if at.Source == abi.LocationLearned && now > at.Seen && now-at.Seen > abi.LocationAgeing*hz {
		return l, false, nil
	}
	var e abi.Endpoint
	if err := tables.Endpoints.Lookup(at.Endpoint, &e); err != nil {
		return l, false, fmt.Errorf("find out where %s is: %w", plan.MAC(key.MAC), err)
	}
	if e.Flags&abi.EndpointNamed == 0 {
		return l, false, nil
	}
	return overlay.Location{Endpoint: compile.AddressOf(e), Source: sourceOf(at.Source)}, true, nil
}

// sourceOf is how a location of the kernel's table is known.
func sourceOf(source uint32) overlay.Source {
	return map[uint32]overlay.Source{abi.LocationLearned: overlay.Learned, abi.LocationAnnounced: overlay.Announced,
		abi.LocationStatic: overlay.Static}[source]
}
