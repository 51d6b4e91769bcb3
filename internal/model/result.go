package model

import (
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Result is what happened to one frame: exactly one disposition (S94), the copies, the refusals and the table changes.
type Result struct {
	Delivered bool       // at least one copy was handed over, the host's stack included
	Reason    abi.Reason // why it was dropped; ReasonNone when delivered
	Copies    []Copy     // may share their bytes with each other, never with the frame given in
	Refused   []Refusal  // one for each copy considered and not made
	Steps     []Step     // the decisions; only with Host.Explain(true)
	Changes   []Change   // of the learned table, without refreshes
	// Segment is the frame's segment; Placed says that the frame was classified.
	Segment Segment
	Placed  bool
	// Outside is the endpoint of another host behind which the destination is known (S190); not valid where there is
	// none.
	Outside netip.Addr
	// Left is the second run of the copy for a tunnel, and Back what became of the frame by which the tunnel answered;
	// nil for none.
	Left *Left
	Back *Result
}

// Copy is one copy handed over. With HostStack it went to the host's own stack on the uplink To.
type Copy struct {
	To        plan.PortID
	HostStack bool
	Frame     []byte // with every tag, without FCS
}

// Refusal is a copy that was considered and not made. Port is the receiver, port or uplink; it is zero for no-uplink.
type Refusal struct {
	Port   plan.PortID
	Reason abi.Reason
}

// Stage names a part of a frame's path, as in frame-rules.
type Stage string

// The stages, in order.
const (
	StageAdmit    Stage = "admit"
	StageClassify Stage = "classify"
	StageLearn    Stage = "learn"
	StageLookUp   Stage = "look up"
	StageRules    Stage = "receiver"
	StageDeliver  Stage = "deliver"
)

// Step is one decision, in the user's words.
type Step struct {
	Stage Stage
	Text  string
}

// ChangeKind says what happened to a learned MAC.
type ChangeKind string

// What can happen to a learned MAC.
const (
	Learned ChangeKind = "learned"
	Moved   ChangeKind = "moved"
	Removed ChangeKind = "removed" // S92
)

// Change is one change of the learned table of the frame's switch.
type Change struct {
	Kind ChangeKind
	Segment
	MAC    plan.MAC
	Port   plan.PortID
	Before plan.PortID // for Moved: where it was
}

// MAC is a learned entry.
type MAC struct {
	Switch string
	Segment
	MAC  plan.MAC
	Port plan.PortID
	Seen time.Duration // when it last sent, on the caller's clock
}
