package export

import (
	"reflect"

	"heddle/internal/flow"
)

// Kinds of ports, with the values of the vds shape.
const (
	uplinkPort = 1
	accessPort = 2
	tunnelPort = 3
)

// port is what records say about a point.
type port struct {
	number uint32
	kind   uint8 // 0 when the point is not known
	// overlay are the overlay segments, by their numbers in keys; nil where keys have VLANs.
	overlay *flow.Overlay
}

// vxlan is the type of a layer2SegmentId, in its first byte (IANA's registry of element 351).
const vxlan = 1 << 56

// segment returns the VLAN of a key, and its layer2SegmentId: the VNI with its type, 0 for none.
func (p port) segment(vlan uint16) (inside uint16, id uint64) {
	if s, ok := p.overlay.Segment(vlan); ok {
		return s.VLAN, vxlan | uint64(s.VNI)
	}
	return vlan & 0xfff, 0
}

// ports are the points by slot; they are computed again only when the points change.
type ports struct {
	from   flow.Points
	bySlot []port
	tunnel bool // one of the points is a tunnel
	ends   recentEnds
}

// leaves returns the endpoints between which the frames of a record leave for another host; false for a record of
// others, and where nothing is known of them.
func (p *ports) leaves(r *flow.Record) (flow.Ends, bool) {
	if !p.tunnel {
		return flow.Ends{}, false
	}
	way, ok := flow.CrossingOf(p, &r.Key, r.Total.In, r.Total.Out)
	if !ok || !way.Leaves {
		return flow.Ends{}, false
	}
	return p.ends.locate(way)
}

// Place implements flow.Places.
func (p *ports) Place(slot uint16) (*flow.Overlay, bool) {
	if int(slot) >= len(p.bySlot) {
		return nil, false
	}
	return p.bySlot[slot].overlay, p.bySlot[slot].kind == tunnelPort
}

// follow takes new points. Whoever passes a map does not change it, so the same map has the same content.
func (p *ports) follow(points flow.Points) {
	if p.bySlot != nil && reflect.ValueOf(points).UnsafePointer() == reflect.ValueOf(p.from).UnsafePointer() {
		return
	}
	p.from, p.tunnel, p.bySlot = points, false, make([]port, 1, len(points)+1)
	for slot, point := range points {
		for int(slot) >= len(p.bySlot) {
			p.bySlot = append(p.bySlot, port{})
		}
		kind := uint8(accessPort)
		switch {
		case point.IsTunnel():
			kind, p.tunnel = tunnelPort, true
		case point.Uplink:
			kind = uplinkPort
		}
		p.bySlot[slot] = port{number: point.Number, kind: kind, overlay: point.Overlay}
	}
}

func (p *ports) of(slot uint16) port {
	if int(slot) >= len(p.bySlot) {
		return port{}
	}
	return p.bySlot[slot]
}
