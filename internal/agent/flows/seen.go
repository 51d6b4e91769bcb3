package flows

import (
	"net/netip"

	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

// Seen returns the ends of flows that a trace names by an address; metered reports whether any flows are metered.
func (fl *Meter) Seen(ends ...string) (list []trace.Seen, metered bool) {
	for _, end := range ends {
		a, errAddress := netip.ParseAddr(end)
		m, errMAC := plan.ParseMAC(end)
		if fl.runner == nil || errAddress != nil && errMAC != nil {
			continue
		}
		q := api.FlowQuery{FlowFilter: api.FlowFilter{Direction: "ingress"}, Sort: "last", Limit: api.MaxFlowList}
		if a = a.Unmap().WithZone(""); errAddress == nil {
			q.Address = a.String()
		}
		found, err := fl.runner.Flows(q)
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
