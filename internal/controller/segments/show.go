package segments

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/overlay/wire"
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

// Get is a segment with who is where; nil for one without members.
func (h *Hub) Get(vni span.VNI) *controllerv1.GetSegmentResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.table.Snapshot(vni)
	if all == nil {
		return nil
	}
	out := &controllerv1.GetSegmentResponse{Segment: h.segment(vni)}
	hosts, macs := map[string]span.Host{}, map[string]uint32{}
	for _, m := range all.Members {
		hosts[m.ID] = m
	}
	for i := range all.Put {
		p := &all.Put[i]
		if _, is := p.Key.MAC(); is {
			macs[p.Host]++
		}
		one := &controllerv1.SegmentLocation{Key: p.Key.String(), Host: hosts[p.Host].Name,
			Source: controllerv1.SegmentSource(p.Source), Generation: p.Generation,
			Since: timestamppb.New(time.UnixMilli(p.Since))}
		if _, is := p.Key.Address(); is {
			one.Owner = p.Owner.String()
		}
		host := hosts[p.Host]
		if e, ok := host.EndpointFor(p.Key); ok {
			one.Endpoint = e.Address.String()
		}
		for _, id := range h.table.Rivals(vni, p.Key) {
			other, _, _ := h.table.Host(id)
			one.Contested = append(one.Contested, other.Name)
		}
		out.Locations = append(out.Locations, one)
	}
	for _, m := range all.Members {
		_, connected, _ := h.table.Host(m.ID)
		out.Members = append(out.Members, &controllerv1.SegmentMember{Host: m.Name, Connected: connected,
			Endpoints: wire.Endpoints(m.Endpoints), Macs: macs[m.ID]})
	}
	slices.SortFunc(out.Members, func(a, b *controllerv1.SegmentMember) int {
		return cmp.Compare(a.GetHost(), b.GetHost())
	})
	return out
}
