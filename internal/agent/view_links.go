package agent

import (
	"heddle/internal/api"
	"heddle/internal/lacp"
	"heddle/internal/lldp"
	"heddle/internal/plan"
)

// viewLinks adds what LACP and LLDP know of an uplink.
func (a *Agent) viewLinks(sw *plan.Switch, v *api.Uplink) {
	id := plan.PortID{Switch: v.Switch, Name: v.Name}
	if g := sw.LAGOf(v.Name); g != nil {
		v.LAG = &api.LAGMember{Name: g.Name, Reason: a.verdicts.Why(id)}
		a.viewMember(plan.PortID{Switch: sw.Name, Name: g.Name}, v.Name, v.LAG)
	}
	if a.neighbours == nil {
		return
	}
	if s, ok := a.neighbours.Status(id); ok {
		v.LLDP = &api.LLDP{Neighbours: []api.Neighbour{}, In: s.In, Out: s.Out, Bad: s.Bad, Refused: s.Refused}
		for _, n := range s.Neighbours {
			v.LLDP.Neighbours = append(v.LLDP.Neighbours, viewNeighbour(n))
		}
	}
}

func (a *Agent) viewMember(lag plan.PortID, name string, v *api.LAGMember) {
	s, ok := a.lags.Status(lag)
	if !ok {
		return
	}
	for _, m := range s.Members {
		if m.Name != name {
			continue
		}
		v.Used, v.Single, v.Reason, v.Receive, v.Mux = m.Usable, m.Single, m.Reason, m.Receive, m.Mux
		v.Actor = viewInfo(m.Actor)
		if !m.Partner.System.MAC.IsZero() {
			p := viewInfo(m.Partner)
			v.Partner = &p
		}
		v.In, v.Out, v.Bad, v.Markers = m.Counters.In, m.Counters.Out, m.Counters.Bad, m.Counters.Markers
	}
}

func viewInfo(i lacp.Info) api.LACPInfo {
	return api.LACPInfo{SystemPriority: i.System.Priority, System: i.System.MAC.String(), Key: i.Key,
		PortPriority: i.Port.Priority, Port: i.Port.Number, State: i.State.Words()}
}

func viewNeighbour(n lldp.Neighbour) api.Neighbour {
	p := n.PDU
	v := api.Neighbour{Chassis: p.Chassis.String(), Port: p.Port.String(), PortDescription: lldp.Clean(p.PortDescription), SystemName: lldp.Clean(p.SystemName),
		SystemDescription: lldp.Clean(p.SystemDescription), Source: n.Source.String(), Since: n.Since, Heard: n.Heard, TTL: p.TTL}
	if p.Capabilities != nil {
		v.Capabilities = p.Capabilities.Enabled.Words()
	}
	for _, m := range p.Management {
		v.Management = append(v.Management, m.Address.String())
	}
	v.PVID, _ = p.PVID()
	v.MaxFrame, _ = p.MaxFrame()
	return v
}
