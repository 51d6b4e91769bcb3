package teams

import (
	"heddle/internal/observe/event"
	"heddle/internal/plan/problem"
)

// Kind is the kind of reason for which ports changed their uplinks.
type Kind uint8

// The kinds of reason.
const (
	Configured Kind = iota // the configuration changed
	FoundSo                // found at the start of the agent
	Load                   // load-based teaming
	Back                   // Entry can be used again
	NoMember               // Entry is a LAG without a usable member
	NoUplink               // Entry is no longer an uplink of the switch
	NotUsed                // Entry's link is up, but it is out of use: Problem
	NoLink                 // Entry's link is down: Link
	kinds
)

// Cause returns the kind as a code for programs.
func (k Kind) Cause() event.FailoverCause {
	return [kinds]event.FailoverCause{Configured: event.ConfigurationChanged, FoundSo: event.AgentStarted,
		Load: event.LoadBalanced, Back: event.UplinkBack, NoMember: event.NoLAGMember, NoUplink: event.UplinkRemoved,
		NotUsed: event.UplinkOut, NoLink: event.LinkLost}[k]
}

// Link is what is wrong with the link of a device.
type Link uint8

// What is wrong with a link.
const (
	LinkUnserved  Link = iota // nothing is wrong: the device does not serve the uplink
	LinkUnbound               // no device is bound to the uplink
	LinkGone                  // there is no such device
	LinkSetDown               // an operator has set it down
	LinkNoCarrier             // no carrier or, for a pair, the other end is down
	links
)

// Text describes what is wrong with the link of a device.
func (l Link) Text(device string) string {
	switch l {
	case LinkUnbound:
		return "no device is bound to it"
	case LinkGone:
		return "its device " + device + " is gone"
	case LinkSetDown:
		return "its device " + device + " was set down"
	case LinkNoCarrier:
		return "its device " + device + " has no link"
	}
	return "its device " + device + " does not serve it"
}

// Why is the reason for which ports changed their uplinks. Ports with equal reasons are reported together.
type Why struct {
	Kind    Kind
	Entry   string // an uplink or a LAG of the teaming lists
	Problem problem.Problem
	Link    Link
	Device  string // of Link
}

// Text returns the reason as a sentence.
func (w Why) Text() string {
	switch w.Kind {
	case FoundSo:
		return "found so at the start of the agent"
	case Load:
		return "load"
	case Back:
		return w.Entry + " is back"
	case NoMember:
		return w.Entry + ": none of its members is usable"
	case NoUplink:
		return w.Entry + ": it is no uplink of the switch any more"
	case NotUsed:
		return w.Entry + ": " + w.Problem.Text()
	case NoLink:
		return w.Entry + ": " + w.Link.Text(w.Device)
	}
	return "the configuration changed"
}
