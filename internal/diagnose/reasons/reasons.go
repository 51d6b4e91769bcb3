package reasons

import (
	"slices"

	"heddle/internal/abi"
)

// About says for what a reason is decided: a frame or a copy.
type About string

// The values of About.
const (
	Frame  About = "frame"         // the whole frame is dropped; nobody gets it
	Copy   About = "copy"          // one receiver's copy is refused; others may get theirs
	Either About = "frame or copy" // for the arrival port the frame, for a receiver its copy
)

// Reason explains one reason for which a frame is dropped or a copy refused.
type Reason struct {
	Reason abi.Reason
	About  About
	// Meaning describes in one sentence what was found.
	Meaning string
	// Policy is the setting that causes it, as a path in the configuration file, or the standard that requires it.
	Policy string
	// Change is what to set, in the file or elsewhere, so that such frames pass; for frames that never should, what to
	// do instead.
	Change string
	// Command makes the change or, if nothing is to be changed, shows the state behind it.
	Command string
	// Statements are the numbered behaviours and decisions the reason implements.
	Statements []string
}

// Name returns the reason's public name, such as "forged-transmit".
func (r Reason) Name() string { return r.Reason.String() }

// Commands that several reasons share. FILE is the host's configuration, PORT and UPLINK names in it.
const (
	apply    = "heddle apply -f FILE"
	unblock  = "heddle port unblock PORT"
	showPort = "heddle port show PORT"
)

// Lookup returns the explanation of r; false for "none", which explains nothing, and for numbers that are no reason.
func Lookup(r abi.Reason) (Reason, bool) {
	for _, e := range Reasons() {
		if e.Reason == r {
			return e, true
		}
	}
	return Reason{}, false
}

// Reasons returns every reason in the order of its number.
func Reasons() []Reason {
	return slices.Concat(admission(), lookup(), delivery(),
		[]Reason{storm(), guestLinkControl(), tableFull(), loop(), waiting()}, guards(), []Reason{elsewhere()},
		tunnel(), healthProbes())
}

// admission returns the reasons that are decided when a frame enters.
func admission() []Reason {
	return []Reason{
		{abi.ReasonMalformed, Frame, "The frame is too short for an Ethernet header, or for the VLAN tags it claims " +
			"to have.",
			"IEEE 802.3, 802.1Q", "Nothing: the sender's driver or program makes broken frames.", showPort,
			[]string{"S94"}},
		{abi.ReasonPortBlocked, Frame, "The port or uplink the frame came in on is blocked.",
			"blocked",
			"Unblock the port, or take the uplink back (`heddle uplink restore`); where the file blocks it, " +
				"or its port group, take `blocked: true` out.",
			unblock, []string{"S41"}},
		{abi.ReasonSourceGroup, Frame, "The source address is a multicast or broadcast address, which no sender can " +
			"have.",
			"always on", "Nothing: fix the sender.", showPort, []string{"D8"}},
		{abi.ReasonSourceZero, Frame, "The source address is all zero.",
			"always on", "Nothing: fix the sender.", showPort, []string{"D8"}},
		{abi.ReasonGuestBPDU, Frame, "A guest sent a spanning-tree frame, which could make the physical switch close " +
			"the host's uplink.",
			"checks.blockGuestBPDU", "Set `checks: {blockGuestBPDU: false}` on the switch, if the guest is a bridge " +
				"that must take part in spanning tree.", apply, []string{"S36"}},
		{abi.ReasonForgedTransmit, Frame, "The source address is not the port's own, and the port may not send with " +
			"another.",
			"security.forgedTransmits", "Set `security: {forgedTransmits: accept}` on the port group, for guests " +
				"that are hypervisors, bridges or routers with a virtual MAC.", apply, []string{"S1", "S2"}},
		{abi.ReasonGuestTagged, Frame, "The guest sent a tagged frame on a port whose VLAN the switch sets.",
			"vlan.access, vlan.none", "Use a trunk, `vlan: {trunk: [\"10-20\"]}`, for guests that tag themselves; or " +
				"stop the guest from tagging.", apply, []string{"S23", "D9"}},
		{abi.ReasonVLANNotAllowed, Frame, "The frame's VLAN is not one that the port's trunk carries; 0 stands for " +
			"untagged frames.",
			"vlan.trunk", "Add the VLAN to the trunk's list; the tag protocol has to be the trunk's too (`outer`).",
			apply, []string{"S24", "S25"}},
		{abi.ReasonMACLimit, Frame, "The port has learned as many addresses as it may, the source is a new one, and " +
			"the policy is to drop.",
			"security.macLearning.limit, limitPolicy", "Raise `limit`, or set `limitPolicy: allow`; first see which " +
				"addresses the port holds.", "heddle mac list", []string{"S15"}},
	}
}

// lookup returns the reasons that are decided when the receivers are looked up.
func lookup() []Reason {
	return []Reason{
		{abi.ReasonOwnDestination, Frame, "The destination lives behind the very port the frame came from.",
			"security.macLearning", "Nothing: the two stations are on one side of the port. If the destination is " +
				"elsewhere, another port uses the same address.", "heddle mac list", []string{"S12"}},
		{abi.ReasonUnknownUnicast, Frame, "Nobody on the switch is known to have the destination, and no port or " +
			"uplink takes frames for unknown destinations.",
			"security.macLearning.enabled, unicastFlooding", "Set `security: {macLearning: {enabled: true}}` on the " +
				"port group of guests with several addresses, or correct the destination.", apply,
			[]string{"S13", "S14", "S32"}},
		{abi.ReasonNoReceiver, Frame, "A broadcast or multicast frame came into a segment without another member.",
			"vlan", "Nothing, if the segment is meant to be empty; else give the other port the same VLAN or the " +
				"switch an uplink.", showPort, []string{"S26", "S33"}},
		{abi.ReasonMTUExceeded, Either, "The packet is longer than the MTU of the switch, or of the receiver's device.",
			"mtu", "Raise `mtu` on the switch and of the device and its owner's adapter, or lower it at the sender.",
			apply, []string{"S94"}},
		{abi.ReasonUplinkVLAN, Either, "The uplink does not carry the frame's VLAN.",
			"uplinks[].vlans", "Add the VLAN to the uplink's `vlans`, 0 for untagged frames; the physical switch's " +
				"port must carry it as well.", apply, []string{"S27"}},
		{abi.ReasonNoUplink, Either, "None of the uplinks and LAGs that the port's teaming names is usable: each is " +
			"missing, down, or out of use (LACP, beacons, the up-delay).",
			"teaming.active, teaming.standby", "See why each is not used and bring one back, or name another in " +
				"`teaming`.", "heddle uplink list", []string{"S45"}},
	}
}

// storm returns the reason that is decided before a frame is flooded.
func storm() Reason {
	return Reason{abi.ReasonStormControl, Either, "The port has sent more broadcast, multicast or unknown-unicast " +
		"frames than its storm control lets through in that time.",
		"stormControl.broadcast, .multicast, .unknownUnicast", "Find out why the guest sends that many; if it " +
			"should, raise the rate of that kind of frames, or set it to 0 for no limit.", "heddle stats PORT",
		[]string{"D27"}}
}

// waiting returns the reason for a receiver whose guest is to arrive.
func waiting() Reason {
	return Reason{abi.ReasonReceiverWaiting, Copy, "The receiver's guest still runs elsewhere: it is to arrive by a " +
		"migration.",
		"none: the guest's migration", "Nothing, as a rule: the guest's first frame, or QEMU's word that it runs, " +
			"ends the wait. Where neither comes, say that the guest runs here.", "heddle port activate PORT",
		[]string{"S99"}}
}

// elsewhere returns the reason for a receiver whose guest has left.
func elsewhere() Reason {
	return Reason{abi.ReasonGuestElsewhere, Copy, "The receiver's guest has left by a migration, and runs elsewhere. " +
		"Unicast for it that an uplink brings is counted here too.",
		"none: the guest's migration", "Nothing, for broadcasts and right after a migration. When unicast keeps " +
			"coming, the physical network has not learned where the guest runs: see that its port at the other host " +
			"announces itself (`teaming: {notifySwitches: true}`). If the guest runs here, say so.",
		"heddle port activate PORT", []string{"S50", "S99"}}
}

func guestLinkControl() Reason {
	return Reason{abi.ReasonGuestLinkControl, Frame,
		"A guest sent a frame of link control (LACP, LLDP, EAPOL, PAUSE, CDP and the like), which the physical " +
			"switch would take for the host's.",
		"security.guestLinkControl", "Set `security: {guestLinkControl: [lldp]}` (lacp, lldp, eapol, ptp, cdp) on " +
			"the port group, for network appliances and labs.",
		apply, []string{"S97"}}
}

// tableFull returns the reason that is decided when a source is to be learned and the host's table is full.
func tableFull() Reason {
	return Reason{abi.ReasonMACTableFull, Frame, "The host's table of learned addresses is full for this port: the " +
		"ports' limits add up to more than it holds, and the port has its fair share of it.",
		"host.macTable, security.macLearning.limit", "Set a larger `host: {macTable: …}` and restart the agent, or " +
			"lower `limit` on port groups whose guests need fewer addresses.", "heddle mac list --learned",
		[]string{"S15"}}
}

// guards returns the reasons for owners that use addresses that are not their own, or offer services that they may not.
func guards() []Reason {
	const list = "Add the address to `security: {addressGuard: {addresses: […]}}` at the port, if it is the guest's " +
		"own; else see who in the guest uses it."
	return []Reason{
		{abi.ReasonIPSourceNotAllowed, Frame, "The guest sent IP from an address that is not one of its port's, or " +
			"in a form that hides the address.",
			"security.addressGuard.enabled", list, apply, []string{"S86", "S108", "D32"}},
		{abi.ReasonARPSenderNotAllowed, Frame, "The guest sent ARP in the name of an address that is not one of its " +
			"port's, or ARP that can't be read.",
			"security.addressGuard.enabled", list, apply, []string{"S108", "D32"}},
		{abi.ReasonNDTargetNotAllowed, Frame, "The guest announced to its IPv6 neighbours an address that is not one " +
			"of its port's, or hides what it tells them.",
			"security.addressGuard.enabled", list, apply, []string{"S108", "D32"}},
		{abi.ReasonGuestDHCPServer, Frame, "The guest answered DHCP or DHCPv6 as a server does, and may not.",
			"security.dhcpServer", "Set `security: {dhcpServer: accept}` on the port group of the network's DHCP " +
				"servers.", apply, []string{"S87", "D32"}},
		{abi.ReasonGuestRouterAdvertisement, Frame, "The guest advertised itself as an IPv6 router, and may not.",
			"security.routerAdvertisements", "Set `security: {routerAdvertisements: accept}` on the port group of " +
				"the network's routers.", apply, []string{"D32"}},
	}
}

// delivery returns the reasons that are decided for one receiver's copy.
func delivery() []Reason {
	return []Reason{
		{abi.ReasonReceiverBlocked, Copy, "The receiving port or uplink is blocked.",
			"blocked",
			"Unblock the port, or take the uplink back (`heddle uplink restore`); where the file blocks it, " +
				"or its port group, take `blocked: true` out.",
			unblock, []string{"S41"}},
		{abi.ReasonReceiverDown, Copy, "The receiver's device, or its owner's end of it, is down.",
			"none: the device's state", "Bring the device or the guest's adapter up.", showPort, []string{"S94"}},
		{abi.ReasonMACChange, Copy, "The receiver's adapter uses another address than the port's, and may not; or " +
			"another port has that address.",
			"security.macChanges", "Set `security: {macChanges: accept}` on the port group, or set the adapter back " +
				"to the port's address.", apply, []string{"S3", "S4"}},
		{abi.ReasonReversePath, Copy, "The frame came in on an uplink that is not the receiver's own: it has come, " +
			"or will come, by that one too.",
			"checks.reversePath, checks.reversePathPromiscuous",
			"Nothing, as a rule: the check keeps out duplicates. It is switched off per switch under `checks`.", apply,
			[]string{"S38", "S39", "S40"}},
		{abi.ReasonReflected, Copy, "The physical network sent back what this host sent less than a second ago.",
			"checks.reversePath, checks.reversePathPromiscuous",
			"Nothing, as a rule: the check keeps out duplicates. It is switched off per switch under `checks`.", apply,
			[]string{"S91"}},
		{abi.ReasonDeviceRefused, Copy, "The receiver's device did not take the copy: its queue was full.",
			"none: the device's queue", "Give the guest more queues or CPU, or raise net.core.netdev_max_backlog on " +
				"hosts with large broadcast segments.", "heddle stats PORT", []string{"S94"}},
	}
}

// loop returns the reason for ports that are part of a loop.
func loop() Reason {
	return Reason{abi.ReasonLoopBlocked, Either, "Heddle has blocked the port because a loop goes through it; or the " +
		"frame is a probe that looks for loops, which is for the agent alone.",
		"security.loopDetection", "Open the loop: take one of the two ways away that frames go round by. The port " +
			"comes back by itself; unblocking it has that tried at once.", unblock,
		[]string{"S110", "D30"}}
}
