package api

import (
	"net/netip"
	"time"

	"heddle/internal/plan"
)

// Capture is a request for frames. An empty list matches everything.
type Capture struct {
	// Switch is needed if several have a port, an uplink or a segment of the name.
	Switch  string   `json:"switch,omitempty"`
	Ports   []string `json:"ports,omitempty"`   // names of ports and uplinks
	Uplinks []string `json:"uplinks,omitempty"` // names of uplinks
	// Segments are VLANs of one switch: "10", "10-20", "untagged", "ad:10"; or its overlay segments: "vni:5000" with
	// all VLANs inside, "vni:5000/10", "vni:5000/untagged".
	Segments []string `json:"segments,omitempty"`
	Stages   []string `json:"stages,omitempty"`  // see Stages
	Reasons  []string `json:"reasons,omitempty"` // of drops
	// Filter is a program of classic BPF, such as pcap-filter(7) expressions compile to.
	Filter []FilterInstruction `json:"filter,omitempty"`
	// Snap is the most bytes wanted of each frame; 0 is all.
	Snap int `json:"snap,omitempty"`
	// Outer asks for the packets of a switch's tunnel as they are on the network between the hosts. There are no
	// segments, stages and reasons then, and the filter is about the outer packet.
	Outer bool `json:"outer,omitempty"`
}

// VNIPrefix begins the word for overlay segments among Capture.Segments.
const VNIPrefix = "vni:"

// CaptureStage is the stage at which a frame is captured.
type CaptureStage string

// The stages.
const (
	StageAdmit   CaptureStage = "admit"   // it entered
	StageDeliver CaptureStage = "deliver" // it, or a copy of it, is delivered
	StageDrop    CaptureStage = "drop"    // it is dropped
)

// Stages returns the names of the stages, in the order in which a frame passes them.
func Stages() []string { return []string{string(StageAdmit), string(StageDeliver), string(StageDrop)} }

// FilterInstruction is one instruction of classic BPF.
type FilterInstruction struct {
	Code      uint16 `json:"code"`
	JumpTrue  uint8  `json:"jt"`
	JumpFalse uint8  `json:"jf"`
	K         uint32 `json:"k"`
}

// CaptureStarted is the first event of a capture. From now on frames are captured.
type CaptureStarted struct {
	ID uint64 `json:"id"` // for EndCapture
	// Outer: these are outer packets. An agent of an earlier version does not know the question, and sends frames.
	Outer bool `json:"outer,omitzero"`
}

// CapturePort is the name of the port or uplink that has a number in the following frames. A number may be given to
// another port later.
type CapturePort struct {
	Number uint16 `json:"number"`
	Switch string `json:"switch"`
	Name   string `json:"name"`
	Uplink bool   `json:"uplink"`
	// Device is that of the network between the hosts, of outer packets.
	Device string `json:"device,omitzero"`
}

// CaptureFrame is one frame, or a copy of one.
type CaptureFrame struct {
	Time  time.Time    `json:"time"`
	Stage CaptureStage `json:"stage"` // "" for an outer packet
	// Reason is why the frame was dropped, at StageDrop.
	Reason string `json:"reason,omitempty"`
	// Segment is the segment of the frame; none if it is not known.
	Segment plan.Segment `json:"segment,omitzero"`
	// Port is the number of the port or uplink; Other is, for a copy, the number of the port that sent the frame; 0:
	// none.
	Port  uint16 `json:"port,omitzero"`
	Other uint16 `json:"other,omitzero"`
	// Copy: the frame was leaving the switch, to the port's owner.
	Copy bool `json:"copy,omitzero"`
	// ToHost: the host's own stack receives it. FromHost: the host's own stack sent it.
	ToHost   bool `json:"toHost,omitzero"`
	FromHost bool `json:"fromHost,omitzero"`
	// Length is the length of the frame in bytes; Data are the first of them. Data is valid until the next event.
	Length uint32 `json:"length"`
	// SegmentSize is the payload of each segment in bytes, if the frame is yet to be segmented; 0 for others.
	SegmentSize uint32 `json:"segmentSize,omitzero"`
	Data        []byte `json:"data"`
	// Remote and Local are the ends of the tunnel, of a frame there: another host's endpoint, to which a copy goes or
	// from which the frame came, and this host's. Not valid if not known.
	Remote netip.Addr `json:"remote,omitzero"`
	Local  netip.Addr `json:"local,omitzero"`
	// Made: the tunnel itself answered a frame of a port of this host with this one.
	Made bool `json:"made,omitzero"`
}

// CaptureCounts are the counts of a capture so far; they follow the last frame.
type CaptureCounts struct {
	// Selected is the number of selected frames and copies; Lost is how many of them the client does not get: they
	// arrived faster than they were read, or after a port went to another port group.
	Selected uint64 `json:"selected"`
	Lost     uint64 `json:"lost"`
	// Ended says why these are the last counts: "" while the capture continues.
	Ended CaptureEnd `json:"ended,omitempty"`
}

// CaptureEnd is why a capture ends.
type CaptureEnd string

// The reasons.
const (
	CaptureAsked     CaptureEnd = "asked"      // EndCapture was called
	CaptureAgentEnds CaptureEnd = "agent-ends" // also if the client ends, which does not see it
)

// CaptureEvent is one event of a capture: exactly one field is not nil.
type CaptureEvent struct {
	Started *CaptureStarted
	Port    *CapturePort
	Frame   *CaptureFrame
	Counts  *CaptureCounts
}

// EndCapture ends a capture; frames captured until then are still sent.
type EndCapture struct {
	ID uint64 `json:"id"`
}
