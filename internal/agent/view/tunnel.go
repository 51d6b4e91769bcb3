package view

import (
	"cmp"
	"net/netip"
	"slices"

	"heddle/internal/api"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// tunnel returns a switch's tunnel as the uplink of its overlay segments.
func (src Source) tunnel(sw *plan.Switch) api.Uplink {
	t := sw.Tunnel
	v := api.Uplink{Switch: t.ID.Switch, Name: t.ID.Name, Device: t.Device, Number: t.Number,
		Monitoring: t.Monitoring.String()}
	var why problem.Problem
	v.State, why = src.StateOf(t.ID, false)
	v.Reason, v.ReasonCode = reason(why, nil)
	f := src.Applied.Facts[t.ID]
	v.MTU = f.MTU
	r := src.Applied.Reach[sw.Name]
	v.Tunnel = &api.Tunnel{Port: uint32(t.Port), Replication: string(t.Replication), Learning: r.Learn,
		Endpoints: []string{}, VNIs: slices.Concat([]uint32{}, sw.VNIs()), Peers: peers(r),
		Known: uint32(len(r.Endpoints))}
	for _, a := range f.Endpoints {
		v.Tunnel.Endpoints = append(v.Tunnel.Endpoints, a.String())
	}
	return v
}

// peers are the first endpoints of other hosts, by host and address.
func peers(r overlay.Reach) []api.TunnelPeer {
	in := map[netip.Addr]uint32{}
	for _, s := range r.Segments {
		for _, a := range s.Members {
			in[a]++
		}
	}
	all := slices.SortedFunc(slices.Values(r.Endpoints), func(a, b overlay.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), a.Address.Compare(b.Address))
	})
	list := []api.TunnelPeer{}
	for _, e := range all[:min(len(all), api.MostPeers)] {
		list = append(list, api.TunnelPeer{Host: e.Host, Address: e.Address.String(), Segments: in[e.Address]})
	}
	return list
}
