package agent

import (
	"net"
	"net/netip"

	"heddle/internal/diagnose/trace"
	"heddle/internal/host/hostnet"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

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
