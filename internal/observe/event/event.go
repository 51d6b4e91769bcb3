package event

import (
	"time"

	"heddle/internal/plan"
)

// Kind says what happened.
type Kind string

// The kinds of event.
const (
	Connected    Kind = "connected"     // a device serves its port from now on
	Disconnected Kind = "disconnected"  // it does not any more
	Learned      Kind = "learned"       // a source MAC was learned (S12)
	Moved        Kind = "moved"         // a learned MAC is on another port now (S20)
	LimitReached Kind = "limit-reached" // a port learns no more MACs (S15, S16)
	Violation    Kind = "violation"     // an owner does what its policy rejects (S3), or has stopped doing so
	Blocked      Kind = "blocked"       // a port was blocked or unblocked (S41)
	Loop         Kind = "loop"          // a port is blocked because a loop goes through it, or no longer (S110)
	Link         Kind = "link"          // a port's or uplink's device went up or down
	Waiting      Kind = "waiting"       // a port waits for a guest that runs elsewhere, and why (S99)
	Overdue      Kind = "overdue"       // a port has waited for its guest for more than a minute
	Awake        Kind = "awake"         // its guest runs here
	Failover     Kind = "failover"      // ports use another uplink, and why (S42–S48)
	Applied      Kind = "applied"       // another plan is active
	Neighbour    Kind = "neighbour"     // LLDP or LACP: another device is at the other end of an uplink
	Collector    Kind = "collector"     // a flow collector is sent records, is away, or its name has no address
	Adopted      Kind = "adopted"       // a host port took the place of an uplink's device (S81)
	Tried        Kind = "tried"         // a change concerns the way to the host's own addresses, and is on trial (S81)
	// such a change stays: the operator confirmed it, or the host is known to be reachable
	Confirmed Kind = "confirmed"
	Reverted  Kind = "reverted" // such a change was undone automatically
	// an uplink was drained or blocked for its maintenance, or taken back into use
	Maintenance Kind = "maintenance"
	Program     Kind = "program" // somebody else's program runs before the switch's on a device, or no longer does
	// two guests use one adapter, one static port or one address, or no longer do
	Conflict Kind = "conflict"
	// no uplink of a switch is up: its ports are cut off from the physical network; or one is up again
	Isolated  Kind = "isolated"
	Migration Kind = "migration" // a step of a port's move to or from another host (S100)
	Flapping  Kind = "flapping"  // a MAC goes to and fro between a port and other hosts, or no longer does
	// probes found that the physical network lacks something that an uplink needs, or lacks it no longer (S109)
	Network Kind = "network"
	// somebody else took away what the agent had set on a device of the host's, and it is there again
	Restored Kind = "restored"
	// a port or uplink that is up is not in full service, or is again
	Impaired Kind = "impaired"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{Connected, Disconnected, Learned, Moved, LimitReached, Violation, Blocked, Loop, Link, Waiting,
		Overdue, Awake, Failover, Applied, Neighbour, Collector, Adopted, Tried, Confirmed, Reverted, Maintenance,
		Program, Conflict, Isolated, Migration, Flapping, Network, Restored, Impaired}
}

// Event is one thing that happened. Fields that do not apply are empty.
type Event struct {
	// Seq counts the agent's events from 1.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Switch, Port, Uplink, Device say where.
	Switch string `json:"switch,omitzero"`
	Port   string `json:"port,omitzero"`
	Uplink string `json:"uplink,omitzero"`
	Device string `json:"device,omitzero"`
	// Collector is the address and port of a flow collector, as the configuration has them.
	Collector string `json:"collector,omitzero"`
	// MAC and VLAN are those of a learned address; VLAN the segment it was learned in.
	MAC  string       `json:"mac,omitzero"`
	VLAN plan.Segment `json:"vlan,omitzero"`
	// Reason is why frames of a port are refused; Address is the IP address that the address guard refused, if it
	// can be read.
	Reason  string `json:"reason,omitzero"`
	Address string `json:"address,omitzero"`
	// From and To are the value before and after: uplinks of a failover, ports of a moved MAC, up and down, states of a
	// flow collector.
	From string `json:"from,omitzero"`
	To   string `json:"to,omitzero"`
	// Cause is why ports use another uplink; of a failover.
	Cause FailoverCause `json:"cause,omitzero"`
	// Ports is the number of ports concerned, for a failover or an apply.
	Ports int `json:"ports,omitzero"`
	// TookSeconds is the time from the notification of the cause until a failover was active; 0 without a
	// notification.
	TookSeconds float64 `json:"tookSeconds,omitzero"`
	// Text says it in one sentence.
	Text string `json:"text"`
}

// FailoverCause is why ports use another uplink than before.
type FailoverCause string

// Why ports use another uplink.
const (
	ConfigurationChanged FailoverCause = "configuration" // it changed
	AgentStarted         FailoverCause = "agent-start"   // it was found so then
	LoadBalanced         FailoverCause = "load"          // by load-based teaming
	UplinkBack           FailoverCause = "uplink-back"   // it can be used again
	NoLAGMember          FailoverCause = "no-lag-member" // of the LAG can be used
	UplinkRemoved        FailoverCause = "uplink-removed"
	UplinkOut            FailoverCause = "uplink-out" // its link is up, and it is out of use
	LinkLost             FailoverCause = "link-lost"
)

// Severity is how much an event asks for somebody's attention.
type Severity string

// The severities, the least first.
const (
	Info    Severity = "info"    // as things go
	Warning Severity = "warning" // something is worse than it was, and goes on
	Error   Severity = "error"   // frames are refused or lost, or a change was undone
)

// Severities are all of them, the least first.
func Severities() []Severity { return []Severity{Info, Warning, Error} }

// Severity is that of an event, by its kind, and where it is an end of something bad, by where that went.
func (e *Event) Severity() Severity {
	switch e.Kind {
	case Violation, LimitReached, Reverted, Program:
		return Error
	case Isolated:
		if e.To == "up" {
			return Info
		}
		return Error
	case Link:
		if e.To == "up" {
			return Info
		}
		return Warning
	case Impaired:
		if e.To == "" {
			return Info
		}
		return Warning
	case Failover, Blocked, Collector, Loop, Overdue, Conflict, Flapping, Restored:
		return Warning
	}
	return Info
}
