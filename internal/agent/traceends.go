package agent

import (
	"net"
	"net/netip"

	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// seen returns the ends of flows that a trace names by an address; metered reports whether any flows are metered.
func (fl *flowing) seen(ends ...string) (list []trace.Seen, metered bool) {
	for _, end := range ends {
		a, errAddress := netip.ParseAddr(end)
		m, errMAC := plan.ParseMAC(end)
		if fl.flows == nil || errAddress != nil && errMAC != nil {
			continue
		}
		q := api.FlowQuery{FlowFilter: api.FlowFilter{Direction: "ingress"}, Sort: "last", Limit: api.MaxFlowList}
		if a = a.Unmap().WithZone(""); errAddress == nil {
			q.Address = a.String()
		}
		found, err := fl.flows.Flows(q)
		if err != nil {
			continue // the end is then not found in flows
		}
		metered = metered || found.Metered
		for _, f := range found.Flows {
			if errAddress == nil && f.Source == a || errMAC == nil && f.SourceMAC == m {
				list = append(list, trace.Seen{At: plan.PortID{Switch: f.Switch, Name: f.Port}, MAC: f.SourceMAC,
					Addr: f.Source})
			}
		}
	}
	return list, metered
}

// claimed returns the addresses that were the source of frames refused at ports.
func (rp *reporter) claimed() (list []trace.Seen) {
	for at, refusals := range rp.refused.list {
		for _, r := range refusals {
			a, err := netip.ParseAddr(r.Address)
			m, bad := plan.ParseMAC(r.MAC)
			if err == nil && bad == nil {
				list = append(list, trace.Seen{At: at, MAC: m, Addr: a})
			}
		}
	}
	return list
}

// neighbours returns the host's neighbour entries, if a trace names an end by its IP address: who answered the host's
// own requests on host ports and uplinks.
func neighbours(p *plan.Plan, ends ...string) (list []trace.Seen) {
	for _, end := range ends {
		a, err := netip.ParseAddr(end)
		if err != nil {
			continue
		}
		a = a.Unmap().WithZone("")
		for _, device := range hostDevices(p) {
			dev, err := net.InterfaceByName(device)
			if err != nil {
				continue // it is gone, or not made yet
			}
			table, err := hostnet.Net{}.Neighbours(uint32(dev.Index))
			if err != nil {
				continue // the end is then not found among neighbours
			}
			for _, n := range table {
				if n.Address == a && n.MAC != [6]byte{} {
					list = append(list, trace.Seen{MAC: n.MAC, Addr: a})
				}
			}
		}
	}
	return list
}

// hostDevices returns the devices through which the host itself communicates with the switches' segments.
func hostDevices(p *plan.Plan) (list []string) {
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			list = append(list, u.Device)
		}
		for _, port := range sw.Ports {
			if port.Role == spec.Host {
				list = append(list, port.Device)
			}
		}
	}
	return list
}
