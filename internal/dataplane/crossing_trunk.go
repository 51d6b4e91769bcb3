package dataplane

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// EnterTrunk runs a frame that the owner of a trunk inside a VNI sends, and returns it as the switch program gets it;
// false for one that the program drops.
func (r *CrossingRecorder) EnterTrunk(at plan.PortID, frame []byte, now time.Duration) ([]byte, bool, error) {
	return r.runTrunk(r.programs.TrunkIn, at, frame, now)
}

// LeaveTrunk runs a frame that the switch program hands to a trunk inside a VNI, with the number of its segment for the
// VLAN, and returns it as the owner gets it; false for one that the program drops.
func (r *CrossingRecorder) LeaveTrunk(at plan.PortID, frame []byte, now time.Duration) ([]byte, bool, error) {
	return r.runTrunk(r.programs.TrunkOut, at, frame, now)
}

func (r *CrossingRecorder) runTrunk(program *ebpf.Program, at plan.PortID, frame []byte, now time.Duration) ([]byte,
	bool, error) {
	slot, ok := r.slots.Ports[at]
	if !ok {
		return nil, false, fmt.Errorf("no port %s in the plan", at)
	}
	var c abi.CrossingRecord
	inner := frame
	if len(frame) >= 18 {
		inner = takeTag(frame, &c)
	}
	out, bytes, err := r.runAt(program, slot, inner, &c, 0, now)
	if err != nil || out.Passed == 0 {
		return nil, false, err
	}
	if out.Tag == 0 {
		return bytes, true, nil
	}
	tag := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(out.Tag)), uint16(out.TCI))
	return slices.Concat(bytes[:12], tag, bytes[12:]), true, nil
}
