package explain

// policyMeanings returns what each policy field does.
func policyMeanings() map[string]string {
	return map[string]string{
		"blocked": "No frame enters or leaves by the port.",
		"vlan": "Which frames the port takes, and how they are tagged: an access port is in one VLAN and sees no " +
			"tags, a " +
			"trunk passes the listed VLANs with their tags, none is for untagged frames. It is inherited as a whole.",
		"security.promiscuous": "Whether the guest gets frames that are for others, when its adapter asks for them. " +
			"For " +
			"guests that run guests, MAC learning does the same at a fraction of the cost.",
		"security.macChanges": "Whether the guest may use another MAC for its adapter than the port's, and still get " +
			"frames.",
		"security.forgedTransmits": "Whether the guest may send from other MACs than its adapter's, as hypervisors, " +
			"bridges and virtual routers do.",
		"security.loopDetection": "Whether the port is blocked for a while when frames go round by it.",
		"security.guestLinkControl": "Which link control protocols the guest may speak to the physical switch. All " +
			"others are dropped, since the physical switch would take them for the host's.",
		"security.addressGuard.enabled": "Whether what the guest sends from IP addresses that are not its own is " +
			"dropped, in IP, ARP and neighbour discovery.",
		"security.addressGuard.addresses": "The guest's own IP addresses and prefixes, which the address guard lets " +
			"pass.",
		"security.dhcpServer":           "Whether the guest may answer DHCP and DHCPv6 as a server does.",
		"security.routerAdvertisements": "Whether the guest may say that it is an IPv6 router.",
		"security.macLearning.enabled": "Whether the switch remembers which MACs are behind the port, so that frames " +
			"for guests of a guest reach this port alone. Such a guest also needs forgedTransmits.",
		"security.macLearning.limit":       "How many MACs may be learned on the port.",
		"security.macLearning.limitPolicy": "What happens to frames from new MACs when the limit is reached.",
		"security.macLearning.ageing":      "How long a MAC that sends nothing stays learned.",
		"security.macLearning.unicastFlooding": "Whether the port gets frames for MACs that nobody on the switch is " +
			"known to have. Only ports that learn do.",
		"teaming.policy":   "How a port's frames choose among the active uplinks.",
		"teaming.active":   "The uplinks that are used, in order.",
		"teaming.standby":  "The uplinks that are used when no active one works.",
		"teaming.failback": "Whether traffic returns to an uplink that works again.",
		"teaming.notifySwitches": "Whether a port's MAC is announced on its new uplink after a failover, so that " +
			"physical switches send there at once.",
		"teaming.failureDetection": "How it is found out that an uplink does not work: by its link alone, or also by " +
			"beacons that the uplinks send to each other.",
		"monitoring.ipfix":       "Whether the flows of the port's traffic are metered.",
		"monitoring.observe":     "Which direction is metered, seen from the switch.",
		"stormControl.broadcast": "How many broadcast frames a second the guest may send; those above are dropped.",
		"stormControl.multicast": "How many multicast frames a second the guest may send; those above are dropped.",
		"stormControl.unknownUnicast": "How many frames a second for unknown MACs the guest may send; those above " +
			"are dropped.",
		"stormControl.burst": "How much of a storm control rate may come at once.",
	}
}
