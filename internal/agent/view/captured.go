package view

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// Captured converts the switch program's record of a frame; offset is how far the wall clock is ahead of the program's
// clock, in nanoseconds.
func Captured(f dataplane.Captured, offset int64) api.CaptureFrame {
	out := api.CaptureFrame{
		Time: time.Unix(0, int64(f.At)+offset), Stage: stageOf(f.Stage), Port: f.Slot, Other: f.Other,
		Copy:   f.Flags&abi.CaptureCopy != 0,
		ToHost: f.Flags&abi.CaptureToHost != 0, FromHost: f.Flags&abi.CaptureFromHost != 0, Length: f.Length,
		SegmentSize: f.GsoSize, Data: f.Frame, Remote: f.Remote, Local: f.Local,
		Made: f.Flags&abi.CaptureMade != 0,
	}
	if out.Stage == api.StageDrop {
		out.Reason = abi.Reason(f.Reason).String()
	}
	if f.Segment != 0 || f.VNI != 0 {
		out.Segment = plan.SegmentOf(f.VLAN, f.AD).In(f.VNI)
	}
	return out
}

func stageOf(stage uint8) api.CaptureStage {
	switch stage {
	case abi.CaptureAdmit:
		return api.StageAdmit
	case abi.CaptureDeliver:
		return api.StageDeliver
	}
	return api.StageDrop
}
