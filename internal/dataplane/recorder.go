package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Recorder runs the switch program on single frames in the kernel, with tables of its own, and records which copies it
// would have delivered to which devices. It uses the recording build of the same program; the caller sets the clock, in
// milliseconds. Its methods are for one goroutine.
type Recorder struct {
	objects vswitchObjects
	tables  *planTables
	slots   *compile.Slots
	ids     map[uint32]plan.PortID
	trunks  map[plan.PortID]compile.Trunk // inside VNIs
	control *ebpf.Memory
	records *ebpf.Memory
	now     time.Duration
	hz      uint64 // ticks a second
	flows   *Flows
}

// Recorded is the result for one frame.
type Recorded struct {
	Delivered bool
	Reason    abi.Reason
	Copies    []RecordedCopy
	Refused   []RecordedRefusal
}

// RecordedCopy is a frame as it would have been delivered, with its tags in the bytes.
type RecordedCopy struct {
	To        plan.PortID // with HostStack: the uplink whose host gets the copy
	HostStack bool
	Frame     []byte
}

// RecordedRefusal is a copy that was refused. To is zero for a refusal without a receiver (no-uplink).
type RecordedRefusal struct {
	To     plan.PortID
	Reason abi.Reason
}

// recorderMACs is the size of a recorder's table of learned MACs. It is small because a sweep visits every bucket, and
// a dry run sweeps often.
const recorderMACs = 8192

// recorderFlows is how many flows it meters between two drains.
const recorderFlows = 1 << 14

// A recorder has few fast slots, so that a few flows compete for them and comparisons of programs cover all ways of
// counting.
const (
	recorderPlaces   = 4
	recorderPatience = 2
)

// NewRecorder loads the recording build. It needs the privilege to load programs, but no devices.
func NewRecorder() (*Recorder, error) {
	var all struct {
		dryBuild
		HeddleRecordEgress *ebpf.Program `ebpf:"heddle_record_egress"`
		HeddleSweep        *ebpf.Program `ebpf:"heddle_sweep"`
	}
	return newRecorder(1000, recorderMACs, &all, func(o *vswitchObjects) {
		all.dryBuild.to(o)
		o.HeddleRecordEgress, o.HeddleSweep = all.HeddleRecordEgress, all.HeddleSweep
	})
}

// dryBuild is the recording build without the parts that dry runs do not need, because the verifier takes most of the
// loading time.
type dryBuild struct {
	vswitchMaps
	HeddleRecord *ebpf.Program `ebpf:"heddle_record"`
}

func (r *dryBuild) to(o *vswitchObjects) {
	o.vswitchMaps, o.HeddleRecord = r.vswitchMaps, r.HeddleRecord
}

// newRecorder gives the recording build a clock of hz ticks a second and tables for macs learned MACs. It loads the
// objects that the fields of build name; keep then stores them.
func newRecorder(hz uint64, macs uint32, build any, keep func(*vswitchObjects)) (*Recorder, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift memory limit for kernel tables: %w", err)
	}
	spec, err := loadVswitch()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(spec.Variables["recording"].Set(true), spec.Variables["ticks_per_second"].Set(hz),
		sizeMeter(spec, ebpf.MustPossibleCPU(), recorderPlaces),
		setPlaces(spec, recorderPlaces, recorderPatience)); err != nil {
		return nil, err
	}
	spec.Maps["records"].MaxEntries = abi.MaxRecords
	spec.Maps["macs"].MaxEntries = macs
	r := &Recorder{slots: compile.NewSlots(), ids: map[uint32]plan.PortID{}, hz: hz}
	if err := spec.LoadAndAssign(build, nil); err != nil {
		return nil, errors.Join(explainLoad(err), r.Close())
	}
	keep(&r.objects)
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open prepares the loaded tables for use.
func (r *Recorder) open() (err error) {
	// Ticks are the caller's milliseconds, and a run has ended when its call returns.
	clock := func() (func(uint32) int64, error) {
		now := r.now.Milliseconds()
		return func(at uint32) int64 { return now - int64(int32(uint32(now)-at)) }, nil
	}
	if r.flows, err = openFlows(&r.objects.vswitchMaps, recorderPlaces, clock, func() error {
		return nil
	}); err != nil {
		return err
	}
	r.flows.fixed = recorderFlows
	r.tables = newPlanTables(&r.objects.vswitchMaps)
	if r.control, err = r.objects.RecordControl.Memory(); err != nil {
		return err
	}
	r.records, err = r.objects.Records.Memory()
	return err
}

// Close frees the tables and programs.
func (r *Recorder) Close() error {
	errs := []error{r.flows.close(), r.tables.close()}
	for _, p := range []*ebpf.Program{r.objects.HeddleRecord, r.objects.HeddleRecordEgress, r.objects.HeddleSweep} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if r.objects.Ports != nil {
		errs = append(errs, r.objects.vswitchMaps.Close())
	}
	return errors.Join(errs...)
}

// SetPlan activates a plan and facts at an instant, and sweeps.
func (r *Recorder) SetPlan(p *plan.Plan, facts plan.Facts, now time.Duration) error {
	r.now = now
	d := binding.Desired{Plan: p, Facts: facts, Attachments: map[plan.PortID]binding.Attachment{}}
	for id := range facts {
		d.Attachments[id] = binding.Attachment{Ifindex: 1}
	}
	a, err := r.slots.Assign(p)
	if err != nil {
		return err
	}
	img, err := compile.Tables(d, r.slots, 1000)
	if err != nil {
		r.slots.Undo(a)
		return err
	}
	if err := r.flows.prepare(p, r.slots); err != nil {
		return err
	}
	r.flows.note(compile.Points(d, r.slots), r.slots)
	zero := make([]abi.Counters, ebpf.MustPossibleCPU())
	for id, slot := range a.NewPorts {
		r.ids[slot] = id
		if err := errors.Join(r.objects.MeterPoints.Put(slot, make([]abi.MeterPoint, len(zero))),
			r.objects.Counts.Put(slot, zero), r.objects.RareCounts.Put(slot, &abi.RareCounters{}),
			r.objects.StormBuckets.Put(slot, &abi.StormBucket{}), r.objects.Awake.Put(slot, uint64(0))); err != nil {
			return err
		}
	}
	next, err := r.tables.write(img)
	if err != nil {
		return err
	}
	if _, err := r.tables.flip(next); err != nil {
		return err
	}
	if err := r.Sweep(now); err != nil {
		return err
	}
	for _, slot := range a.GoneSlots {
		delete(r.ids, slot)
	}
	r.slots.Release(a)
	r.trunks = map[plan.PortID]compile.Trunk{}
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if t, ok := compile.TrunkOf(port); ok {
				r.trunks[port.ID] = t
			}
		}
	}
	r.flows.settle(p)
	return nil
}

// Sweep removes learned MACs that no look-up would use any more.
func (r *Recorder) Sweep(now time.Duration) error {
	if err := r.setControl(abi.RecordControl{Now: uint64(now.Milliseconds())}); err != nil {
		return err
	}
	r.now = now
	_, err := sweep(r.objects.HeddleSweep)
	return err
}

func (r *Recorder) setControl(c abi.RecordControl) error {
	_, err := r.control.WriteAt(bytesOf([]abi.RecordControl{c}), 0)
	return err
}

// maxTestRun is the longest frame that the kernel accepts in a test run; the program itself extends a longer frame with
// zeros.
const maxTestRun = 3584

// FromHost runs one of the host's own frames through the switch, as the frame is about to leave by an uplink; see
// Frame. If the frame leaves unchanged, that is recorded as a copy to the uplink.
func (r *Recorder) FromHost(uplink plan.PortID, frame []byte, now time.Duration) (*Recorded, error) {
	r.now = now
	return r.run(r.objects.HeddleRecordEgress, uplink, frame, uint64(now.Milliseconds()))
}

// Frame runs one frame through the switch. The kernel refuses frames shorter than 14 bytes; longer ones than 3,584
// bytes must be zero from there on.
func (r *Recorder) Frame(at plan.PortID, frame []byte, now time.Duration) (*Recorded, error) {
	r.now = now
	return r.run(r.objects.HeddleRecord, at, frame, uint64(now.Milliseconds()))
}

// FrameFrom runs a frame that comes from a switch's tunnel, in a segment in which the switch has a port: as the
// tunnel's program hands it on, which gives it the segment's number for its VLAN inside.
func (r *Recorder) FrameFrom(sw string, vni uint32, frame []byte, now time.Duration) (*Recorded, error) {
	in, err := r.numbered(sw, vni, frame)
	if err != nil {
		return nil, err
	}
	return r.Frame(plan.PortID{Switch: sw, Name: spec.TunnelName}, in, now)
}

// numbered is a frame in a VNI as the tunnel's program hands it to the switch program.
func (r *Recorder) numbered(sw string, vni uint32, frame []byte) ([]byte, error) {
	seg, rest, tci := compile.OverlaySegment{Switch: sw, VNI: vni}, frame[12:], uint16(0)
	if binary.BigEndian.Uint16(rest) == vlanTag {
		tci, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
		seg.VLAN = tci & abi.VIDMask
	}
	number, ok := r.slots.Segments[seg]
	if !ok {
		return nil, fmt.Errorf("switch %s has no port in VLAN %d of VNI %d", sw, seg.VLAN, vni)
	}
	in := binary.BigEndian.AppendUint16(append([]byte{}, frame[:12]...), vlanTag)
	return append(binary.BigEndian.AppendUint16(in, tci&^abi.VIDMask|number), rest...), nil
}

// vlanTag is the EtherType of an 802.1Q tag.
const vlanTag = 0x8100

// GSO runs a frame that the kernel keeps whole for segmentation: size is the payload of each packet in bytes, segments
// the number of packets, or 0 if the kernel does not know it yet.
func (r *Recorder) GSO(at plan.PortID, frame []byte, size, segments uint32, now time.Duration) (*Recorded, error) {
	r.now = now
	return r.runIn(r.objects.HeddleRecord, at, frame, uint64(now.Milliseconds()),
		&skbuff{GSOSize: size, GSOSegs: segments})
}

// skbuff is the part of struct __sk_buff that a test run uses.
type skbuff struct {
	_       [164]byte
	GSOSegs uint32
	_       [8]byte
	GSOSize uint32
	_       [12]byte
}

func (r *Recorder) run(program *ebpf.Program, at plan.PortID, frame []byte, ticks uint64) (*Recorded, error) {
	return r.runIn(program, at, frame, ticks, nil)
}

func (r *Recorder) runIn(program *ebpf.Program, at plan.PortID, frame []byte, ticks uint64, context *skbuff) (*Recorded,
	error) {
	slot, ok := r.slots.Ports[at]
	if !ok {
		return nil, fmt.Errorf("no port %s in the plan", at)
	}
	c := abi.RecordControl{Now: ticks, Slot: slot}
	if t, is := r.trunks[at]; is && len(frame) >= 14 {
		frame = t.Enter(r.slots, frame)
	}
	in := frame
	if len(frame) > maxTestRun {
		for _, b := range frame[maxTestRun:] {
			if b != 0 {
				return nil, fmt.Errorf("frame of %d bytes has other than zeros after byte %d", len(frame), maxTestRun)
			}
		}
		in, c.Grow = frame[:maxTestRun], uint32(len(frame))
	}
	if err := r.setControl(c); err != nil {
		return nil, err
	}
	options := &ebpf.RunOptions{Data: in}
	if context != nil {
		options.Context = context
	}
	if _, err := program.Run(options); err != nil {
		return nil, fmt.Errorf("run frame of %d bytes: %w", len(frame), err)
	}
	return r.result()
}

func (r *Recorder) result() (*Recorded, error) {
	var c [1]abi.RecordControl
	if _, err := r.control.ReadAt(bytesOf(c[:]), 0); err != nil {
		return nil, err
	}
	if c[0].Count > abi.MaxRecords {
		return nil, fmt.Errorf("frame led to %d copies and refusals, the recorder holds %d", c[0].Count, abi.MaxRecords)
	}
	out := &Recorded{Reason: abi.Reason(c[0].Reason)}
	out.Delivered = out.Reason == abi.ReasonNone
	const size = 16 + abi.MaxFrame
	for i := int64(0); i < int64(c[0].Count); i++ {
		var head [4]uint32
		if _, err := r.records.ReadAt(bytesOf(head[:]), i*size); err != nil {
			return nil, err
		}
		kind, id, reason, length := head[0], r.ids[head[1]], abi.Reason(head[2]), head[3]
		if kind == abi.RecordRefusal {
			out.Refused = append(out.Refused, RecordedRefusal{To: id, Reason: reason})
			continue
		}
		frame := make([]byte, length)
		if _, err := r.records.ReadAt(frame, i*size+16); err != nil {
			return nil, err
		}
		out.Copies = append(out.Copies, RecordedCopy{To: id, HostStack: kind == abi.RecordHost,
			Frame: r.inside(id, frame)})
	}
	return out, nil
}

// inside returns a copy for a tunnel, or for a trunk inside a VNI, as it is inside: the program tags it with the
// segment's number.
func (r *Recorder) inside(to plan.PortID, frame []byte) []byte {
	if t, is := r.trunks[to]; is {
		return t.Leave(r.slots, frame)
	}
	if to.Name != spec.TunnelName || len(frame) < 18 || len(r.slots.Segments) == 0 {
		return frame
	}
	tci := binary.BigEndian.Uint16(frame[14:])
	for seg, number := range r.slots.Segments {
		switch {
		case seg.Switch != to.Switch || number != tci&abi.VIDMask:
		case seg.VLAN == 0:
			return append(append([]byte{}, frame[:12]...), frame[16:]...)
		default:
			binary.BigEndian.PutUint16(frame[14:], tci&^abi.VIDMask|seg.VLAN)
			return frame
		}
	}
	return frame
}

// Counters reads the counters of every port and uplink of the plan.
func (r *Recorder) Counters() (map[plan.PortID]observe.Counters, error) {
	return readCounters(&r.objects.vswitchMaps, r.slots)
}

// MACs lists the learned MACs.
func (r *Recorder) MACs() ([]observe.MACEntry, error) {
	return readMACs(&r.objects.vswitchMaps, r.slots, uint64(r.now.Milliseconds()), 1000)
}

// Flows meters the recorder's frames: times are the caller's, in milliseconds. The next plan reuses slots that a plan
// frees: drain before it.
func (r *Recorder) Flows() *Flows { return r.flows }
