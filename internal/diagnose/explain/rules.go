package explain

// ruleFixes returns for each rule of advise the fix in general; a finding has the command or the lines for its case.
func ruleFixes() map[string]string {
	return map[string]string{
		"promiscuous": "Set promiscuous: reject, and macLearning with forgedTransmits: accept for a guest that has " +
			"several addresses behind it.",
		"forged-transmits": "Set forgedTransmits: accept for a hypervisor, bridge or router; else find out who in " +
			"the guest sends from other addresses.",
		"guest-tags": "Give the port a trunk with the guest's VLANs, or stop the guest from tagging.",
		"guest-bpdu": "Leave it, or open the bridge in the guest; an appliance that must take part gets bpdu " +
			"in guestLinkControl.",
		"guest-link-control": "Add the protocol to guestLinkControl where an appliance or a lab needs it; else leave " +
			"it.",
		"blocked-sender": "Unblock the port, or stop the guest.",
		"address-guard": "List the address at the port if it is the guest's own; else find out who in the guest " +
			"uses it.",
		"guest-dhcp-server": "Set dhcpServer: accept for the network's own servers; else stop the guest's.",
		"guest-router":      "Set routerAdvertisements: accept for the network's own routers; else stop the guest's.",
		"loop":              "Open one of the two ways that the frames go round by; the port comes back by itself.",
		"flood":             "Set a storm control rate at the port group, and find out why the guest sends that many.",
		"mac-limit":         "Raise macLearning.limit if that many stations are meant to be behind the port.",
		"mac-table":         "Raise the port's limit, or host.macTable, or lower the limit of ports that need fewer.",
		"mac-flaps": "Give one of the two guests another MAC, or end the second way to the station: a loop between " +
			"hosts, or a bond of which the physical switches know nothing.",
		"mac-twice":        "Give one of the two another MAC, or take away the second way to the station.",
		"mac-change":       "Set macChanges: accept, or set the guest's adapter back to the port's MAC.",
		"reflection-check": "Set checks.reversePath to true.",
		"uplink-vlan":      "Add the VLAN to the uplinks' vlans, and to the ports of the physical switches.",
		"wrong-vlan": "Put the port into a port group of the right VLAN, or have the physical switches carry this " +
			"one.",
		"neighbour-vlan": "Add the VLAN to the port of the physical switch, or give the port group the right one.",
		"ip-hash":        "Make the uplinks a LAG, or one channel on the physical switch; or use originating-port.",
		"lacp-without-lag": "Make a LAG of the uplinks that lead to that bundle (lags), or take its ports out of the " +
			"bundle on the physical switch.",
		"stp": "Make the port of the physical switch an edge port (portfast), or give the switch an upDelay of 30 s.",
		"storm": "Find the loop of the physical network, or who sends these broadcasts: by its switches' counters, " +
			"or heddle capture at the uplink. Turn on spanning tree and storm control there.",
		"half-open": "Look at cable, optics and the physical port; failureDetection: beacon takes such an " +
			"uplink out of use.",
		"no-uplink":     "Bring one of the uplinks back, or name others in teaming.",
		"team-degraded": "Bring the uplinks back before the next one fails.",
		"single-uplink": "Name a second uplink in teaming.active or teaming.standby.",
		"lag-member": "Make the bundle on the physical switch as the LAG is here: the same links, speed and LACP " +
			"mode.",
		"uplink-drained": "Take the uplink back when its maintenance is over: heddle uplink restore UPLINK.",
		"lag-degraded":   "Bring the LAG's other members back before the last one fails.",
		"learning-forged": "Set forgedTransmits: accept where MAC learning is on: behind such a port are several " +
			"addresses.",
		"learning-promiscuous": "Set promiscuous: reject where MAC learning is on: learning gives the guest what it " +
			"needs.",
		"promiscuous-uplinks": "Set checks.reversePathPromiscuous to true, or use MAC learning instead.",
		"guest-offloads":      "Give the guest a virtio adapter with checksum and segmentation offload, or vhost-net.",
		"single-queue":        "Give the device more receive queues: ethtool -L DEVICE combined N.",
		"mtu":                 "Raise the MTU of the device, the switch or the guest that has the smaller one.",
		"neighbour-mtu":       "Raise the MTU of the physical switch's port, or lower the switch's here.",
		"device-missing":      "Start what makes the device, or correct its name.",
		"program-before":      "Detach the program, or see to it that it runs behind the switch.",
		"past-switch":         "Connect those guests to ports of the switch, or give their devices another parent.",
		"device-losses":       "Look at cable and optics, enlarge the rings, or spread the queues over more CPUs.",
		"device-refused":      "Give the guest more queues or CPU, or a longer queue.",
		"guest-overdue":       "Say that the guest runs here, if it does: heddle port activate PORT.",
		"no-controller":       "See that a controller is reached, or join again: heddle host show says what is wrong.",
		"flow-room":           "Raise ipfix.maxFlows, or meter fewer ports.",
		"flow-collector":      "Start the collector, or correct its address, port and transport.",
	}
}
