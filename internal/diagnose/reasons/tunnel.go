package reasons

import "heddle/internal/abi"

// tunnel returns the reasons of tunnels, which carry overlay segments to other hosts.
func tunnel() []Reason {
	const neighbours = "switches[].tunnel.neighbours"
	const peers = "switches[].tunnel.peers"
	return []Reason{
		{Reason: abi.ReasonTunnelUnknownEndpoint, About: Frame,
			Meaning: "An overlay frame came from an address that is not an endpoint of another host here: a " +
				"host that is not in the list, or a forged sender.",
			Policy: peers,
			Change: "Add the other host's endpoint to the tunnel's `peers` if the host belongs to the " +
				"overlay; else find out who sends to the tunnel's UDP port.",
			Command: apply, Statements: []string{"S105"}},
		{Reason: abi.ReasonTunnelUnknownVni, About: Frame,
			Meaning: "An overlay frame is for a VNI, or a VLAN inside it, in which this host has no port.",
			Policy:  "portGroups[].overlay.vni",
			Change: "Nothing, if the other host has ports there and this one has not; else give the port " +
				"groups of both hosts the same VNI and VLAN.",
			Command: showPort, Statements: []string{"S105"}},
		{Reason: abi.ReasonTunnelMTU, About: Copy,
			Meaning: "With the outer headers (50 bytes over IPv4, 70 over IPv6, 4 more with a VLAN inside) " +
				"the packet does not fit the underlay. The sender is told what fits if it is IPv6, or IPv4 that " +
				"must not be fragmented.",
			Policy: "mtu",
			Change: "Raise the MTU of the devices with the tunnel's endpoints and of the network between " +
				"them, or lower that of the guests.",
			Command: apply, Statements: []string{"S94"}},
		{Reason: abi.ReasonTunnelNoEndpoint, About: Copy,
			Meaning: "The tunnel knows no endpoint of another host for the frame, or this host has none of " +
				"its address family.",
			Policy: peers + ", switches[].tunnel.endpoints",
			Change: "Add the other hosts to the tunnel's `peers`, and an endpoint of each address family that " +
				"they use.",
			Command: apply, Statements: []string{"S84"}},
		{Reason: abi.ReasonNeighbourAnswered, About: Copy,
			Meaning: "A guest asked who has an address that a guest of another host is known to have: this " +
				"host answered, and no other host was asked.",
			Policy:  neighbours,
			Change:  "Nothing. To have other hosts asked always, set `answer: false`.",
			Command: apply, Statements: []string{"S85"}},
		{Reason: abi.ReasonNeighbourHere, About: Copy,
			Meaning: "A guest asked who has an address that another guest of this host has: the owner " +
				"answers, and no other host was asked.",
			Policy:  neighbours,
			Change:  "Nothing. To have other hosts asked always, set `answer: false`.",
			Command: apply, Statements: []string{"S85"}},
		{Reason: abi.ReasonNeighbourLimit, About: Copy,
			Meaning: "A guest asked more often than 200 times in a second for addresses whose owners are " +
				"known: it was not answered.",
			Policy:  neighbours,
			Change:  "Find out what the guest does: it scans the network, or is not well.",
			Command: showPort, Statements: []string{"S85"}},
	}
}

// healthProbes returns the reasons of the probes with which hosts check the network.
func healthProbes() []Reason {
	return []Reason{
		{Reason: abi.ReasonGuestHealthProbe, About: Frame,
			Meaning: "The guest sent a frame of EtherType 0x8922, that of the probes with which hosts check " +
				"the network: the switch has a health check, and no guest may send such frames.",
			Policy: "healthCheck",
			Change: "Have the guest stop it. If it is a hypervisor whose own beacons or health check must " +
				"pass, take `healthCheck: true` out of the switch.",
			Command: apply, Statements: []string{"S109"}},
	}
}
