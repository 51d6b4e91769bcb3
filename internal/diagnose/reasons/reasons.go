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
	// Case is what trace and advise say of it in a case; the zero value where they look at more than the reason.
	Case Case
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
		{Reason: abi.ReasonMalformed, About: Frame,
			Meaning: "The frame is too short for an Ethernet header, or for the VLAN tags it claims to have.",
			Policy:  "IEEE 802.3, 802.1Q",
			Change:  "Nothing: the sender's driver or program makes broken frames.",
			Command: showPort, Statements: []string{"S94"}},
		{Reason: abi.ReasonPortBlocked, About: Frame,
			Meaning: "The port or uplink the frame came in on is blocked.",
			Policy:  "blocked",
			Change: "Unblock the port, or take the uplink back (`heddle uplink restore`); where the file " +
				"blocks it, or its port group, take `blocked: true` out.",
			Command: unblock, Statements: []string{"S41"}},
		{Reason: abi.ReasonSourceGroup, About: Frame,
			Meaning: "The source address is a multicast or broadcast address, which no sender can have.",
			Policy:  "always on",
			Change:  "Nothing: fix the sender.",
			Command: showPort, Statements: []string{"D8"}},
		{Reason: abi.ReasonSourceZero, About: Frame,
			Meaning: "The source address is all zero.",
			Policy:  "always on",
			Change:  "Nothing: fix the sender.",
			Command: showPort, Statements: []string{"D8"}},
		{Reason: abi.ReasonGuestBPDU, About: Frame,
			Meaning: "A guest sent a spanning-tree frame, which could make the physical switch close the " +
				"host's uplink.",
			Policy: "checks.blockGuestBPDU",
			Change: "Set `checks: {blockGuestBPDU: false}` on the switch, if the guest is a bridge that must " +
				"take part in spanning tree.",
			Command: apply, Statements: []string{"S36"}},
		{Reason: abi.ReasonForgedTransmit, About: Frame,
			Meaning: "The source address is not the port's own, and the port may not send with another.",
			Policy:  "security.forgedTransmits",
			Change: "Set `security: {forgedTransmits: accept}` on the port group, for guests that are " +
				"hypervisors, bridges or routers with a virtual MAC.",
			Command: apply, Statements: []string{"S1", "S2"}},
		{Reason: abi.ReasonGuestTagged, About: Frame,
			Meaning: "The guest sent a tagged frame on a port whose VLAN the switch sets.",
			Policy:  "vlan.access, vlan.none",
			Change: "Use a trunk, `vlan: {trunk: [\"10-20\"]}`, for guests that tag themselves; or stop the " +
				"guest from tagging.",
			Command: apply, Statements: []string{"S23", "D9"}},
		{Reason: abi.ReasonVLANNotAllowed, About: Frame,
			Meaning: "The frame's VLAN is not one that the port's trunk carries; 0 stands for untagged " +
				"frames.",
			Policy:  "vlan.trunk",
			Change:  "Add the VLAN to the trunk's list; the tag protocol has to be the trunk's too (`outer`).",
			Command: apply, Statements: []string{"S24", "S25"}},
		{Reason: abi.ReasonMACLimit, About: Frame,
			Meaning: "The port has learned as many addresses as it may, the source is a new one, and the " +
				"policy is to drop.",
			Policy:  "security.macLearning.limit, limitPolicy",
			Change:  "Raise `limit`, or set `limitPolicy: allow`; first see which addresses the port holds.",
			Command: "heddle mac list", Statements: []string{"S15"}},
	}
}

// lookup returns the reasons that are decided when the receivers are looked up.
func lookup() []Reason {
	return []Reason{
		{Reason: abi.ReasonOwnDestination, About: Frame,
			Meaning: "The destination lives behind the very port the frame came from.",
			Policy:  "security.macLearning",
			Change: "Nothing: the two stations are on one side of the port. If the destination is elsewhere, " +
				"another port uses the same address.",
			Command: "heddle mac list", Statements: []string{"S12"}},
		{Reason: abi.ReasonUnknownUnicast, About: Frame,
			Meaning: "Nobody on the switch is known to have the destination, and no port or uplink takes " +
				"frames for unknown destinations.",
			Policy: "security.macLearning.enabled, unicastFlooding",
			Change: "Set `security: {macLearning: {enabled: true}}` on the port group of guests with several " +
				"addresses, or correct the destination.",
			Command: apply, Statements: []string{"S13", "S14", "S32"}},
		{Reason: abi.ReasonNoReceiver, About: Frame,
			Meaning: "A broadcast or multicast frame came into a segment without another member.",
			Policy:  "vlan",
			Change: "Nothing, if the segment is meant to be empty; else give the other port the same VLAN or " +
				"the switch an uplink.",
			Command: showPort, Statements: []string{"S26", "S33"}},
		{Reason: abi.ReasonMTUExceeded, About: Either,
			Meaning: "The packet is longer than the MTU of the switch, or of the receiver's device.",
			Policy:  "mtu",
			Change: "Raise `mtu` on the switch and of the device and its owner's adapter, or lower it at the " +
				"sender.",
			Command: apply, Statements: []string{"S94"}},
		{Reason: abi.ReasonUplinkVLAN, About: Either,
			Meaning: "The uplink does not carry the frame's VLAN.",
			Policy:  "uplinks[].vlans",
			Change: "Add the VLAN to the uplink's `vlans`, 0 for untagged frames; the physical switch's port " +
				"must carry it as well.",
			Command: apply, Statements: []string{"S27"}},
		{Reason: abi.ReasonNoUplink, About: Either,
			Meaning: "None of the uplinks and LAGs that the port's teaming names is usable: each is missing, " +
				"down, or out of use (LACP, beacons, the up-delay).",
			Policy:  "teaming.active, teaming.standby",
			Change:  "See why each is not used and bring one back, or name another in `teaming`.",
			Command: "heddle uplink list", Statements: []string{"S45"}, Case: Case{OfFrame: true}},
	}
}

// waiting returns the reason for a receiver whose guest is to arrive.
func waiting() Reason {
	return Reason{Reason: abi.ReasonReceiverWaiting, About: Copy,
		Meaning: "The receiver's guest still runs elsewhere: it is to arrive by a migration.",
		Policy:  "none: the guest's migration",
		Change: "Nothing, as a rule: the guest's first frame, or QEMU's word that it runs, ends the wait. " +
			"Where neither comes, say that the guest runs here.",
		Command: "heddle port activate PORT", Statements: []string{"S99"}}
}

// elsewhere returns the reason for a receiver whose guest has left.
func elsewhere() Reason {
	return Reason{Reason: abi.ReasonGuestElsewhere, About: Copy,
		Meaning: "The receiver's guest has left by a migration, and runs elsewhere. Unicast for it that an " +
			"uplink brings is counted here too.",
		Policy: "none: the guest's migration",
		Change: "Nothing, for broadcasts and right after a migration. When unicast keeps coming, the physical " +
			"network has not learned where the guest runs: see that its port at the other host announces itself " +
			"(`teaming: {notifySwitches: true}`). If the guest runs here, say so.",
		Command: "heddle port activate PORT", Statements: []string{"S50", "S99"}}
}

func guestLinkControl() Reason {
	return Reason{Reason: abi.ReasonGuestLinkControl, About: Frame,
		Meaning: "A guest sent a frame of link control (LACP, LLDP, EAPOL, PAUSE, CDP and the like), which " +
			"the physical switch would take for the host's.",
		Policy: "security.guestLinkControl",
		Change: "Set `security: {guestLinkControl: [lldp]}` (lacp, lldp, eapol, ptp, cdp) on the port group, " +
			"for network appliances and labs.",
		Command: apply, Statements: []string{"S97"}}
}

// tableFull returns the reason that is decided when a source is to be learned and the host's table is full.
func tableFull() Reason {
	return Reason{Reason: abi.ReasonMACTableFull, About: Frame,
		Meaning: "The host's table of learned addresses is full for this port: the ports' limits add up to " +
			"more than it holds, and the port has its fair share of it.",
		Policy: "host.macTable, security.macLearning.limit",
		Change: "Set a larger `host: {macTable: …}` and restart the agent, or lower `limit` on port groups " +
			"whose guests need fewer addresses.",
		Command: "heddle mac list --learned", Statements: []string{"S15"}}
}

// delivery returns the reasons that are decided for one receiver's copy.
func delivery() []Reason {
	return []Reason{
		{Reason: abi.ReasonReceiverBlocked, About: Copy,
			Meaning: "The receiving port or uplink is blocked.",
			Policy:  "blocked",
			Change: "Unblock the port, or take the uplink back (`heddle uplink restore`); where the file " +
				"blocks it, or its port group, take `blocked: true` out.",
			Command: unblock, Statements: []string{"S41"}},
		{Reason: abi.ReasonReceiverDown, About: Copy,
			Meaning: "The receiver's device, or its owner's end of it, is down.",
			Policy:  "none: the device's state",
			Change:  "Bring the device or the guest's adapter up.",
			Command: showPort, Statements: []string{"S94"}},
		{Reason: abi.ReasonMACChange, About: Copy,
			Meaning: "The receiver's adapter uses another address than the port's, and may not; or another " +
				"port has that address.",
			Policy: "security.macChanges",
			Change: "Set `security: {macChanges: accept}` on the port group, or set the adapter back to the " +
				"port's address.",
			Command: apply, Statements: []string{"S3", "S4"}},
		{Reason: abi.ReasonReversePath, About: Copy,
			Meaning: "The frame came in on an uplink that is not the receiver's own: it has come, or will " +
				"come, by that one too.",
			Policy: "checks.reversePath, checks.reversePathPromiscuous",
			Change: "Nothing, as a rule: the check keeps out duplicates. It is switched off per switch under " +
				"`checks`.",
			Command: apply, Statements: []string{"S38", "S39", "S40"}},
		{Reason: abi.ReasonReflected, About: Copy,
			Meaning: "The physical network sent back what this host sent less than a second ago.",
			Policy:  "checks.reversePath, checks.reversePathPromiscuous",
			Change: "Nothing, as a rule: the check keeps out duplicates. It is switched off per switch under " +
				"`checks`.",
			Command: apply, Statements: []string{"S91"}},
		{Reason: abi.ReasonDeviceRefused, About: Copy,
			Meaning: "The receiver's device did not take the copy: its queue was full.",
			Policy:  "none: the device's queue",
			Change: "Give the guest more queues or CPU, or raise net.core.netdev_max_backlog on hosts with " +
				"large broadcast segments.",
			Command: "heddle stats PORT", Statements: []string{"S94"}},
	}
}

// loop returns the reason for ports that are part of a loop.
func loop() Reason {
	return Reason{Reason: abi.ReasonLoopBlocked, About: Either,
		Meaning: "Heddle has blocked the port because a loop goes through it; or the frame is a probe that " +
			"looks for loops, which is for the agent alone.",
		Policy: "security.loopDetection",
		Change: "Open the loop: take one of the two ways away that frames go round by. The port comes back by " +
			"itself; unblocking it has that tried at once.",
		Command: unblock, Statements: []string{"S110", "D30"}}
}
