package explain

// tunnelFields are those of a switch's tunnel and of the overlay segments of its port groups.
func tunnelFields() []objectField {
	const in, end, peer = "switches[].tunnel.", "switches[].tunnel.endpoints[].", "switches[].tunnel.peers[]."
	return []objectField{
		{end + "address", "An outer address of this host, whatever device it is on. In a definition for many hosts " +
			"give device or hostPort instead.", "an IPv4 or IPv6 address that other hosts reach",
			"that of the host port or device", "Tunnel endpoint, TEP (NSX)"},
		{end + "hostPort", "The host port that has the outer address: its port group has the VLAN and the team of " +
			"uplinks of the outer frames.", "a port with role: host, in no overlay segment itself", none,
			"TEP VLAN and teaming (NSX)"},
		{end + "device", "The interface of this host that has the outer address.", "a device name, at most 15 bytes",
			none, ""},
		{end + "name", "The endpoint's name in messages.", "a name", "the host port, device or address", ""},
		{in + "port", "The UDP port at which every host of the overlay receives. Another one leaves the usual one to " +
			"a tunnel of your own.", "1–65535, the same on all hosts; another one for each switch of a host", "4789",
			""},
		{in + "replication", "Who makes the copies of broadcasts and multicasts: the sender's host for all others, " +
			"or one host of each other subnet for the rest there.", "head, two-tier", "head",
			"Replication mode (NSX: head, hierarchical two-tier)"},
		{in + "neighbours.answer", "A guest that asks who has an address (ARP, neighbour discovery) gets the answer " +
			"from its own host, if that knows the owner.", "true, false", "true", "ARP suppression (NSX)"},
		{in + "neighbours.hold", "For how long the owner of an address is known after it was heard; then it is asked " +
			"for again.", "a duration of 1s–2h", "5m", ""},
		{in + "learning", "The host learns from what arrives which MAC is behind which endpoint; while it hears from " +
			"controllers, these say it.", "true, false", "true", ""},
		{peer + "address", "The endpoint of another host, for a host without controllers. Frames are taken from " +
			"peers alone.", "an IPv4 or IPv6 address, not one of this host's; at most 1024 peers", needed, ""},
		{peer + "name", "The other host's name in messages; endpoints with one name are one host.", "a name",
			"the address", ""},
		{peer + "subnet", "The network whose endpoints repeat frames for one another in two-tier replication.",
			"a network with the address, such as 192.0.2.0/24", "the /24 or /64 of the address", ""},
		{peer + "macs[].vni", "The segment of a MAC that is known to be behind the peer.", "1–16777214", needed, ""},
		{peer + "macs[].mac", "A MAC that is known to be behind the peer: frames to it go there alone.",
			"the address of one station; at most 4096 for each peer", needed, ""},
		{"switches[].portGroups[].overlay.vni", "The number of the overlay segment that the ports are in, in place " +
			"of a VLAN of the physical network; the switch's tunnel carries it. vlan is then about VLANs inside it, " +
			"and teaming does not apply.", "1–16777214, the same on all hosts of the segment",
			"none: the ports are in VLANs", "VNI of a segment (NSX)"},
	}
}
