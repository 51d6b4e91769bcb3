package reasons

import "heddle/internal/abi"

// tunnel returns the reasons of tunnels, which carry overlay segments to other hosts.
func tunnel() []Reason {
	const neighbours = "switches[].tunnel.neighbours"
	const peers = "switches[].tunnel.peers"
	return []Reason{
		{abi.ReasonTunnelUnknownEndpoint, Frame, "An overlay frame came from an address that is not an endpoint of " +
			"another host here: a host that is not in the list, or a forged sender.", peers,
			"Add the other host's endpoint to the tunnel's `peers` if the host belongs to the overlay; else find out " +
				"who sends to the tunnel's UDP port.", apply, []string{"S105"}},
		{abi.ReasonTunnelUnknownVni, Frame, "An overlay frame is for a VNI, or a VLAN inside it, in which this host " +
			"has no port.", "portGroups[].overlay.vni",
			"Nothing, if the other host has ports there and this one has not; else give the port groups of both " +
				"hosts the same VNI and VLAN.", showPort, []string{"S105"}},
		{abi.ReasonTunnelMTU, Copy, "With the outer headers (50 bytes over IPv4, 70 over IPv6, 4 more with a VLAN " +
			"inside) the packet does not fit the underlay. The sender is told what fits if it is IPv6, or IPv4 that " +
			"must not be fragmented.", "mtu",
			"Raise the MTU of the devices with the tunnel's endpoints and of the network between them, or lower that " +
				"of the guests.", apply, []string{"S94"}},
		{abi.ReasonTunnelNoEndpoint, Copy, "The tunnel knows no endpoint of another host for the frame, or this host " +
			"has none of its address family.", peers + ", switches[].tunnel.endpoints",
			"Add the other hosts to the tunnel's `peers`, and an endpoint of each address family that they use.", apply,
			[]string{"S84"}},
		{abi.ReasonNeighbourAnswered, Copy, "A guest asked who has an address that a guest of another host is " +
			"known to have: this host answered, and no other host was asked.", neighbours,
			"Nothing. To have other hosts asked always, set `answer: false`.", apply, []string{"S85"}},
		{abi.ReasonNeighbourHere, Copy, "A guest asked who has an address that another guest of this host has: the " +
			"owner answers, and no other host was asked.", neighbours,
			"Nothing. To have other hosts asked always, set `answer: false`.", apply, []string{"S85"}},
		{abi.ReasonNeighbourLimit, Copy, "A guest asked more often than 200 times in a second for addresses whose " +
			"owners are known: it was not answered.", neighbours,
			"Find out what the guest does: it scans the network, or is not well.", showPort, []string{"S85"}},
	}
}

// healthProbes returns the reasons of the probes with which hosts check the network.
func healthProbes() []Reason {
	return []Reason{
		{abi.ReasonGuestHealthProbe, Frame, "The guest sent a frame of EtherType 0x8922, that of the probes with " +
			"which hosts check the network: the switch has a health check, and no guest may send such frames.",
			"healthCheck", "Have the guest stop it. If it is a hypervisor whose own beacons or health check must " +
				"pass, take `healthCheck: true` out of the switch.", apply, []string{"S109"}},
	}
}
