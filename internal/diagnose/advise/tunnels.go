package advise

import (
	"slices"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

func tunnelRules() []Rule {
	return []Rule{
		{"tunnel-endpoint", api.FindingWrong, "an end of a tunnel is not there, or another host has it, too",
			"the state of the tunnel's endpoints",
			"guests of overlay segments do not reach those of some hosts, or of none",
			"Remove what the problem names; where two hosts have one address, give one of them another.",
			tunnelEndpoint},
		{"tunnel-mtu", api.FindingWrong, "a tunnel, or the path to another host, is too small for the guests' packets",
			"the MTU of the endpoint's device, what the other host says of its own, this host's routes, and what " +
				"routers on the way have said",
			"longer packets are refused; guests that do not heed the ICMP error open connections that then hang",
			"Raise the MTU of the endpoints' devices and of the network between, or lower mtu of the switch.",
			tunnelMTU},
		{"tunnel-peers", api.FindingNote, "a tunnel knows no other host",
			"the endpoints of other hosts that the tunnel knows, and the segments in which the host has ports",
			"guests of these segments reach each other on this host alone",
			"List the other hosts' endpoints as peers of the tunnel, or define the switch at controllers.",
			tunnelPeers},
	}
}

// eachTunnel calls visit with the tunnels whose state is known.
func eachTunnel(l *look, visit func(*plan.Switch, *api.Uplink)) {
	for _, sw := range l.Host.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		if v := l.uplink[sw.Tunnel.ID]; v != nil {
			visit(sw, v)
		}
	}
}

// onTunnel is a finding about a tunnel.
func onTunnel(l *look, sw *plan.Switch, sign, change string) api.Finding {
	return api.Finding{Switch: sw.Name, Uplink: sw.Tunnel.ID.Name, Sign: sign, Change: change,
		Command: l.command(sw.Tunnel.ID, "uplink show")}
}

// wrongTunnels are the tunnels with a problem.
func wrongTunnels(l *look, change string, codes ...problem.Code) (found []api.Finding) {
	eachTunnel(l, func(sw *plan.Switch, v *api.Uplink) {
		if slices.Contains(codes, v.ReasonCode) {
			found = append(found, onTunnel(l, sw, v.Reason, change))
		}
	})
	return found
}

func tunnelEndpoint(l *look) []api.Finding {
	shared := wrongTunnels(l, "Give this host an address that no other host has, and correct the tunnel's endpoints. "+
		"A host that is gone for good is taken out of the cluster by heddle host remove.", problem.EndpointShared)
	return append(shared, wrongTunnels(l, "Do what the problem says: set up a device that is down, give this host the "+
		"address that is missing or correct the tunnel's endpoints, or give the tunnel a UDP port that no other "+
		"program has, on all hosts.", problem.NoEndpoint, problem.DeviceFailed)...)
}

func tunnelMTU(l *look) []api.Finding {
	return wrongTunnels(l, "Raise the MTU of what it names, or lower mtu: of the switch.", problem.LowMTU)
}

func tunnelPeers(l *look) (found []api.Finding) {
	eachTunnel(l, func(sw *plan.Switch, v *api.Uplink) {
		if v.Tunnel == nil || v.Tunnel.Known > 0 || len(v.Tunnel.VNIs) == 0 || v.ReasonCode != "" {
			return
		}
		found = append(found, onTunnel(l, sw, "the tunnel knows no endpoint of another host, and this host has ports "+
			"in overlay segments", "If other hosts have ports there: list their endpoints as peers of the tunnel, or "+
			"define the switch at controllers, which tell hosts of each other."))
	})
	return found
}
