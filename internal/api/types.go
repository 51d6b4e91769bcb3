package api

import (
	"fmt"
	"time"

	"heddle/internal/diagnose"
	"heddle/internal/observe"
	"heddle/internal/observe/accounts"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Version is the version of the protocol. The agent refuses a client of another version, and says which version it has.
// It changes when the contract changes in a way that a program of the version before would misread; additions do not
// change it.
const Version = 5

// AgentInfo identifies the agent that answers.
type AgentInfo struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	API     int       `json:"api"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Config is where the active configuration came from: a path, or "" if there is none yet.
	Config   string   `json:"config"`
	Warnings []string `json:"warnings,omitempty"`
	// Place is the boot and the network namespace of the agent's devices, as in its state.
	Place string `json:"place,omitempty"`
	// Lookalikes describe devices that have the alias of this agent's host ports and were not made by it.
	Lookalikes []string `json:"lookalikes,omitempty"`
	// Announcing is how many frames the agent has yet to send to announce changes to the physical network and the
	// ports' owners (S49, S50); 0 a second or so after the last change.
	Announcing int `json:"announcing"`
}

// State is everything that is active in the agent.
type State struct {
	Agent      AgentInfo   `json:"agent"`
	Switches   []Switch    `json:"switches"`
	PortGroups []PortGroup `json:"portGroups"`
	Uplinks    []Uplink    `json:"uplinks"`
	Ports      []Port      `json:"ports"`
}

// Switch is one switch.
type Switch struct {
	Name                   string    `json:"name"`
	Kind                   spec.Kind `json:"kind"`
	MTU                    int       `json:"mtu"`
	PortGroups             int       `json:"portGroups"`
	Ports                  int       `json:"ports"`
	PortsUp                int       `json:"portsUp"`
	Uplinks                []string  `json:"uplinks"`
	UplinksUp              int       `json:"uplinksUp"`
	ReversePath            bool      `json:"reversePath"`
	ReversePathPromiscuous bool      `json:"reversePathPromiscuous"`
	BlockGuestBPDU         bool      `json:"blockGuestBPDU"`
	// IPFIX is how the switch's flows are timed, stored and exported.
	IPFIX *IPFIX `json:"ipfix"`
}

// PortGroup is one port group with the policy that its ports inherit.
type PortGroup struct {
	Switch    string     `json:"switch"`
	Name      string     `json:"name"`
	VLAN      plan.VLAN  `json:"vlan"`
	Ports     int        `json:"ports"`
	PortsUp   int        `json:"portsUp"`
	Overrides []string   `json:"overrides"`
	Reset     bool       `json:"resetAtDisconnect"`
	Policy    []plan.Row `json:"policy"`
	// VNI is the overlay segment of its ports, in which their VLANs are; 0 for none.
	VNI uint32 `json:"vni,omitempty"`
}

// SegmentText names what the ports of the group are in: their VLANs, and the overlay segment that these are in.
func (g *PortGroup) SegmentText() string { return segmentText(g.VLAN, g.VNI) }

// segmentText is a VLAN policy within an overlay segment: "access 10", "VNI 5000", "VNI 5000, access 10".
func segmentText(v plan.VLAN, vni uint32) string {
	switch {
	case vni == 0:
		return v.String()
	case v.Mode == plan.VLANNone:
		return fmt.Sprintf("VNI %d", vni)
	}
	return fmt.Sprintf("VNI %d, %s", vni, v)
}

// PortState is the state of a port or an uplink.
type PortState string

// The states of a port.
const (
	Up      PortState = "up"      // frames pass
	Down    PortState = "down"    // the device or its owner's end is down or has no carrier
	Blocked PortState = "blocked" // by policy
	Pending PortState = "pending" // its device does not exist, or is not usable
	Waiting PortState = "waiting" // its guest runs elsewhere: it will arrive, or has left, by migration
	Drained PortState = "drained" // an uplink out of use for maintenance; arriving frames are accepted
	Out     PortState = "out"     // an uplink whose link is up but that is not used
)

// Uplink is one uplink.
type Uplink struct {
	Switch string    `json:"switch"`
	Name   string    `json:"name"`
	Device string    `json:"device"`
	State  PortState `json:"state"`
	Reason string    `json:"reason,omitempty"`
	// ReasonCode is the reason for programs; Reason describes it for people.
	ReasonCode problem.Code `json:"reasonCode,omitempty"`
	MAC        string       `json:"mac,omitempty"`
	MTU        int          `json:"mtu,omitempty"`
	// Speed is the speed that the device reports for its link in each direction, in bits per second; 0 if it reports
	// none.
	Speed uint64       `json:"speed,omitempty"`
	VLANs plan.VLANSet `json:"vlans"`
	// Number is the uplink's id on the host; ports and uplinks share the numbers.
	Number uint32 `json:"number"`
	// Monitoring is the metered direction: "off", "ingress", "egress" or "ingress and egress".
	Monitoring string `json:"monitoring"`
	// LAG is the LAG of which the uplink is a member, and the state of LACP; nil for an uplink outside a LAG.
	LAG *LAGMember `json:"lag,omitempty"`
	// Maintenance describes how the uplink is drained or blocked; nil for one in use.
	Maintenance *UplinkMaintenance `json:"maintenance,omitempty"`
	// LLDP is what is known about the device at the other end; nil if LLDP is off on the switch.
	LLDP *LLDP `json:"lldp,omitempty"`
	// RunsBefore are other people's programs that see the device's frames before the switch does.
	RunsBefore []ProgramBefore `json:"runsBefore,omitempty"`
	// Changed are the settings that the agent has changed on the device and will restore; Warnings are settings that
	// the device does not allow to change.
	Changed  []string `json:"changed,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Tunnel is set for the tunnel of a switch, by which overlay segments reach other hosts.
	Tunnel *Tunnel `json:"tunnel,omitempty"`
	// SpanningTree is what the bridge at the other end says by spanning tree; nil where none is heard.
	SpanningTree *SpanningTree `json:"spanningTree,omitempty"`
}

// MostPeers is how many endpoints of other hosts are listed of a tunnel.
const MostPeers = 256

// Tunnel is how a switch carries its overlay segments to other hosts, at present.
type Tunnel struct {
	Port        uint32 `json:"port"`        // UDP
	Replication string `json:"replication"` // head, two-tier
	// Learning: the host learns from what arrives which MAC is behind which endpoint.
	Learning bool `json:"learning"`
	// Endpoints are this host's outer addresses that can be used, VNIs the segments in which the switch has ports.
	Endpoints []string `json:"endpoints"`
	VNIs      []uint32 `json:"vnis"`
	// Peers are the first MostPeers endpoints of other hosts that are known, Known is how many there are.
	Peers []TunnelPeer `json:"peers"`
	Known uint32       `json:"known"`
}

// TunnelPeer is an endpoint of another host.
type TunnelPeer struct {
	Host    string `json:"host"`
	Address string `json:"address"`
	// Segments are in how many of this host's segments the other one has members.
	Segments uint32 `json:"segments"`
}

// Origin says which layer a port belongs to.
type Origin string

// The origins of a port.
const (
	FromFile Origin = "file"     // declared in the file; apply owns it
	FromRun  Origin = "run-time" // connected by command; apply never touches it
	// FromController is declared in the controllers' definition.
	FromController Origin = "controller"
)

// Port is one port.
type Port struct {
	Switch    string    `json:"switch"`
	Name      string    `json:"name"`
	PortGroup string    `json:"portGroup"`
	Role      spec.Role `json:"role"`
	Origin    Origin    `json:"origin"`
	Number    uint32    `json:"number"`
	Device    string    `json:"device"`
	State     PortState `json:"state"`
	// Reason describes for people why the port is not up; ReasonCode is the same for programs.
	Reason     string       `json:"reason,omitempty"`
	ReasonCode problem.Code `json:"reasonCode,omitempty"`
	// Owner is the guest that the port belongs to; Siblings are its other ports whose MACs it may use (S111).
	Owner    string   `json:"owner,omitempty"`
	Siblings []string `json:"siblings,omitempty"`
	// Wait is set for a port whose guest runs elsewhere.
	Wait *Wait     `json:"wait,omitempty"`
	VLAN plan.VLAN `json:"vlan"`
	MAC  string    `json:"mac,omitempty"`
	// SeenMAC is the MAC that the owner's adapter is seen to use, if it can be seen (D2).
	SeenMAC string `json:"seenMac,omitempty"`
	// Violation describes what the owner does against the policy (S3).
	Violation     string                `json:"violation,omitempty"`
	ViolationCode observe.ViolationCode `json:"violationCode,omitempty"`
	// Refused are the latest frames of the guest that the port's policy refused, one for each reason, the newest first.
	Refused []Refusal `json:"refused,omitempty"`
	// Promiscuous says whether the owner asks for promiscuous mode: "yes", "no" or "unknown" (D1).
	Promiscuous string `json:"promiscuous"`
	// Uplinks are the uplinks by which the port's frames may leave at present: one, none, or all among which a hashing
	// policy chooses.
	Uplinks   []string `json:"uplinks,omitempty"`
	MTU       int      `json:"mtu,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// RunsBefore are other people's programs that see the device's frames before the switch does.
	RunsBefore []ProgramBefore `json:"runsBefore,omitempty"`
	// Overrides are the fields of this port that commands have set, which have precedence over the file.
	Overrides []Override `json:"overrides,omitempty"`
	Effective []plan.Row `json:"effective"`
	// VM and Adapter are whose port it is, where that was said: the VM's UUID and the adapter's name. PortID is the
	// static port that it is. Conflict says what is wrong with that: others use the same adapter or port.
	VM       string `json:"vm,omitempty"`
	Adapter  string `json:"adapter,omitempty"`
	PortID   string `json:"portId,omitempty"`
	Conflict string `json:"conflict,omitempty"`
	// Label and Description are those of the static port in the controllers' definition.
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
	// CountersLackSince is set for a port that came from another host which could not send its last counts: what that
	// host counted after this time, by this host's clock, is missing.
	CountersLackSince time.Time `json:"countersLackSince,omitzero"`
	// LeftOut are settings that the port had where it comes from and can't have here, and why.
	LeftOut []string `json:"leftOut,omitempty"`
	// Flapping are MACs that go to and fro between this port and other hosts, as the controllers say.
	Flapping []FlappingMAC `json:"flapping,omitempty"`
	// VNI is the overlay segment of the port, in which VLAN then is; 0 for none.
	VNI uint32 `json:"vni,omitempty"`
}

// SegmentText names what the port is in: its VLANs, and the overlay segment that these are in.
func (p *Port) SegmentText() string { return segmentText(p.VLAN, p.VNI) }

// Override is a field of a port that a command has set.
type Override struct {
	// Field is the field's name in the configuration file: "blocked", "portGroup".
	Field string `json:"field"`
	// Value is what the command has set, File the port's value in the file; none if the file sets none.
	Value plan.FieldValue `json:"value"`
	File  plan.FieldValue `json:"file,omitzero"`
}

// String returns the override in a form for people: "portGroup=web".
func (o Override) String() string { return o.Field + "=" + o.Value.String() }

// Refusal is a frame of a guest that its port's policy refused, or that arrived when the port could learn no more MACs.
type Refusal struct {
	Reason string `json:"reason"`
	// Address is the source IP address of the frame, if the address guard checked it and it can be read.
	Address string    `json:"address,omitempty"`
	MAC     string    `json:"mac"`
	Time    time.Time `json:"time"`
	// Past: the settings that refused it have changed since, or the guest's frames have been accepted for a while and
	// none was refused for this reason.
	Past bool `json:"past,omitempty"`
	// Passed: the port was at its MAC limit, and the frame passed without its MAC being learned.
	Passed bool `json:"passed,omitempty"`
}

// Wait is a port's wait for a guest that runs elsewhere (S99).
type Wait struct {
	// Left: the guest has left by migration; otherwise it will arrive by migration.
	Left bool `json:"left"`
	// Overdue: the guest should have arrived more than a minute ago.
	Overdue bool `json:"overdue"`
	// Why is the evidence for the wait, for people; WhyCode is the same for programs.
	Why     string               `json:"why"`
	WhyCode observe.WaitEvidence `json:"whyCode,omitempty"`
	Since   time.Time            `json:"since"`
}

// Stats are the counters of one port or uplink: the 18 of a VDS under their names, and Heddle's own.
type Stats struct {
	Switch   string       `json:"switch"`
	Name     string       `json:"name"`
	Uplink   bool         `json:"uplink"`
	Counters Counters     `json:"counters"`
	Extra    Counters     `json:"extra"`
	Drops    ReasonCounts `json:"drops"`
	Refused  ReasonCounts `json:"refused"`
	// PortGroup is the port's port group; "" for an uplink.
	PortGroup string `json:"portGroup,omitempty"`
	// Speed is the speed that an uplink's device reports for its link in each direction, in bits per second; 0 for a
	// port, and if the device reports none.
	Speed uint64 `json:"speed,omitempty"`
	// ReadAt is when the counters were read, in nanoseconds of CLOCK_MONOTONIC.
	ReadAt int64 `json:"readAt"`
	// Device are the frames that the port's device counts as lost, Peer those that the other end of a veth counts; nil
	// if they can't be seen.
	Device *DeviceLosses `json:"deviceLosses,omitempty"`
	Peer   *DeviceLosses `json:"peerLosses,omitempty"`
}

// Vitals are what the ports and uplinks of a switch have counted together.
type Vitals struct {
	Switch string       `json:"switch"`
	Drops  ReasonCounts `json:"drops"`
	// Sent are the frames that the ports sent, Handed those that they were handed; uplinks are not among them.
	Sent   uint64 `json:"sent"`
	Handed uint64 `json:"handed"`
	// Ports is how many were counted, without uplinks.
	Ports int `json:"ports"`
	// ReadAt is when the counters were read, in nanoseconds of CLOCK_MONOTONIC.
	ReadAt int64 `json:"readAt"`
}

// DeviceLosses are a device's own counters of lost frames since it was made, seen from the device: what the guest sends
// is received by the host's end of its device. No program of the switch saw these frames, or they were lost after the
// switch had delivered them.
//
// RxDropped is not counted as lost: Linux counts there every frame that arrived well and that no protocol of the
// receiver wants, such as an announcement (RARP) of a switch. Frames that a device could not accept are in the other
// counters.
type DeviceLosses struct {
	Device    string `json:"device,omitempty"`
	RxDropped uint64 `json:"rxDropped"`
	TxDropped uint64 `json:"txDropped"`
	RxErrors  uint64 `json:"rxErrors"`
	TxErrors  uint64 `json:"txErrors"`
	RxMissed  uint64 `json:"rxMissed"`
	// RxFrameErrors are those of RxErrors whose form was wrong. At a tunnel's device they are packets that met
	// congestion on their way, and whose guests do not take part in ECN, so that they could not be told (RFC 6040
	// section 4.2); since Linux 6.14 also packets with reserved bits of the VXLAN header set. The tunnel's other
	// RxErrors had no whole IP header inside.
	RxFrameErrors uint64 `json:"rxFrameErrors"`
}

// Lost returns the frames that the device, or the guest behind it, could not accept.
func (l *DeviceLosses) Lost() uint64 {
	if l == nil {
		return 0
	}
	return l.TxDropped + l.RxErrors + l.TxErrors + l.RxMissed
}

// PortAccount says whether the counters of a port or uplink add up (S94): every frame received was delivered or
// dropped.
type PortAccount struct {
	Switch string `json:"switch"`
	Name   string `json:"name"`
	// State is "exact" (at rest, and every frame was delivered or dropped), "open" (frames were passing: the number
	// without a fate is between Least and Most, which may be none), "broken" (Fault says why) or "new" (the counters
	// were reset meanwhile).
	State     string `json:"state"`
	Received  uint64 `json:"received"`
	Delivered uint64 `json:"delivered"`
	Dropped   uint64 `json:"dropped"`
	Least     int64  `json:"least"`
	Most      int64  `json:"most"`
	// Fault describes what does not add up, for people; FaultCode is the same for programs.
	Fault     string         `json:"fault,omitempty"`
	FaultCode accounts.Fault `json:"faultCode,omitempty"`
}

// MAC is one address that a switch knows.
type MAC struct {
	Switch string       `json:"switch"`
	VLAN   plan.Segment `json:"vlan"`
	MAC    string       `json:"mac"`
	Port   string       `json:"port"`
	// Kind is "learned", "port" for a port's own address, "standby" for one that is in use at another port of its owner
	// at present, or "sibling" for such an address at the port that uses it, if that port is not seen to have it.
	Kind string `json:"kind"`
	// IdleSeconds is how long ago a learned address was last heard.
	IdleSeconds float64 `json:"idleSeconds"`
}

// ForgetMACs selects the learned addresses to remove: those that match all fields that are set.
type ForgetMACs struct {
	// Switch, Port and MAC match any if they are "".
	Switch string `json:"switch,omitempty"`
	Port   string `json:"port,omitempty"`
	MAC    string `json:"mac,omitempty"`
	// VLAN is 0–4094, 0 for untagged frames; nil is any.
	VLAN *uint16 `json:"vlan,omitempty"`
	// DryRun removes nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// Apply is a request to apply a new configuration file.
type Apply struct {
	File    string `json:"file"`
	Content string `json:"-" wire:"content"`
	DryRun  bool   `json:"dryRun"`
	// ReadAt is when the command had read its input, in nanoseconds of CLOCK_MONOTONIC; 0 if it is not given.
	ReadAt int64 `json:"readAt"`
	// Rollback is the number of the version in the history that this restores; 0 for a new configuration.
	Rollback int `json:"rollback,omitempty"`
	Window
}

// Applied is the result of an Apply, or of its dry run.
type Applied struct {
	Changes []Change `json:"changes"`
	// Effects are the effects of the changes on ports.
	Effects  []Effect `json:"effects,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Notes are, for a dry run, about policies that work but are seldom intended.
	Notes  []string `json:"notes,omitempty"`
	DryRun bool     `json:"dryRun"`
	// RunsBefore are other people's programs on the devices that the change affects. They see frames before the switch
	// does, so that the change may not apply to all frames; each is a warning, too.
	RunsBefore []ProgramBefore `json:"runsBefore,omitempty"`
	// ActiveAfterSeconds is how long after the command had read its input the changes were active, for all ports at one
	// instant; 0 if nothing had to change in the kernel. The command returns later, when everything is saved and every
	// device attached.
	ActiveAfterSeconds float64 `json:"activeAfterSeconds,omitempty"`
	// ActiveAt is that instant.
	ActiveAt *Instant `json:"activeAt,omitempty"`
	// Trial is the trial of a change that affects the path to the host's own addresses; nil for any other change.
	Trial *Trial `json:"trial,omitempty"`
	// Kept are the ports of the file for which commands have set other values than the file. These values stay.
	Kept []KeptPort `json:"kept,omitempty"`
	// Foreseen is, for a dry run, what the change would newly lose of what ports sent lately; nil if that could not be
	// found out.
	Foreseen *diagnose.Foreseen `json:"foreseen,omitempty"`
}

// KeptPort is a port of the file that stays as commands have set it.
type KeptPort struct {
	Port      ObjectRef  `json:"port"`
	Overrides []Override `json:"overrides"`
}

// Instant is known to be between two readings of CLOCK_MONOTONIC, in nanoseconds.
type Instant struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Progress is how many devices wait to be attached or detached.
type Progress struct {
	// Attaching is the number of devices that wait; Of is the most that waited since none did.
	Attaching int `json:"attaching"`
	Of        int `json:"of"`
	// Trial is the trial of the change that is on trial, nil for none.
	Trial *Trial `json:"trial,omitempty"`
}

// Connect makes a port.
type Connect struct {
	spec.Port `wire:"port"`
	// VM is the UUID of the VM, Adapter the name of the adapter within it; both or none.
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	// PortID is the static port that the VM's definition carries.
	PortID string `json:"portId,omitempty"`
	Window
}

// Incoming makes a port whose guest will arrive from another host.
type Incoming struct {
	Connect
	// Needs are host ports and port groups that the guest needs beside the port, by name: the port is refused where
	// they are not there, or can't reach the physical network. NeedsUplink says the same of the port's own switch.
	Needs       []string `json:"needs,omitempty"`
	NeedsUplink bool     `json:"needsUplink,omitempty"`
	// MACs is how many MACs the port has learned where its guest runs: it is refused where it could not hold them.
	MACs int `json:"macs,omitempty"`
	// Flows is how many of its flows are metered there: it is refused where the switch's table has no room for them.
	Flows int `json:"flows,omitempty"`
	// Force connects the port whatever the guest needs.
	Force bool `json:"force,omitempty"`
	// Host is the id of the host that the caller means; "" for whichever takes the call.
	Host string `json:"host,omitempty"`
}

// PortIdentity is what a caller knows of a port beside its name, which may have become another port's meanwhile.
type PortIdentity struct {
	// Host is the id of the host; "" for whichever takes the call.
	Host   string `json:"host,omitempty"`
	Switch string `json:"switch,omitempty"`
	// VM and Adapter are whose port it is; both "" for a port of which nobody said it, whose Device is compared then.
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	Device  string `json:"device,omitempty"`
}

// Block sets or lifts the blocked state of a port.
type Block struct {
	Port    string `json:"port"`
	Blocked bool   `json:"blocked"`
	ReadAt  int64  `json:"readAt"` // as in Apply
	Window
}

// Move puts a port into another port group of its switch, or of another switch of the host.
type Move struct {
	Port string `json:"port"`
	// Switch may be empty: then the port stays at its switch.
	Switch string `json:"switch"`
	// PortGroup may be empty where there is a switch: then it is the port group of the name that the port's has now.
	PortGroup string `json:"portGroup"`
	ReadAt    int64  `json:"readAt"` // as in Apply
	// Of is whose port it must be; nil for whoever has it.
	Of *PortIdentity `json:"of,omitempty"`
	Window
}

// Expect announces that the ports of a guest are about to be connected, and that the guest will arrive by migration.
type Expect struct {
	// Guest is the beginning of the names of its ports, before the slash.
	Guest string `json:"guest"`
	// Needs and Force are as in Incoming, for all of its ports.
	Needs []string `json:"needs,omitempty"`
	Force bool     `json:"force,omitempty"`
}

// Activate records that the guest of a waiting port runs here.
type Activate struct {
	Port string `json:"port"`
	// Of is whose port it must be; nil for whoever has it.
	Of *PortIdentity `json:"of,omitempty"`
}

// Disconnect removes a port that was connected by command: the one of that name, or the one that has the device.
type Disconnect struct {
	Port   string `json:"port"`
	Device string `json:"device,omitempty"`
	// VM is the UUID of the VM that the port must be of: a port of another one is not there. "" for whoever has it.
	VM string `json:"vm,omitempty"`
	// Reset removes what the port has set for itself, even if its port group would keep it.
	Reset bool `json:"reset,omitempty"`
	// Release gives up the static port that it is.
	Release bool `json:"release,omitempty"`
	Window
}
