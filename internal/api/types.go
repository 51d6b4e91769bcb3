// Package api defines what an agent and its clients send each other, and has the client and the server: "-o json"
// prints the same types, so that their field names are public, and they are carried over the contract in api/ at the
// top of the repository, by Connect on a Unix socket of the agent's own that root alone may use.
package api

import (
	"time"

	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Version is the version of the protocol. The agent refuses a client of another version, and says which it speaks. It
// changes when the contract does in a way that a program of the version before would misread; what is only added does
// not change it.
const Version = 5

// AgentInfo says which agent answers.
type AgentInfo struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	API     int       `json:"api"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Config is where the active configuration came from: a path, or "" when there is none yet.
	Config   string   `json:"config"`
	Warnings []string `json:"warnings,omitempty"`
	// Place is the boot and the network namespace whose devices the agent has, as its state says it.
	Place string `json:"place,omitempty"`
	// Lookalikes say which devices have the alias of this agent's host ports and were not made by it.
	Lookalikes []string `json:"lookalikes,omitempty"`
	// Announcing is how many frames the agent has still to send to tell the physical network and the ports' owners of
	// changes (S49, S50); 0 a second or so after the last change.
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
	// IPFIX is how the switch's flows are timed, kept and exported.
	IPFIX *IPFIX `json:"ipfix"`
}

// PortGroup is one port group with the policy its ports inherit.
type PortGroup struct {
	Switch    string     `json:"switch"`
	Name      string     `json:"name"`
	VLAN      plan.VLAN  `json:"vlan"`
	Ports     int        `json:"ports"`
	PortsUp   int        `json:"portsUp"`
	Overrides []string   `json:"overrides"`
	Reset     bool       `json:"resetAtDisconnect"`
	Policy    []plan.Row `json:"policy"`
}

// PortState is what has become of a port or an uplink.
type PortState string

// The states of a port.
const (
	Up      PortState = "up"      // frames pass
	Down    PortState = "down"    // the device or its owner's end is down or has no carrier
	Blocked PortState = "blocked" // by policy
	Pending PortState = "pending" // its device is not there, or not usable
	Waiting PortState = "waiting" // its guest runs elsewhere: it is to arrive by a migration, or has left by one
	Drained PortState = "drained" // an uplink that no team uses, for its maintenance; what arrives is accepted
	Out     PortState = "out"     // an uplink whose link is up and that is not used all the same
)

// Uplink is one uplink.
type Uplink struct {
	Switch string    `json:"switch"`
	Name   string    `json:"name"`
	Device string    `json:"device"`
	State  PortState `json:"state"`
	Reason string    `json:"reason,omitempty"`
	// ReasonCode is the reason for programs; Reason says it to people.
	ReasonCode problem.Code `json:"reasonCode,omitempty"`
	MAC        string       `json:"mac,omitempty"`
	MTU        int          `json:"mtu,omitempty"`
	// Speed is what the device says its link carries in each direction, in bits per second; 0 when it does not say.
	Speed uint64       `json:"speed,omitempty"`
	VLANs plan.VLANSet `json:"vlans"`
	// Number is the uplink's id on the host, out of the numbers that ports have.
	Number uint32 `json:"number"`
	// Monitoring is what is metered: "off", "ingress", "egress" or "ingress and egress".
	Monitoring string `json:"monitoring"`
	// LAG is the LAG the uplink is a member of, and what LACP has found out; nil for an uplink by itself.
	LAG *LAGMember `json:"lag,omitempty"`
	// Maintenance says that the uplink is drained or blocked; nil for one in use.
	Maintenance *UplinkMaintenance `json:"maintenance,omitempty"`
	// LLDP is what is known of the device at the other end; nil when LLDP is off on the switch.
	LLDP *LLDP `json:"lldp,omitempty"`
	// RunsBefore are programs of somebody else that see the device's frames before the switch does.
	RunsBefore []ProgramBefore `json:"runsBefore,omitempty"`
	// Changed is what the agent has set on the device and gives back, Warnings what the device does not let be changed.
	Changed  []string `json:"changed,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Origin says which layer a port belongs to.
type Origin string

// The origins of a port.
const (
	FromFile Origin = "file"     // declared; apply owns it
	FromRun  Origin = "run-time" // connected by command; apply never touches it
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
	// Reason says to people why the port is not up, ReasonCode to programs.
	Reason     string       `json:"reason,omitempty"`
	ReasonCode problem.Code `json:"reasonCode,omitempty"`
	// Owner is the guest that the port belongs to, Siblings its other ports whose MACs it may use (S111).
	Owner    string   `json:"owner,omitempty"`
	Siblings []string `json:"siblings,omitempty"`
	// Wait is that of a port whose guest runs elsewhere.
	Wait *Wait     `json:"wait,omitempty"`
	VLAN plan.VLAN `json:"vlan"`
	MAC  string    `json:"mac,omitempty"`
	// SeenMAC is the MAC the owner's adapter is seen to use, where it can be seen (D2).
	SeenMAC string `json:"seenMac,omitempty"`
	// Violation says what the owner does that the policy rejects (S3).
	Violation     string                `json:"violation,omitempty"`
	ViolationCode observe.ViolationCode `json:"violationCode,omitempty"`
	// Refused are the latest frames of the guest that the port's policy refused, one of each reason, the newest first.
	Refused []Refusal `json:"refused,omitempty"`
	// Promiscuous is what the owner asks for: "yes", "no" or "unknown" (D1).
	Promiscuous string `json:"promiscuous"`
	// Uplinks are those the port's frames may leave by at present: one, none, or all that a hashing policy spreads
	// over.
	Uplinks   []string `json:"uplinks,omitempty"`
	MTU       int      `json:"mtu,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// RunsBefore are programs of somebody else that see the device's frames before the switch does.
	RunsBefore []ProgramBefore `json:"runsBefore,omitempty"`
	// Overrides are the fields set on this port by command, on top of what the file says.
	Overrides []Override `json:"overrides,omitempty"`
	Effective []plan.Row `json:"effective"`
}

// Override is a field of a port that a command has set.
type Override struct {
	// Field is the field's name in the configuration file: "blocked", "portGroup".
	Field string `json:"field"`
	// Value is what the command has set it to, File what the file says of the port; none where it says nothing.
	Value plan.FieldValue `json:"value"`
	File  plan.FieldValue `json:"file,omitzero"`
}

// String returns the override as people read it: "portGroup=web".
func (o Override) String() string { return o.Field + "=" + o.Value.String() }

// Refusal is a frame of a guest that its port's policy refused, or that came when the port could learn no more MACs.
type Refusal struct {
	Reason string `json:"reason"`
	// Address is the IP address in whose name it was sent, where the address guard asked for it and it can be read.
	Address string    `json:"address,omitempty"`
	MAC     string    `json:"mac"`
	Time    time.Time `json:"time"`
	// Past: the settings that refused it have changed since, or the guest's frames have been accepted for a while and
	// none was refused for this reason.
	Past bool `json:"past,omitempty"`
	// Passed: a MAC limit let it pass, and did not learn its MAC.
	Passed bool `json:"passed,omitempty"`
}

// Wait is a port's wait for a guest that runs elsewhere (S99).
type Wait struct {
	// Left: the guest has left by a migration; otherwise it is to arrive by one.
	Left bool `json:"left"`
	// Overdue: it was to arrive, and has not for more than a minute.
	Overdue bool `json:"overdue"`
	// Why is by what that is known.
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// Stats are the counters of one port or uplink: the 18 of a VDS under their names, and ours.
type Stats struct {
	Switch   string       `json:"switch"`
	Name     string       `json:"name"`
	Uplink   bool         `json:"uplink"`
	Counters Counters     `json:"counters"`
	Extra    Counters     `json:"extra"`
	Drops    ReasonCounts `json:"drops"`
	Refused  ReasonCounts `json:"refused"`
	// PortGroup is a port's; "" of an uplink.
	PortGroup string `json:"portGroup,omitempty"`
	// Speed is an uplink's: what its device says its link carries in each direction, in bits per second; 0 of a port,
	// and when it does not say.
	Speed uint64 `json:"speed,omitempty"`
	// ReadAt is when the counters were read, in nanoseconds of CLOCK_MONOTONIC.
	ReadAt int64 `json:"readAt"`
	// Device is what the port's device lost by its own account, Peer what the other end of a veth did; nil where it
	// can't be seen.
	Device *DeviceLosses `json:"deviceLosses,omitempty"`
	Peer   *DeviceLosses `json:"peerLosses,omitempty"`
}

// DeviceLosses are a device's own counters of lost frames since it was made, seen from the device: what the host's end
// of a guest's device receives, the guest sent. No program of the switch saw these frames, or they were lost after it
// had handed them over.
//
// RxDropped is not among what is lost: Linux counts there every frame that arrived well and that no protocol of the
// receiver wants, such as an announcement (RARP) of a switch. What a device could not take is in the other counters.
type DeviceLosses struct {
	Device    string `json:"device,omitempty"`
	RxDropped uint64 `json:"rxDropped"`
	TxDropped uint64 `json:"txDropped"`
	RxErrors  uint64 `json:"rxErrors"`
	TxErrors  uint64 `json:"txErrors"`
	RxMissed  uint64 `json:"rxMissed"`
}

// Lost returns the frames that the device, or who is behind it, could not take.
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
	// State is "exact" (at rest, and every frame has its fate), "open" (frames were passing: those without a fate lie
	// between Least and Most, which allows for none), "broken" (Fault says why) or "new" (the counters began anew
	// meanwhile).
	State     string `json:"state"`
	Received  uint64 `json:"received"`
	Delivered uint64 `json:"delivered"`
	Dropped   uint64 `json:"dropped"`
	Least     int64  `json:"least"`
	Most      int64  `json:"most"`
	Fault     string `json:"fault,omitempty"`
}

// MAC is one address a switch knows.
type MAC struct {
	Switch string       `json:"switch"`
	VLAN   plan.Segment `json:"vlan"`
	MAC    string       `json:"mac"`
	Port   string       `json:"port"`
	// Kind is "learned", "port" for a port's own address, "standby" for one that is in use at another port of its owner
	// at present, or "sibling" for such an address at the port that uses it, where that is not seen to have it.
	Kind string `json:"kind"`
	// IdleSeconds is how long ago a learned address was last heard.
	IdleSeconds float64 `json:"idleSeconds"`
}

// ForgetMACs says which learned addresses are to be removed: those that all of what is set holds for.
type ForgetMACs struct {
	// Switch, Port and MAC are any where they are "".
	Switch string `json:"switch,omitempty"`
	Port   string `json:"port,omitempty"`
	MAC    string `json:"mac,omitempty"`
	// VLAN is 0–4094, 0 for untagged frames; nil is any.
	VLAN *uint16 `json:"vlan,omitempty"`
	// DryRun removes nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// Apply asks for a new configuration file.
type Apply struct {
	File    string `json:"file"`
	Content string `json:"-" wire:"content"`
	DryRun  bool   `json:"dryRun"`
	// ReadAt is when the command had read its input, in nanoseconds of CLOCK_MONOTONIC; 0 when it does not say.
	ReadAt int64 `json:"readAt"`
	// Rollback is the number of the version in the history that this brings back; 0 for a new configuration.
	Rollback int `json:"rollback,omitempty"`
	Window
}

// Applied is what an Apply did, or would do.
type Applied struct {
	Changes []Change `json:"changes"`
	// Effects are what the changes mean for ports.
	Effects  []Effect `json:"effects,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Notes are about policies that work and that are seldom meant, of a dry run.
	Notes  []string `json:"notes,omitempty"`
	DryRun bool     `json:"dryRun"`
	// RunsBefore are programs of somebody else on the devices that the change is about. They see frames before the
	// switch does, so that the change may not hold for all of them; each is a warning, too.
	RunsBefore []ProgramBefore `json:"runsBefore,omitempty"`
	// ActiveAfterSeconds is how long after the command had read its input the changes were active, for all ports at one
	// instant; 0 when nothing had to change in the kernel. The command returns later, when everything is remembered and
	// every device attached.
	ActiveAfterSeconds float64 `json:"activeAfterSeconds,omitempty"`
	// ActiveAt is that instant.
	ActiveAt *Instant `json:"activeAt,omitempty"`
	// Trial is that of a change which concerns the way to the host's own addresses; nil for any other.
	Trial *Trial `json:"trial,omitempty"`
	// Kept are the ports of the file of which commands have set something that the file says otherwise. That stays so.
	Kept []KeptPort `json:"kept,omitempty"`
}

// KeptPort is a port of the file that stays as commands have set it.
type KeptPort struct {
	Port      ObjectRef  `json:"port"`
	Overrides []Override `json:"overrides"`
}

// Instant lies between two readings of CLOCK_MONOTONIC, in nanoseconds.
type Instant struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Progress is how far the agent is with devices that wait to be attached or detached.
type Progress struct {
	// Attaching devices wait, of at most Of since none did.
	Attaching int `json:"attaching"`
	Of        int `json:"of"`
	// Trial is that of the change that is being tried, nil for none.
	Trial *Trial `json:"trial,omitempty"`
}

// Connect makes a port.
type Connect struct {
	spec.Port `wire:"port"`
	Window
}

// Block sets or lifts the blocked state of a port.
type Block struct {
	Port    string `json:"port"`
	Blocked bool   `json:"blocked"`
	ReadAt  int64  `json:"readAt"` // as of Apply
	Window
}

// Move puts a port into another port group of its switch.
type Move struct {
	Port      string `json:"port"`
	PortGroup string `json:"portGroup"`
	ReadAt    int64  `json:"readAt"` // as of Apply
	Window
}

// Expect says that the ports of a guest are about to be connected, and that it is to arrive by a migration.
type Expect struct {
	// Guest is how the names of its ports begin, before the slash.
	Guest string `json:"guest"`
}

// Activate says that the guest of a port that waits for it runs here.
type Activate struct {
	Port string `json:"port"`
}

// Disconnect ends a port that was connected by command: the one of that name, or the one that has the device.
type Disconnect struct {
	Port   string `json:"port"`
	Device string `json:"device,omitempty"`
	// Reset forgets what the port has set for itself, also where its port group keeps that.
	Reset bool `json:"reset,omitempty"`
	Window
}
