package bench

import (
	"context"
	"fmt"

	"heddle/internal/abi"
	"heddle/internal/capture/filter"
	"heddle/internal/dataplane"
)

// The states that others are compared with.
const (
	captureOff   = "off"
	captureElse  = "of another segment"
	captureShort = "filter of 1 instruction"
	captureAll   = "everything, whole"
	longFilter   = 101 // instructions
	stagesPassed = 2   // stages that a frame from port to port passes: admit, deliver
	filterOfNone = "tcp port 1 or udp port 1"
)

// captureLong is the state with the filter of longFilter instructions, all of which run.
func captureLong() string { return fmt.Sprintf("filter of %d instructions", longFilter) }

// captureState is a capture that runs while something is measured.
type captureState struct {
	name string
	// args are the arguments of "heddle capture" while guests exchange traffic; nil = none runs.
	args []string
	// The rest is for measuring the program alone.
	segment      uint16
	filter       string
	instructions int // of a filter that runs to its end and matches nothing
	snap         int
}

// guestStates are the states in which guests' traffic is measured. Its frames are IP over Ethernet, so that the filter
// evaluates each and matches none.
func guestStates() []captureState {
	return []captureState{
		{name: captureOff},
		{name: captureElse, args: []string{"any", "--vlan", "4000"}, segment: 4000},
		{name: "filter matches nothing", args: []string{"any", "--filter", filterOfNone}, filter: filterOfNone},
		{name: captureAll, args: []string{"any"}},
	}
}

// programStates are the states in which the program alone is measured.
func programStates() []captureState {
	return append(guestStates(),
		captureState{name: captureShort, instructions: 1},
		captureState{name: captureLong(), instructions: longFilter},
		captureState{name: "everything, 96 bytes", snap: 96},
	)
}

// off says that nothing is captured.
func (s captureState) off() bool { return s.name == captureOff }

// selection is what the agent makes of the state's arguments.
func (s captureState) selection(ctx context.Context) (dataplane.Selection, error) {
	out := dataplane.Selection{Stages: []int{abi.CaptureAdmit, abi.CaptureDeliver, abi.CaptureDrop}, Snap: abi.MaxSnap}
	if s.snap > 0 {
		out.Snap = s.snap
	}
	if s.segment > 0 {
		out.Switch, out.Segments = "bench", []dataplane.Segment{{VLAN: s.segment}}
	}
	if s.instructions > 0 {
		out.Filter = straightFilter(s.instructions)
	}
	if s.filter == "" {
		return out, nil
	}
	program, err := filter.Compile(ctx, s.filter)
	for _, in := range program {
		out.Filter = append(out.Filter, abi.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue,
			JumpFalse: in.JumpFalse, K: in.K})
	}
	return out, err
}

// straightFilter is a filter of n instructions that all run, mixed as in compiled expressions: loads of a field
// alternate with comparisons, and a return at the end matches nothing.
func straightFilter(n int) []abi.FilterInstruction {
	const loadHalf, jumpEqual, end = 0x28, 0x15, 0x06
	var f []abi.FilterInstruction
	for len(f) < n-1 {
		f = append(f, abi.FilterInstruction{Code: loadHalf, K: 12})
		if len(f) < n-1 {
			f = append(f, abi.FilterInstruction{Code: jumpEqual, K: 0x86dd}) // both branches lead to the next
		}
	}
	return append(f, abi.FilterInstruction{Code: end})
}
