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
			if item.Key.VLAN() == 0 {
				one.Put = append(one.Put, itemOf(item.Key, &item.Claim))
			} else {
				one.PutInside = append(one.PutInside, itemOf(item.Key, &item.Claim))
			}
		}
		one.Removed, one.RemovedInside = keysOf(s.Removed)
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
		if n := len(s.GetPut()) + len(s.GetPutInside()); n > 0 {
			one.Put = make([]span.Item, n)
		}
		for i := range one.Put {
			if one.Put[i], err = readNth(s.GetPut(), s.GetPutInside(), i, readItem); err != nil {
				return r, err
			}
		}
		if one.Removed, err = readKeys(s.GetRemoved(), s.GetRemovedInside()); err != nil {
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
	if vlan := uint32(k.VLAN()); vlan != 0 || c.Untagged {
		m.Vlan = &vlan
	}
	return m
}

// readNth reads one of two lists: of those in no tagged VLAN, and of those inside.
func readNth[M, I any](list, inside []M, n int, read func(M, bool) (I, error)) (I, error) {
	if n < len(list) {
		return read(list[n], false)
	}
	return read(inside[n-len(list)], true)
}

// keyOf reads a key, which is in a tagged VLAN if it is inside.
func keyOf(bytes []byte, vlan uint32, inside bool) (k span.Key, err error) {
	if k, err = span.ParseKey(bytes); err != nil || !inside {
		return k, err
	}
	if vlan < 1 || vlan > 4094 {
		return k, fmt.Errorf("%s is in VLAN %d, which is none of 1 to 4094", k, vlan)
	}
	return k.In(uint16(vlan)), nil
}

func readItem(m *controllerv1.SegmentItem, inside bool) (i span.Item, err error) {
	if i.Key, err = keyOf(m.GetKey(), m.GetVlan(), inside); err != nil {
		return i, err
	}
	i.Claim = span.Claim{Source: span.Source(m.GetSource()), Generation: m.GetGeneration(), Order: m.GetOrder(),
		Since: m.GetSince()}
	if i.Source != span.Learned && i.Source != span.Port {
		return i, fmt.Errorf("%s has %s", i.Key, i.Source)
	}
	mac, isMAC := i.Key.MAC()
	i.Untagged = isMAC && !inside && m.Vlan != nil && m.GetVlan() == 0
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

// keysOf writes keys: of none in particular, and of tagged VLANs.
func keysOf(keys []span.Key) (list [][]byte, inside []*controllerv1.SegmentKey) {
	for _, k := range keys {
		if k.VLAN() == 0 {
			list = append(list, k.Bytes())
		} else {
			inside = append(inside, &controllerv1.SegmentKey{Vlan: uint32(k.VLAN()), Key: k.Bytes()})
		}
	}
	return list, inside
}

func readKeys(list [][]byte, inside []*controllerv1.SegmentKey) (keys []span.Key, err error) {
	for _, b := range list {
		k, err := span.ParseKey(b)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	for _, m := range inside {
		k, err := keyOf(m.GetKey(), m.GetVlan(), true)
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
		one := &controllerv1.SegmentPlace{Host: n, Item: itemOf(p.Key, &p.Claim)}
		if p.Key.VLAN() == 0 {
			m.Put = append(m.Put, one)
		} else {
			m.PutInside = append(m.PutInside, one)
		}
	}
	m.Removed, m.RemovedInside = keysOf(u.Removed)
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
	if n := len(m.GetPut()) + len(m.GetPutInside()); n > 0 {
		u.Put = make([]span.Place, n)
	}
	for i := range u.Put {
		u.Put[i], err = readNth(m.GetPut(), m.GetPutInside(), i, func(p *controllerv1.SegmentPlace, inside bool) (
			span.Place, error) {
			return readPlace(p, inside, m.GetHosts())
		})
		if err != nil {
			return nil, err
		}
	}
	u.Removed, err = readKeys(m.GetRemoved(), m.GetRemovedInside())
	return u, err
}

func readPlace(p *controllerv1.SegmentPlace, inside bool, hosts []string) (span.Place, error) {
	item, err := readItem(p.GetItem(), inside)
	if err == nil && int(p.GetHost()) >= len(hosts) {
		err = fmt.Errorf("%s is at host %d of %d", item.Key, p.GetHost(), len(hosts))
	}
	if err != nil {
		return span.Place{}, err
	}
	return span.Place{Key: item.Key, Located: span.Located{Host: hosts[p.GetHost()], Claim: item.Claim}}, nil
}

// Have writes what a host knows.
func Have(all map[span.VNI]span.Hash) (list []*controllerv1.SegmentHave) {
	for vni, h := range all {
		list = append(list, &controllerv1.SegmentHave{Vni: uint32(vni), Hash: h.Bytes()})
	}
	return list
}
