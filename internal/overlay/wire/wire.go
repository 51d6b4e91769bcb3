// Package wire reads and writes package span's words as they go between hosts and controllers. What comes from
// elsewhere is checked: a message that is not well formed is refused whole. Pure.
package wire

import (
	"errors"
	"fmt"
	"net/netip"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
)

// Report writes a host's report.
func Report(r *span.Report) *controllerv1.SegmentReport {
	out := &controllerv1.SegmentReport{Whole: r.Whole, EndpointsSet: r.Endpoints != nil,
		Endpoints: Endpoints(r.Endpoints)}
	for i := range r.Segments {
		s := &r.Segments[i]
		one := &controllerv1.HostSegment{Vni: uint32(s.VNI), Left: s.Left, Whole: s.Whole}
		for _, item := range s.Put {
			one.Put = append(one.Put, itemOf(item.Key, &item.Claim))
		}
		for _, k := range s.Removed {
			one.Removed = append(one.Removed, k.Bytes())
		}
		out.Segments = append(out.Segments, one)
	}
	return out
}

// ReadReport reads a host's report.
func ReadReport(m *controllerv1.SegmentReport) (r span.Report, err error) {
	r.Whole = m.GetWhole()
	if m.GetEndpointsSet() {
		if r.Endpoints, err = ReadEndpoints(m.GetEndpoints()); err != nil {
			return r, err
		}
	}
	for _, s := range m.GetSegments() {
		one := span.SegmentReport{VNI: span.VNI(s.GetVni()), Left: s.GetLeft(), Whole: s.GetWhole()}
		if !one.VNI.Valid() {
			return r, fmt.Errorf("%d is no VNI", one.VNI)
		}
		if n := len(s.GetPut()); n > 0 {
			one.Put = make([]span.Item, n)
		}
		for i, p := range s.GetPut() {
			if one.Put[i], err = readItem(p); err != nil {
				return r, err
			}
		}
		if one.Removed, err = readKeys(s.GetRemoved()); err != nil {
			return r, err
		}
		r.Segments = append(r.Segments, one)
	}
	return r, nil
}

// Endpoints writes endpoints.
func Endpoints(list []span.Endpoint) (out []*controllerv1.TunnelEndpoint) {
	for _, e := range list {
		out = append(out, &controllerv1.TunnelEndpoint{Address: e.Address.AsSlice(), Mtu: e.MTU, Down: e.Down})
	}
	return out
}

// ReadEndpoints reads endpoints. The list is not nil.
func ReadEndpoints(list []*controllerv1.TunnelEndpoint) ([]span.Endpoint, error) {
	out := make([]span.Endpoint, 0, min(len(list), span.MostEndpoints))
	if len(list) > span.MostEndpoints {
		return nil, fmt.Errorf("a host has at most %d endpoints, these are %d", span.MostEndpoints, len(list))
	}
	for _, m := range list {
		a, ok := netip.AddrFromSlice(m.GetAddress())
		if !ok || a.Is4In6() || a.IsUnspecified() || a.IsMulticast() {
			return nil, fmt.Errorf("%x is no address of an endpoint", m.GetAddress())
		}
		out = append(out, span.Endpoint{Address: a, MTU: m.GetMtu(), Down: m.GetDown()})
	}
	return out, nil
}

func itemOf(k span.Key, c *span.Claim) *controllerv1.SegmentItem {
	m := &controllerv1.SegmentItem{Key: k.Bytes(), Source: controllerv1.SegmentSource(c.Source),
		Generation: c.Generation, Order: c.Order, Since: c.Since}
	if c.Owner != (plan.MAC{}) {
		m.Owner = c.Owner[:]
	}
	return m
}

func readItem(m *controllerv1.SegmentItem) (i span.Item, err error) {
	if i.Key, err = span.ParseKey(m.GetKey()); err != nil {
		return i, err
	}
	i.Claim = span.Claim{Source: span.Source(m.GetSource()), Generation: m.GetGeneration(), Order: m.GetOrder(),
		Since: m.GetSince()}
	if i.Source != span.Learned && i.Source != span.Port {
		return i, fmt.Errorf("%s has %s", i.Key, i.Source)
	}
	mac, isMAC := i.Key.MAC()
	owner := m.GetOwner()
	switch {
	case isMAC && (mac[0]&1 != 0 || mac == plan.MAC{}):
		return i, fmt.Errorf("%s is not the MAC of one station", mac)
	case isMAC && len(owner) == 0:
		return i, nil
	case isMAC || len(owner) != 6:
		return i, fmt.Errorf("%s has owner %x", i.Key, owner)
	}
	i.Owner = plan.MAC(owner)
	return i, nil
}

func readKeys(list [][]byte) (keys []span.Key, err error) {
	for _, b := range list {
		k, err := span.ParseKey(b)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Update writes an update.
func Update(u *span.Update) *controllerv1.SegmentUpdate {
	m := &controllerv1.SegmentUpdate{Vni: uint32(u.VNI), Gone: u.Gone, Whole: u.Whole, Left: u.Left,
		Hash: u.Hash.Bytes()}
	for _, h := range u.Members {
		m.Members = append(m.Members, &controllerv1.SegmentHost{Id: h.ID, Name: h.Name,
			Endpoints: Endpoints(h.Endpoints)})
	}
	hosts := map[string]uint32{}
	for i := range u.Put {
		p := &u.Put[i]
		n, ok := hosts[p.Host]
		if !ok {
			n = uint32(len(m.GetHosts()))
			hosts[p.Host] = n
			m.Hosts = append(m.Hosts, p.Host)
		}
		m.Put = append(m.Put, &controllerv1.SegmentPlace{Host: n, Item: itemOf(p.Key, &p.Claim)})
	}
	for _, k := range u.Removed {
		m.Removed = append(m.Removed, k.Bytes())
	}
	return m
}

// ReadUpdate reads an update.
func ReadUpdate(m *controllerv1.SegmentUpdate) (*span.Update, error) {
	u := &span.Update{VNI: span.VNI(m.GetVni()), Gone: m.GetGone(), Whole: m.GetWhole(), Left: m.GetLeft()}
	if u.Gone {
		return u, nil
	}
	var ok bool
	var err error
	if u.Hash, ok = span.ParseHash(m.GetHash()); !ok {
		return nil, errors.New("an update without a hash")
	}
	for _, h := range m.GetMembers() {
		one := span.Host{ID: h.GetId(), Name: h.GetName()}
		if len(h.GetEndpoints()) > 0 {
			if one.Endpoints, err = ReadEndpoints(h.GetEndpoints()); err != nil {
				return nil, err
			}
		}
		u.Members = append(u.Members, one)
	}
	if n := len(m.GetPut()); n > 0 {
		u.Put = make([]span.Place, n)
	}
	for i, p := range m.GetPut() {
		item, err := readItem(p.GetItem())
		if err != nil {
			return nil, err
		}
		if int(p.GetHost()) >= len(m.GetHosts()) {
			return nil, fmt.Errorf("%s is at host %d of %d", item.Key, p.GetHost(), len(m.GetHosts()))
		}
		u.Put[i] = span.Place{Key: item.Key, Located: span.Located{Host: m.GetHosts()[p.GetHost()], Claim: item.Claim}}
	}
	u.Removed, err = readKeys(m.GetRemoved())
	return u, err
}

// Have writes what a host knows.
func Have(all map[span.VNI]span.Hash) (list []*controllerv1.SegmentHave) {
	for vni, h := range all {
		list = append(list, &controllerv1.SegmentHave{Vni: uint32(vni), Hash: h.Bytes()})
	}
	return list
}
