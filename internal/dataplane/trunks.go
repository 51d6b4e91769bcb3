package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/entries"
	"heddle/internal/plan"
)

// Directories of the attachments to ports that are trunks inside a VNI.
const (
	trunkInDir  = "trunk-in"
	trunkOutDir = "trunk-out"
)

// trunkPrograms are what the devices of trunks inside a VNI run beside the switch program.
type trunkPrograms struct {
	In  *ebpf.Program `ebpf:"heddle_trunk_in"`
	Out *ebpf.Program `ebpf:"heddle_trunk_out"`
}

// trunks are the ports that are trunks inside a VNI. To the switch program their owner's tags are numbers of segments:
// one that ran on such a device without the two programs, or they without it, would put frames into wrong segments.
// Hence the programs are attached before a plan that needs them is active, and detached after the switch program; and
// while a device goes from one kind of port to the other, no frame passes.
type trunks struct {
	live    trunkPrograms
	in, out *links
	written map[uint32]abi.OverlayTrunk // what the table holds, by slot
	// before is what it held before prepare, until the plan is active.
	before map[uint32]abi.OverlayTrunk
}

func (o *overlays) openTrunks() (err error) {
	k, p := o.kernel, &o.trunks.live
	if o.trunks.in, err = adoptLinks(o.pinDir(trunkInDir), ebpf.AttachTCXIngress, p.In, k.log); err != nil {
		return err
	}
	if o.trunks.out, err = adoptLinks(o.pinDir(trunkOutDir), ebpf.AttachTCXEgress, p.Out, k.log); err != nil {
		return err
	}
	o.trunks.written, err = entries.All[uint32, abi.OverlayTrunk](o.maps.OverlayTrunks)
	return err
}

// trunkDevices are the devices of the trunks inside VNIs, with the slots of their ports, 0 where they have none yet.
func (o *overlays) trunkDevices(d binding.Desired) map[uint32]uint32 {
	all := map[uint32]uint32{}
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		for _, p := range sw.Ports {
			at, attached := d.Attachments[p.ID]
			if _, known := d.Facts[p.ID]; known && attached && compile.IsTrunk(p) {
				all[at.Ifindex] = o.kernel.slots.Ports[p.ID]
			}
		}
	}
	return all
}

// attachTrunks attaches the two programs to the devices of the desired state that need them, and returns that state
// without the devices where it failed: their ports get no frames. A device that it attaches for the first time takes
// two grace periods of the kernel.
func (o *overlays) attachTrunks(d binding.Desired) (binding.Desired, error) {
	if !hasTunnel(d.Plan) && !o.loaded {
		return d, nil
	}
	if err := o.open(); err != nil {
		return d, err
	}
	want := o.trunkDevices(d)
	var errs []error
	failed := map[uint32]bool{}
	for _, l := range []*links{o.trunks.out, o.trunks.in} {
		more := maps.Clone(want)
		for index := range l.byIndex { // those of no use any more are detached when the plan is active
			more[index] = 0
		}
		l.note(more)
		_, err := l.step(time.Unix(math.MaxInt32, 0))
		errs = append(errs, err)
		for index := range l.wanted {
			failed[index] = true
		}
	}
	if len(failed) == 0 {
		return d, errors.Join(errs...)
	}
	some := maps.Clone(d.Attachments)
	maps.DeleteFunc(some, func(_ plan.PortID, a binding.Attachment) bool {
		_, is := want[a.Ifindex]
		return is && failed[a.Ifindex]
	})
	d.Attachments = some
	if err := errors.Join(errs...); err != nil {
		o.kernel.log.Error("ports that are trunks inside a VNI get no frames: their devices do not take the programs "+
			"for that", "err", err)
	}
	return d, nil
}

// prepareTrunks writes the trunks of a plan that is about to become active. Ports that forward already, and become
// trunks or cease to be ones, stop until it is.
func (o *overlays) prepareTrunks(want map[uint32]abi.OverlayTrunk) error {
	t := &o.trunks
	if t.before == nil {
		t.before = maps.Clone(t.written)
	}
	live := map[uint32]bool{}
	for index, slot := range o.kernel.links.slots {
		if _, attached := o.kernel.links.byIndex[index]; attached && slot != 0 {
			live[slot] = true
		}
	}
	next := maps.Clone(want)
	for slot, rec := range want {
		if was, is := t.written[slot]; live[slot] && (!is || was.Flags&abi.TrunkChanges != 0) {
			rec.Flags |= abi.TrunkChanges
			next[slot] = rec
		}
	}
	for slot, rec := range t.written {
		if _, stays := want[slot]; !stays {
			rec.Flags |= abi.TrunkChanges
			next[slot] = rec
		}
	}
	return o.writeTrunks(next)
}

// settleTrunks lets the active plan's trunks have their frames. No run of a program uses an earlier plan any more.
func (o *overlays) settleTrunks(want map[uint32]abi.OverlayTrunk) error {
	o.trunks.before = nil
	return o.writeTrunks(want)
}

// undoTrunks makes the table what it was before prepare, as the plan did not become active.
func (o *overlays) undoTrunks() error {
	if !o.loaded || o.trunks.before == nil {
		return nil
	}
	before := o.trunks.before
	o.trunks.before = nil
	return o.writeTrunks(before)
}

// writeTrunks makes the table what it is to be.
func (o *overlays) writeTrunks(want map[uint32]abi.OverlayTrunk) error {
	t := &o.trunks
	if err := putNew(o.maps.OverlayTrunks, t.written, want); err != nil {
		return fmt.Errorf("write the trunks inside overlay segments: %w", err)
	}
	if err := removeGone(o.maps.OverlayTrunks, t.written, want); err != nil {
		return fmt.Errorf("remove trunks inside overlay segments: %w", err)
	}
	return nil
}
