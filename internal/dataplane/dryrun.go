package dataplane

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// DryRun runs frames through the recording build of the switch program on copies of the live tables, as they were when
// copied: no frame leaves, and no live table, counter or event changes. Frames affect one another: MACs that are
// learned from one frame are known to the next. Its methods are for one goroutine.
type DryRun struct {
	r     *Recorder
	ticks uint64
	keep  func(*Recorder) error
}

func (d *DryRun) fill(s *Snapshot) error {
	m := &d.r.objects.vswitchMaps
	for i, table := range planMaps(m) {
		half := halfBytes(table)
		if int64(len(s.plan[i])) != half {
			return fmt.Errorf("table %s has %d bytes in the kernel and %d here", table, half, len(s.plan[i]))
		}
		if err := writeAt(table, s.plan[i], int64(s.control.Generation&1)*half); err != nil {
			return err
		}
	}
	for id, slot := range s.slots {
		d.r.slots.Ports[id], d.r.ids[slot] = slot, id
	}
	d.r.slots.Segments, d.r.trunks = s.overlays, s.trunks
	return errors.Join(s.macs.Write(m.Macs), s.held.Write(m.Held), s.ownMarks.Write(m.OwnMarks), s.marks.Write(m.Marks),
		s.buckets.Write(m.StormBuckets), s.awake.Write(m.Awake), s.speakers.Write(m.Speakers),
		s.outside.Show(seesOutside(m)),
		m.Control.Update(uint32(0), &s.control, ebpf.UpdateAny))
}

// Frame runs a frame that a port or uplink receives, as Recorder.Frame does.
func (d *DryRun) Frame(at plan.PortID, frame []byte) (*Recorded, error) {
	return d.r.run(d.r.objects.HeddleRecord, at, frame, d.ticks)
}

// FrameFrom runs a frame that comes from a switch's tunnel, as Recorder.FrameFrom does.
func (d *DryRun) FrameFrom(sw string, vni uint32, frame []byte) (*Recorded, error) {
	in, err := d.r.numbered(sw, vni, frame)
	if err != nil {
		return nil, err
	}
	return d.Frame(plan.PortID{Switch: sw, Name: spec.TunnelName}, in)
}

// Close ends the dry run; what is loaded is kept for the next one.
func (d *DryRun) Close() error { return d.keep(d.r) }

// keptFor is how long what a dry run has loaded is kept for the next one: some 20 MB of kernel memory. What has a
// larger table of MACs than a host has by default is not kept.
const keptFor = time.Minute

// DryRun begins a dry run on the copies. Close it after use. The recording build stays loaded from one to the next: the
// kernel's verifier takes 100 ms to a second for it, and filling the tables takes milliseconds.
func (s *Snapshot) DryRun() (*DryRun, error) {
	r, err := s.recorder()
	if err != nil {
		return nil, err
	}
	d := &DryRun{r: r, ticks: s.ticks, keep: s.loaded.Put}
	if r.objects.Macs.MaxEntries() > abi.DefaultMACs {
		d.keep = (*Recorder).Close
	}
	if err := d.fill(s); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the live tables for a dry run: %w", err), r.Close())
	}
	return d, nil
}

// recorder is one with empty tables that have room for the copies.
func (s *Snapshot) recorder() (*Recorder, error) {
	room := max(uint32(len(s.macs.Keys)), s.room)
	if r, ok := s.loaded.Take(); ok {
		if r.hz == s.hz && r.objects.Macs.MaxEntries() == room && r.forget() == nil {
			return r, nil
		}
		_ = r.Close() // another one does its work
	}
	var build dryBuild
	return newRecorder(s.hz, room, &build, build.to)
}

// forget empties the tables whose contents depend on what a dry run copied; those that have an entry for each port are
// written as a whole by the next one.
func (r *Recorder) forget() error {
	r.slots, r.ids, r.trunks = compile.NewSlots(), map[uint32]plan.PortID{}, nil
	m := &r.objects.vswitchMaps
	return errors.Join(entries.Empty[abi.MACKey, abi.Learned](m.Macs),
		entries.Empty[abi.MACKey, uint64](m.Marks),
		entries.Delete(m.OutsideLocations, uint32(0)), entries.Delete(m.OutsideEndpoints, uint32(0)))
}
