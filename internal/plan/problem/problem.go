package problem

import (
	"errors"
	"strings"
	"syscall"
	"time"
)

// Code names a state. "" means that nothing is wrong.
type Code string

// States of devices: there is none, or it can't serve.
const (
	NoDevice      Code = "no-device"      // no device is bound
	DeviceMissing Code = "device-missing" // Device does not exist; it may be another name of Peer
	// OwnerAwaited: Device was the device of the VM that the port belongs to, and is gone. Who starts the VM connects
	// the port, Peer, again.
	OwnerAwaited   Code = "owner-awaited"
	Loopback       Code = "loopback-device"  // lo
	SwitchEnd      Code = "switch-end"       // Device is the switch's end of a host port's pair, with alias Peer
	BondMember     Code = "bond-member"      // Device is a member of Peer, a Kind: bond or team
	BridgeMember   Code = "bridge-member"    // Device is in bridge Peer
	DeviceMember   Code = "device-member"    // Device is a member of Peer
	VLANDevice     Code = "vlan-device"      // Device is a VLAN interface
	WrongDevice    Code = "wrong-device"     // Device is a Kind, which can't be a vNIC
	SharedDevice   Code = "shared-device"    // Device is a Kind, which gets frames for its own MAC alone
	NotEthernet    Code = "not-ethernet"     // Device is a Kind, which carries no Ethernet frames
	DeviceNotTaken Code = "device-not-taken" // Device can't be taken: Detail
	DeviceInUse    Code = "device-in-use"    // Device can't be that of Peer, whose guest arrives: Detail
	DeviceFailed   Code = "device-failed"    // Device can't be prepared: Detail
	HostInterface  Code = "host-interface"   // a host port's interface can't be made: Detail
	IPv6Off        Code = "ipv6-off"         // IPv6 is off on the host port's interface Device
	NoEndpoint     Code = "no-endpoint"      // an endpoint of the tunnel Device can't be used: Detail
	EndpointShared Code = "endpoint-shared"  // another host has an endpoint of the tunnel Device as well: Detail
	// LowMTU: Device has MTU Have, below the Want of switch Peer. Of an endpoint, which is Other, Device may be a host
	// port of switch Kind; or the path to the endpoint Other of host Device has that MTU, with Kind as PathKind.
	LowMTU       Code = "low-mtu"
	AttachQueued Code = "attach-queued" // its device waits to be attached
	AttachFailed Code = "attach-failed" // Device can't be attached: Detail
	LinkDown     Code = "link-down"     // Device or the guest's end of it is down; Kind as UplinkKind
	LinkSetDown  Code = "link-set-down" // the hypervisor has set the link of VM Peer's adapter behind Device down
	// DeviceRenamed: Device, which the agent made, is called Peer, and can't have its name: Detail, or another has it.
	DeviceRenamed Code = "device-renamed"
	DeviceMoved   Code = "device-moved" // Device, which the agent made, is in another network namespace
	RunsBefore    Code = "runs-before"  // other people's programs see frames before the switch
)

// States of adapters and guests.
const (
	DuplicateMAC      Code = "duplicate-mac"      // the adapter has the address MAC of port Peer
	RivalGuest        Code = "rival-guest"        // the guest of port Peer runs with the same MAC
	MonitorMissing    Code = "monitor-missing"    // QEMU monitor Device is not there
	MonitorUnserved   Code = "monitor-unserved"   // the monitor's socket has no listener
	MonitorForbidden  Code = "monitor-forbidden"  // the monitor may not be opened
	MonitorSilent     Code = "monitor-silent"     // the monitor does not answer
	MonitorFlood      Code = "monitor-flood"      // the monitor sends more than it should
	MonitorClosed     Code = "monitor-closed"     // the monitor closed the connection
	MonitorUnreadable Code = "monitor-unreadable" // the monitor's answer can't be read
	AdapterAmbiguous  Code = "adapter-ambiguous"  // the monitor shows several adapters
	AdapterUnknown    Code = "adapter-unknown"    // the monitor does not show the adapter
	GuestUnsure       Code = "guest-unsure"       // it is not known yet whether the guest runs here: Detail
	GuestArrives      Code = "guest-arrives"      // a migration is about to bring the guest: Detail
	GuestLeft         Code = "guest-left"         // a migration has taken the guest away: Detail
	GuestOverdue      Code = "guest-overdue"      // the guest was expected since Since: port Peer, Detail
)

// States of loops.
const (
	// LoopSeen: the port is blocked because of a loop that devices show: Detail describes it.
	LoopSeen Code = "loop-seen"
	// LoopProbed: the port is blocked because of a loop that probes found.
	LoopProbed Code = "loop-probed"
)

// NoUplink is the state of a port that is up while none of the uplinks that its teaming names, Peer, can be used. Kind
// is "tunnel" for a port of an overlay segment whose tunnel, Peer, can't be used.
const NoUplink Code = "no-uplink"

// States of uplinks that are up but not used.
const (
	Drained          Code = "drained"         // uplink Peer: no team uses it; Since: when by command, zero: by the file
	UplinkBlocked    Code = "uplink-blocked"  // no frame passes the uplink; Peer and Since as in Drained
	UpDelay          Code = "up-delay"        // the link is up again, and must stay up for For
	Flapping         Code = "flapping"        // the link went down more than Want times within a minute
	BeaconsLost      Code = "beacons-lost"    // for Want rounds the uplink heard no other, and none heard it
	BeaconsDeaf      Code = "beacons-deaf"    // no beacon of another uplink arrives on the uplink
	BeaconsUnheard   Code = "beacons-unheard" // the uplink's beacons arrive on no other uplink
	LACPNoCarrier    Code = "lacp-no-carrier"
	LACPNoPartner    Code = "lacp-no-partner"
	LACPNoPartnerYet Code = "lacp-no-partner-yet"
	LACPSingleOther  Code = "lacp-single-other" // no partner, and Peer is used as a single link
	LACPLoop         Code = "lacp-loop"         // the LACPDUs are this host's own
	LACPSilent       Code = "lacp-partner-silent"
	LACPWaiting      Code = "lacp-waiting" // waits for the other members
	LACPNotInSync    Code = "lacp-not-in-sync"
	LACPNotReady     Code = "lacp-partner-not-ready"
	LACPIndividual   Code = "lacp-individual"    // the partner treats the link as a single one
	LACPOtherPartner Code = "lacp-other-partner" // the link has another partner than the LAG
	LACPNoSocket     Code = "lacp-no-socket"     // LACP can't run on the uplink: Detail
	// LACPWithoutLAG: the uplink is used, in no LAG, and since Since a device, Peer with the key Have, speaks LACP at
	// its other end.
	LACPWithoutLAG Code = "lacp-without-lag"
	// StormOutside: since Since Have broadcasts a second arrive by the uplink, Want of them this host's own; 0 if these
	// are the smaller part.
	StormOutside Code = "storm-outside"
	// STPDiscards: since Since the bridge Peer at the other end says that its port does not forward yet.
	STPDiscards Code = "stp-discards"
)

// PathKind is the Kind of a LowMTU problem of a path to another host. No switch has such a name.
const PathKind = "path/"

// UplinkKind is the Kind of a LinkDown problem of an uplink, which has no guest.
const UplinkKind = "uplink"

// Problem is a state with its details; each code says which fields are set. The zero value means no problem.
type Problem struct {
	Code   Code
	Device string // a device, or the socket of a QEMU monitor
	Peer   string // another device, port, uplink, switch or partner
	Other  string
	Kind   string // of Device or Peer
	MAC    string
	Have   int // the actual value
	Want   int // the expected value, or a limit
	For    time.Duration
	Since  time.Time
	// Detail is text from elsewhere, such as the kernel, or words for people only. Nothing is decided by it.
	Detail string
}

// Of returns a state without details.
func Of(c Code) Problem { return Problem{Code: c} }

// Failed returns the state for an error; Have is then the kernel's number of the error. Errors that were joined are one
// line, as a state is a sentence.
func Failed(c Code, device string, err error) Problem {
	p := Problem{Code: c, Device: device, Detail: strings.ReplaceAll(err.Error(), "\n", "; ")}
	var no syscall.Errno
	if errors.As(err, &no) {
		p.Have = int(no)
	}
	return p
}

// None reports whether nothing is wrong.
func (p Problem) None() bool { return p.Code == "" }

// Same reports whether two states are the same, whatever the words.
func (p Problem) Same(o Problem) bool {
	if !p.Since.Equal(o.Since) {
		return false
	}
	p.Detail, o.Detail, p.Since, o.Since = "", "", time.Time{}, time.Time{}
	return p == o
}

// Ref returns the state for a plan.Fact, nil for none. Do not change what it points to.
func (p Problem) Ref() *Problem {
	if p.None() {
		return nil
	}
	return &p
}

// Value returns the state that Ref has made, or no problem for nil.
func (p *Problem) Value() Problem {
	if p == nil {
		return Problem{}
	}
	return *p
}

// First returns the first of the given states that is a problem.
func First(all ...Problem) Problem {
	for _, p := range all {
		if !p.None() {
			return p
		}
	}
	return Problem{}
}
