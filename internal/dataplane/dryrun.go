package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// DryRun runs frames through the recording build of the switch program on copies of the live tables, as they were when
// copied: no frame leaves, and no live table, counter or event changes. Frames affect one another: MACs that are
// learned from one frame are known to the next. Its methods are for one goroutine.
type DryRun struct {
	r     *Recorder
	ticks uint64
}

// DryRun loads the recording build, which takes some 100 ms, and fills its tables. Close it after use.
func (s *Snapshot) DryRun() (*DryRun, error) {
	var build dryBuild
	r, err := newRecorder(s.hz, max(uint32(len(s.macs.keys)), s.room), &build, build.to)
	if err != nil {
		return nil, err
	}
	d := &DryRun{r: r, ticks: s.ticks}
	if err := d.fill(s); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the live tables for a dry run: %w", err), r.Close())
	}
	return d, nil
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
	return errors.Join(s.macs.write(m.Macs), s.held.write(m.Held), s.ownMarks.write(m.OwnMarks), s.marks.write(m.Marks),
		s.buckets.write(m.StormBuckets), s.awake.write(m.Awake),
		s.speakers.write(m.Speakers), s.outside.Show(seesOutside(m)),
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

// Close frees the tables and programs.
func (d *DryRun) Close() error { return d.r.Close() }
