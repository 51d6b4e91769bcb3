package segments

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
)

// List are the segments that have members, in order.
func (h *Hub) List() (list []*controllerv1.Segment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, vni := range h.table.VNIs() {
		list = append(list, h.segment(vni))
	}
	return list
}

// segment is how much of one there is. The caller holds the lock.
func (h *Hub) segment(vni span.VNI) *controllerv1.Segment {
	n := h.table.Sizes(vni)
	return &controllerv1.Segment{Vni: uint32(vni), Hosts: uint32(n.Hosts), Macs: uint32(n.MACs),
		Addresses: uint32(n.Addresses), Contested: uint32(n.Contested)}
}

// Query selects locations of a segment.
type Query struct {
	// Key is one MAC or address, in whatever VLAN; the zero value is all.
	Key span.Key
	// Host is the name of one host; "" for all.
	Host string
	// Limit is how many locations are told, at least 1.
	Limit int
}

// view is what is shown of a segment, copied while the hub was locked.
type view struct {
	*span.Update
	size   *controllerv1.Segment
	hosts  map[string]shownHost
	rivals map[span.Key][]string // ids of hosts
}

// shownHost is a host as it is shown.
type shownHost struct {
	span.Host
	connected bool
}

// look copies a segment; nil for one without members.
func (h *Hub) look(vni span.VNI) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.table.Snapshot(vni)
	if all == nil {
		return nil
	}
	v := &view{Update: all, size: h.segment(vni), hosts: map[string]shownHost{}, rivals: h.table.Contested(vni)}
	for _, m := range all.Members {
		_, connected, _ := h.table.Host(m.ID)
		v.hosts[m.ID] = shownHost{m, connected}
	}
	return v
}

// Get is a segment with who is where; nil for one without members.
func (h *Hub) Get(vni span.VNI, q Query) *controllerv1.GetSegmentResponse {
	v := h.look(vni)
	if v == nil {
		return nil
	}
	out := &controllerv1.GetSegmentResponse{Segment: v.size, Members: v.members()}
	slices.SortFunc(v.Put, func(a, b span.Place) int { return a.Key.Compare(b.Key) })
	for i := range v.Put {
		p := &v.Put[i]
		switch {
		case q.Key != (span.Key{}) && q.Key != p.Key.In(0), q.Host != "" && q.Host != v.hosts[p.Host].Name:
		case len(out.Locations) == q.Limit:
			out.LeftOff++
		default:
			out.Locations = append(out.Locations, v.location(p))
		}
	}
	return out
}

// members are the hosts of the segment, by name.
func (v *view) members() (list []*controllerv1.SegmentMember) {
	macs := map[string]uint32{}
	for i := range v.Put {
		if _, is := v.Put[i].Key.MAC(); is {
			macs[v.Put[i].Host]++
		}
	}
	for id, h := range v.hosts {
		m := &controllerv1.SegmentMember{Host: h.Name, Connected: h.connected, Macs: macs[id]}
		for _, e := range h.Endpoints {
			m.At = append(m.At, &controllerv1.SegmentEndpoint{Address: e.Address.String(), Mtu: e.MTU, Down: e.Down})
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *controllerv1.SegmentMember) int { return cmp.Compare(a.GetHost(), b.GetHost()) })
	return list
}

// location is where one MAC or address is.
func (v *view) location(p *span.Place) *controllerv1.SegmentLocation {
	host := v.hosts[p.Host]
	one := &controllerv1.SegmentLocation{Key: p.Key.String(), Host: host.Name,
		Source: controllerv1.SegmentSource(p.Source), Generation: p.Generation,
		Since: timestamppb.New(time.UnixMilli(p.Since))}
	_, isAddress := p.Key.Address()
	if isAddress {
		one.Owner = p.Owner.String()
	}
	if vlan := uint32(p.Key.VLAN()); vlan != 0 || isAddress || p.Untagged {
		one.Vlan = &vlan
	}
	if e, ok := host.EndpointFor(p.Key); ok {
		one.Endpoint = e.Address.String()
	}
	for _, id := range v.rivals[p.Key] {
		one.Contested = append(one.Contested, v.hosts[id].Name)
	}
	return one
}
