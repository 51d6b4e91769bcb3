package view

import (
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/stp"
)

// Links is what is known about the physical network at the uplinks.
type Links struct {
	// Out returns why an uplink is not used although its link is up; none for nothing.
	Out func(uplink plan.PortID) problem.Problem
	// LAG and LLDP return the state of a LAG and of an uplink's neighbours; false if the protocol is not used there.
	LAG  func(lag plan.PortID) (lacp.Status, bool)
	LLDP func(uplink plan.PortID) (linkproto.LLDPStatus, bool)
	// Outside returns what the physical network does wrong at an uplink that is in use; none for nothing.
	Outside func(uplink plan.PortID) problem.Problem
	// Tree returns what the other end of an uplink says by spanning tree; false for nothing.
	Tree func(uplink plan.PortID) (linkproto.Heard[stp.Port], bool)
}

// add adds what is heard at an uplink by LACP, LLDP and spanning tree.
func (l Links) add(sw *plan.Switch, v *api.Uplink) {
	id := plan.PortID{Switch: v.Switch, Name: v.Name}
	if g := sw.LAGOf(v.Name); g != nil {
		why := l.Out(id)
		v.LAG = &api.LAGMember{Name: g.Name, Reason: why.Text(), ReasonCode: why.Code}
		l.member(plan.PortID{Switch: sw.Name, Name: g.Name}, v.Name, v.LAG)
	}
	if s, ok := l.LLDP(id); ok {
		v.LLDP = &api.LLDP{Neighbours: Neighbours(s.Neighbours), In: s.In, Out: s.Out, Bad: s.Bad, Refused: s.Refused}
	}
	if t, ok := l.Tree(id); ok {
		p := t.What
		v.SpanningTree = &api.SpanningTree{Bridge: p.Bridge.String(), Root: p.Root.String(), Port: p.Number,
			Rapid: p.Rapid, Discards: p.Discards, Since: t.Since}
	}
}

func (l Links) member(lag plan.PortID, name string, v *api.LAGMember) {
	s, ok := l.LAG(lag)
	if !ok {
		return
	}
	for _, m := range s.Members {
		if m.Name != name {
			continue
		}
		v.Used, v.Single, v.Receive, v.Mux = m.Usable, m.Single, m.Receive, m.Mux
		v.Reason, v.ReasonCode = m.Reason.Text(), m.Reason.Code
		v.Actor = info(m.Actor)
		if !m.Partner.System.MAC.IsZero() {
			p := info(m.Partner)
			v.Partner = &p
		}
		v.In, v.Out, v.Bad, v.Markers = m.Counters.In, m.Counters.Out, m.Counters.Bad, m.Counters.Markers
	}
}

func info(i lacp.Info) api.LACPInfo {
	return api.LACPInfo{SystemPriority: i.System.Priority, System: i.System.MAC.String(), Key: i.Key,
		PortPriority: i.Port.Priority, Port: i.Port.Number, State: i.State.Words()}
}

// Neighbours shows what LLDP hears on an uplink; never nil.
func Neighbours(heard []lldp.Neighbour) []api.Neighbour {
	list := make([]api.Neighbour, len(heard))
	for i, n := range heard {
		list[i] = neighbour(n)
	}
	return list
}

func neighbour(n lldp.Neighbour) api.Neighbour {
	p := n.PDU
	v := api.Neighbour{Chassis: p.Chassis.String(), Port: p.Port.String(),
		PortDescription: lldp.Clean(p.PortDescription), SystemName: lldp.Clean(p.SystemName),
		SystemDescription: lldp.Clean(p.SystemDescription), Source: n.Source.String(), Since: n.Since, Heard: n.Heard,
		TTL: p.TTL, By: p.By}
	if p.Capabilities != nil {
		v.Capabilities = p.Capabilities.Enabled.Words()
	}
	for _, m := range p.Management {
		v.Management = append(v.Management, m.Address.String())
	}
	v.PVID, _ = p.PVID()
	v.MaxFrame, _ = p.MaxFrame()
	for _, n := range p.VLANs() {
		v.VLANs = append(v.VLANs, api.NeighbourVLAN{ID: n.ID, Name: lldp.Clean(n.Name)})
	}
	return v
}
