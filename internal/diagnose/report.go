package diagnose

import (
	"fmt"
	"net/netip"

	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

// Report answers a request: exactly one of Frames and Talk is set.
type Report struct {
	// From is the port or uplink, with its switch.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Answer is the result of the report.
	Answer Answer  `json:"answer"`
	Frames []Frame `json:"frames,omitempty"`
	Talk   *Talk   `json:"talk,omitempty"`
	// Sent is how many frames were sent, if Frames does not have all of them.
	Sent int `json:"sent,omitempty"`
	// Notes are about the whole answer.
	Notes []string `json:"notes,omitempty"`
	// Agree says that model and kernel program agree on every frame.
	Agree bool `json:"agree"`
}

// Answer answers the request in one sentence.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Text says who reaches whom and how or, for a no, where and why the first frame is dropped.
	Text string `json:"text"`
	// Reason and Fix are for a no: the reason of the drop, and what changes it; "" if nothing does or should.
	Reason string `json:"reason,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// Frame is what happens to one frame.
type Frame struct {
	Number int `json:"number"` // counts from 1
	// Summary describes the frame's headers in words; Bytes is the frame in hexadecimal.
	Summary string `json:"summary"`
	Length  int    `json:"length"`
	Bytes   string `json:"bytes,omitempty"`
	// Assumed are the fields that were not given, and the values used for them.
	Assumed   []string `json:"assumed,omitempty"`
	Steps     []Step   `json:"steps,omitempty"`
	Delivered bool     `json:"delivered"`
	// Reason is why the frame was dropped, "" if it was not.
	Reason string `json:"reason,omitempty"`
	Copies []Copy `json:"copies"`
	// Causes explain the drop, every refused copy, and why the requested port got none.
	Causes []Cause `json:"causes,omitempty"`
	// Kernel says whether the kernel program does the same as the model.
	Kernel      KernelSays `json:"kernel"`
	Differences []string   `json:"differences,omitempty"`
}

// KernelSays says whether the kernel program and the model treat a frame alike.
type KernelSays string

// The values of KernelSays.
const (
	KernelAgrees    KernelSays = "agrees"
	KernelDisagrees KernelSays = "disagrees"
	KernelNone      KernelSays = "no-program" // not compared: there is no kernel program here
	KernelTooShort  KernelSays = "too-short"  // not compared: the kernel takes no frame shorter than an Ethernet header
)

// Step is one decision on the frame's path.
type Step struct {
	Stage string `json:"stage"`
	Text  string `json:"text"`
}

// CopyKind says who gets a copy.
type CopyKind string

// Who can get a copy.
const (
	ToPort   CopyKind = "port"
	ToUplink CopyKind = "uplink"
	ToHost   CopyKind = "host" // the host's own stack, behind the uplink
)

// Copy is a copy that would be delivered.
type Copy struct {
	To     string   `json:"to"`
	Kind   CopyKind `json:"kind"`
	Device string   `json:"device,omitempty"`
	// Tag is the outermost tag the copy has: "untagged", "VLAN 10", "802.1ad VLAN 10".
	Tag    string `json:"tag"`
	Length int    `json:"length"`
	// Bytes are those that leave by an uplink, in hexadecimal; "" for other copies.
	Bytes string `json:"bytes,omitempty"`
	// Outer are the packets in which the copy leaves by a tunnel, and those that are refused; nil for other copies.
	Outer []Outer `json:"outer,omitempty"`
}

// Outer is a packet in which a tunnel carries a frame to another host.
type Outer struct {
	VNI uint32 `json:"vni"`
	// Source and Destination are the outer addresses; zero where there are none.
	Source      netip.Addr `json:"source,omitzero"`
	Destination netip.Addr `json:"destination,omitzero"`
	// Host has the endpoint; "" where its name is not known.
	Host string `json:"host,omitempty"`
	// Known says how it is known that the destination is there: "static", "announced", "learned"; "" for a frame that
	// goes to all hosts of the segment.
	Known string `json:"known,omitempty"`
	// TOS is the outer packet's byte of DSCP and ECN.
	TOS uint8 `json:"tos"`
	// Reason is why it does not leave; "" where it does.
	Reason string `json:"reason,omitempty"`
}

// Receiver is the endpoint that gets the packet, with the name of its host where that is known.
func (o *Outer) Receiver() string {
	if o.Host == "" {
		return o.Destination.String()
	}
	return fmt.Sprintf("%s (%s)", o.Destination, o.Host)
}

// Leaves are the packets of a copy that leave by a tunnel.
func (c *Copy) Leaves() (list []Outer) {
	for _, o := range c.Outer {
		if o.Reason == "" {
			list = append(list, o)
		}
	}
	return list
}

// Packets names the packets in which a copy leaves by a tunnel, n at most: "VNI 5000 to 192.0.2.2 (host2)".
func (c *Copy) Packets(n int) string {
	leaves := c.Leaves()
	words := make([]string, 0, n+1)
	for i, o := range leaves {
		if i == n {
			words = append(words, fmt.Sprintf("%d more", len(leaves)-n))
			break
		}
		words = append(words, o.Receiver())
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("VNI %d to %s", leaves[0].VNI, known.List(words))
}

// Cause says why somebody gets nothing, and what changes that.
type Cause struct {
	// Reason is the counted reason; or other-vlan or other-switch, if the requested port is not in the frame's segment.
	Reason string `json:"reason"`
	// Port is the port that gets nothing, "" if the whole frame is dropped.
	Port string `json:"port,omitempty"`
	Why  string `json:"why"`
	// Setting is the setting of the configuration that causes it: the field, its value and the level that it comes
	// from; nil if no setting does.
	Setting *plan.Row `json:"setting,omitempty"`
	// Policy, Value and From describe the cause to people: the setting or other cause, its value, and where that comes
	// from.
	Policy string `json:"policy"`
	Value  string `json:"value,omitempty"`
	From   string `json:"from"`
	// Change says what to do; Edit is what to write into the configuration for that; Command does it or, if nothing is
	// to be changed, shows the state behind it.
	Change  string `json:"change"`
	Edit    *Edit  `json:"edit,omitempty"`
	Command string `json:"command"`
}

// Edit is a change of the configuration file: Set is merged into the object.
type Edit struct {
	File   string     `json:"file,omitempty"`
	Switch string     `json:"switch,omitempty"`
	Kind   EditObject `json:"kind"`
	Name   string     `json:"name"`
	// Set is YAML: "security: {forgedTransmits: accept}".
	Set string `json:"set"`
}

// EditObject is the kind of an object of the configuration.
type EditObject string

// The objects that edits can change.
const (
	EditSwitch EditObject = "switch"
	EditGroup  EditObject = "port group"
	EditUplink EditObject = "uplink"
	EditPort   EditObject = "port"
)

// Object names the edited object: "port group web of switch lab".
func (e Edit) Object() string {
	name := string(e.Kind) + " " + e.Name
	if e.Kind != EditSwitch && e.Kind != EditPort {
		name += " of switch " + e.Switch
	}
	return name
}

// Talk says whether two ports can talk.
type Talk struct {
	Protocols []Protocol `json:"protocols"`
	Hops      []Hop      `json:"hops"`
	Causes    []Cause    `json:"causes,omitempty"`
}

// Verdict says whether something arrives.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "unknown" // it leaves this host
)

// Protocol says whether two ports can talk with a protocol, in both directions.
type Protocol struct {
	Name    string  `json:"name"` // ARP, IPv4, IPv6
	Verdict Verdict `json:"verdict"`
	Path    string  `json:"path"`
}

// Hop is one frame of a conversation.
type Hop struct {
	Protocol string     `json:"protocol"`
	Frame    string     `json:"frame"` // "request", "reply", …
	From     string     `json:"from"`
	To       string     `json:"to"`
	Verdict  Verdict    `json:"verdict"`
	Path     string     `json:"path"`
	Reason   string     `json:"reason,omitempty"`
	Kernel   KernelSays `json:"kernel"`
	Differ   []string   `json:"differences,omitempty"`
}
