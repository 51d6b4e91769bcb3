// Package diagnose defines the types in which Heddle explains: the question and the answer of a trace, and what to
// change. Its sub-packages find the answers. Pure.
package diagnose

import "heddle/internal/plan"

// Report answers a request: exactly one of Frames and Talk is set.
type Report struct {
	// From is the port or uplink, with its switch.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Answer is what the report comes to.
	Answer Answer  `json:"answer"`
	Frames []Frame `json:"frames,omitempty"`
	Talk   *Talk   `json:"talk,omitempty"`
	// Sent is how many frames were sent, when Frames has not all of them.
	Sent int `json:"sent,omitempty"`
	// Notes are about the whole answer.
	Notes []string `json:"notes,omitempty"`
	// Agree says that model and kernel program agree on every frame.
	Agree bool `json:"agree"`
}

// Answer is what was asked, answered in one sentence.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	// Text says who reaches whom and how or, of a no, where and why the first frame ends.
	Text string `json:"text"`
	// Reason and Fix are of a no: the reason of that refusal, and what changes it; "" where nothing does or should.
	Reason string `json:"reason,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// Frame is what becomes of one frame.
type Frame struct {
	Number int `json:"number"` // from 1
	// Summary are the frame's headers in words, Bytes the frame in hexadecimal.
	Summary string `json:"summary"`
	Length  int    `json:"length"`
	Bytes   string `json:"bytes,omitempty"`
	// Assumed is what was not given and how it was filled in.
	Assumed   []string `json:"assumed,omitempty"`
	Steps     []Step   `json:"steps,omitempty"`
	Delivered bool     `json:"delivered"`
	// Reason is why the frame was dropped, "" when it was not.
	Reason string `json:"reason,omitempty"`
	Copies []Copy `json:"copies"`
	// Causes explain the drop, every refused copy, and why the port asked about got none.
	Causes []Cause `json:"causes,omitempty"`
	// Kernel says whether the kernel program does the same.
	Kernel      KernelSays `json:"kernel"`
	Differences []string   `json:"differences,omitempty"`
}

// KernelSays is whether the kernel program does with a frame what the model says.
type KernelSays string

// What the kernel program says.
const (
	KernelAgrees    KernelSays = "agrees"
	KernelDisagrees KernelSays = "disagrees"
	KernelNone      KernelSays = "no-program" // it was not asked: there is none here
	KernelTooShort  KernelSays = "too-short"  // it was not asked: it is never given less than an Ethernet header
)

// Step is one decision on the way.
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

// Copy is a copy that would be handed over.
type Copy struct {
	To     string   `json:"to"`
	Kind   CopyKind `json:"kind"`
	Device string   `json:"device,omitempty"`
	// Tag is the outermost tag the copy has: "untagged", "VLAN 10", "802.1ad VLAN 10".
	Tag    string `json:"tag"`
	Length int    `json:"length"`
	// Bytes are those that leave by an uplink, in hexadecimal; "" for other copies.
	Bytes string `json:"bytes,omitempty"`
}

// Cause is why somebody gets nothing, and what changes that.
type Cause struct {
	// Reason is the counted reason; or other-vlan or other-switch, when the port asked about is not where the frame
	// is.
	Reason string `json:"reason"`
	// Port is who gets nothing, "" when it is the whole frame.
	Port string `json:"port,omitempty"`
	Why  string `json:"why"`
	// Setting is what in the configuration causes it: the field, its value and the level that it comes from; nil where
	// no setting does.
	Setting *plan.Row `json:"setting,omitempty"`
	// Policy, Value and From say it to people: the setting or what else it is, what it is, and who has it so.
	Policy string `json:"policy"`
	Value  string `json:"value,omitempty"`
	From   string `json:"from"`
	// Change says what to do; Edit what to write into the configuration for that; Command carries it out or, where
	// nothing is to be changed, shows what is behind it.
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

// The objects that edits are about.
const (
	EditSwitch EditObject = "switch"
	EditGroup  EditObject = "port group"
	EditUplink EditObject = "uplink"
	EditPort   EditObject = "port"
)

// Object names what is edited: "port group web of switch lab".
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

// Verdict answers whether something arrives.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "unknown" // it leaves this host
)

// Protocol says whether two ports can talk a protocol: what both directions come to.
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
