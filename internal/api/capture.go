package api

import (
	"time"

	"heddle/internal/plan"
)

// Capture asks for frames. Lists that are empty ask for everything.
type Capture struct {
	// Switch says which, where several have a port, an uplink or a segment of the name.
	Switch  string   `json:"switch,omitempty"`
	Ports   []string `json:"ports,omitempty"`   // names of ports and uplinks
	Uplinks []string `json:"uplinks,omitempty"` // names of uplinks
	// Segments are VLANs of one switch: "10", "10-20", "untagged", "ad:10".
	Segments []string `json:"segments,omitempty"`
	Stages   []string `json:"stages,omitempty"`  // see Stages
	Reasons  []string `json:"reasons,omitempty"` // of drops
	// Filter is a program of classic BPF, as pcap-filter(7) expressions compile to.
	Filter []FilterInstruction `json:"filter,omitempty"`
	// Snap is how many bytes of each frame are wanted at most; 0 is all.
	Snap int `json:"snap,omitempty"`
}

// CaptureStage is where a frame is captured.
type CaptureStage string

// The stages.
const (
	StageAdmit   CaptureStage = "admit"   // it came in
	StageDeliver CaptureStage = "deliver" // it, or a copy of it, goes out
	StageDrop    CaptureStage = "drop"    // it goes nowhere
)

// Stages returns the names of the stages, in the order a frame meets them.
func Stages() []string { return []string{string(StageAdmit), string(StageDeliver), string(StageDrop)} }

// FilterInstruction is one instruction of classic BPF.
type FilterInstruction struct {
	Code      uint16 `json:"code"`
	JumpTrue  uint8  `json:"jt"`
	JumpFalse uint8  `json:"jf"`
	K         uint32 `json:"k"`
}

// CaptureStarted is the first thing a capture says. From now on frames are captured.
type CaptureStarted struct {
	ID uint64 `json:"id"` // for EndCapture
}

// CapturePort says which port or uplink has a number in frames that follow. A number may be given to another port
// later.
type CapturePort struct {
	Number uint16 `json:"number"`
	Switch string `json:"switch"`
	Name   string `json:"name"`
	Uplink bool   `json:"uplink"`
}

// CaptureFrame is one frame, or a copy of one.
type CaptureFrame struct {
	Time  time.Time    `json:"time"`
	Stage CaptureStage `json:"stage"`
	// Reason is why the frame was dropped, at StageDrop.
	Reason string `json:"reason,omitempty"`
	// Segment is that of the frame; none where it is not known.
	Segment plan.Segment `json:"segment,omitzero"`
	// Port is the number of the port or uplink, Other of a copy that of the one that sent the frame; 0: none.
	Port  uint16 `json:"port,omitzero"`
	Other uint16 `json:"other,omitzero"`
	// Copy: the frame was on its way out of the switch, to the port's owner.
	Copy bool `json:"copy,omitzero"`
	// ToHost and FromHost: the host's own stack has part in it.
	ToHost   bool `json:"toHost,omitzero"`
	FromHost bool `json:"fromHost,omitzero"`
	// Length is the frame's in bytes; Data has the first of them. It is valid until the next event.
	Length uint32 `json:"length"`
	// SegmentSize is that of a frame which stands for several, and which its sender left to be cut; 0 of others.
	SegmentSize uint32 `json:"segmentSize,omitzero"`
	Data        []byte `json:"data"`
}

// CaptureCounts are what a capture has seen so far, all of it after the last frame.
type CaptureCounts struct {
	// Selected are the frames and copies asked for, Lost those of them that came faster than they were read.
	Selected uint64 `json:"selected"`
	Lost     uint64 `json:"lost"`
	// Ended says why these are the last: "" while the capture goes on.
	Ended CaptureEnd `json:"ended,omitempty"`
}

// CaptureEnd is why a capture ends.
type CaptureEnd string

// Why a capture ends.
const (
	CaptureAsked     CaptureEnd = "asked"      // EndCapture was called
	CaptureAgentEnds CaptureEnd = "agent-ends" // or the client does, and hears nothing of it
)

// CaptureEvent is one thing that a capture says: what is not nil.
type CaptureEvent struct {
	Started *CaptureStarted
	Port    *CapturePort
	Frame   *CaptureFrame
	Counts  *CaptureCounts
}

// EndCapture asks for the end of a capture; what was captured until then still comes.
type EndCapture struct {
	ID uint64 `json:"id"`
}
