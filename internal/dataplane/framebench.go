package dataplane

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// FrameBench measures the kernel time of the live program per frame by repeated test runs. Unicast frames are not sent
// anywhere by a test run; floods are, to the devices of the attachments (K20). For one goroutine.
type FrameBench struct {
	objects vswitchObjects
	tables  *planTables
	slots   *compile.Slots
	hz      uint64
	control *ebpf.Memory
	frames  *ebpf.Memory
	room    int
	flows   *Flows
	// captures are the captures of Capture, nil before the first; the capturing build is loaded once and stays.
	captures *Captures
}

// NewFrameBench loads the live program with tables of its own and memory for that many different frames.
func NewFrameBench(frames int) (*FrameBench, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, err
	}
	spec, err := loadVswitch()
	if err != nil {
		return nil, err
	}
	b := &FrameBench{slots: compile.NewSlots(), room: frames}
	if b.hz, err = jiffiesPerSecond(spec.Copy()); err != nil {
		return nil, err
	}
	if err := fit(spec, b.hz); err != nil {
		return nil, err
	}
	spec.Maps["bench_frames"].MaxEntries = uint32(max(frames, 1))
	if err := b.load(spec); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *FrameBench) load(spec *ebpf.CollectionSpec) error {
	var live struct {
		vswitchMaps
		HeddleIngress *ebpf.Program `ebpf:"heddle_ingress"`
		HeddleBench   *ebpf.Program `ebpf:"heddle_bench"`
		HeddleSweep   *ebpf.Program `ebpf:"heddle_sweep"`
		HeddleClocks  *ebpf.Program `ebpf:"heddle_clocks"`
	}
	if err := spec.LoadAndAssign(&live, nil); err != nil {
		return explainLoad(err)
	}
	b.objects.vswitchMaps = live.vswitchMaps
	b.objects.HeddleIngress, b.objects.HeddleBench = live.HeddleIngress, live.HeddleBench
	b.objects.HeddleSweep, b.objects.HeddleClocks = live.HeddleSweep, live.HeddleClocks
	var err error
	if b.flows, err = openFlows(&b.objects.vswitchMaps, placesOf(ebpf.MustPossibleCPU()), ticksAsTime, func() error {
		return nil
	}); err != nil {
		return err
	}
	b.tables = newPlanTables(&b.objects.vswitchMaps)
	if b.control, err = b.objects.BenchControl.Memory(); err != nil {
		return err
	}
	b.frames, err = b.objects.BenchFrames.Memory()
	return err
}

// Close frees the tables and programs.
func (b *FrameBench) Close() error {
	errs := []error{b.flows.close(), b.tables.close()}
	if b.captures != nil {
		errs = append(errs, b.captures.unuse(ownerless))
	}
	for _, p := range []*ebpf.Program{b.objects.HeddleIngress, b.objects.HeddleBench, b.objects.HeddleSweep,
		b.objects.HeddleClocks} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if b.objects.Ports != nil {
		errs = append(errs, b.objects.vswitchMaps.Close())
	}
	return errors.Join(errs...)
}

// Apply writes the desired state to the tables, without attaching anything.
func (b *FrameBench) Apply(d binding.Desired) error {
	a, err := b.slots.Assign(d.Plan)
	if err != nil {
		return err
	}
	img, err := compile.Tables(d, b.slots, b.hz)
	if err != nil {
		return err
	}
	if err := b.flows.prepare(d.Plan, b.slots); err != nil {
		return err
	}
	next, err := b.tables.write(img)
	if err != nil {
		return err
	}
	if _, err := b.tables.flip(next); err != nil {
		return err
	}
	b.slots.Release(a)
	return nil
}

// Learn fills the table of learned MACs.
func (b *FrameBench) Learn(entries []observe.MACEntry) error {
	c, err := readClocks(b.objects.HeddleClocks)
	if err != nil {
		return err
	}
	keys, values := make([]abi.MACKey, len(entries)), make([]abi.Learned, len(entries))
	for i, e := range entries {
		key, slot, _ := macKey(b.slots, &e)
		keys[i], values[i] = key, abi.Learned{Seen: c.Ticks, Slot: slot}
	}
	if n, err := b.objects.Macs.BatchUpdate(keys, values, nil); err != nil {
		return fmt.Errorf("learn MAC %d of %d: %w", n, len(entries), err)
	}
	return nil
}

// BenchFrame is one frame of a cycle: the port it comes from, and its addresses.
type BenchFrame struct {
	From     plan.PortID
	Dst, Src plan.MAC
	// Flow distinguishes the flows of IPv4 frames, with GivenFlows.
	Flow uint32
}

// BenchFlows says which flows the frames of a cycle belong to.
type BenchFlows uint32

// Which flows the frames of a cycle belong to: the flow of the frame as it is; a given flow for each; or a new flow for
// each. New flows are numbered from 0 up, like given ones.
const (
	OneFlow    BenchFlows = abi.BenchFlowsAsTheyAre
	GivenFlows BenchFlows = abi.BenchFlowsGiven
	NewFlows   BenchFlows = abi.BenchFlowsNew
)

// One measures the attached program itself on one frame, as if it came from the port.
func (b *FrameBench) One(from plan.PortID, frame []byte, repeat int) (time.Duration, error) {
	const loopback = 1 // the device of every test run
	if err := b.objects.SlotByIfindex.Put(uint32(loopback), b.slots.Ports[from]); err != nil {
		return 0, err
	}
	_, d, err := b.objects.HeddleIngress.Benchmark(frame, repeat, nil)
	return d, err
}

// SetCycle sets the frames that Cycle visits in turn.
func (b *FrameBench) SetCycle(frames []BenchFrame) error {
	if len(frames) > b.room {
		return fmt.Errorf("%d frames, room for %d", len(frames), b.room)
	}
	records := make([]abi.BenchFrame, len(frames))
	for i, f := range frames {
		copy(records[i].Addresses[:6], f.Dst[:])
		copy(records[i].Addresses[6:], f.Src[:])
		records[i].Slot, records[i].Source = b.slots.Ports[f.From], f.Flow
	}
	if err := put(b.frames, records, 0); err != nil {
		return err
	}
	return put(b.control, []abi.BenchControl{{Frames: uint32(len(frames))}}, 0)
}

// Cycle measures the program over the cycle, including the writing of each frame's addresses; empty measures the
// writing alone.
func (b *FrameBench) Cycle(frame []byte, repeat int, empty bool) (time.Duration, error) {
	var c [1]abi.BenchControl
	if _, err := b.control.ReadAt(bytesOf(c[:]), 0); err != nil {
		return 0, err
	}
	c[0].Empty = 0
	if empty {
		c[0].Empty = 1
	}
	if err := put(b.control, c[:], 0); err != nil {
		return 0, err
	}
	_, d, err := b.objects.HeddleBench.Benchmark(frame, repeat, nil)
	return d, err
}

// Counters reads the counters, to check that the measured frames took the intended path.
func (b *FrameBench) Counters() (map[plan.PortID]observe.Counters, error) {
	return readCounters(&b.objects.vswitchMaps, b.slots)
}

// Empty measures a program that returns at once: the cost of the test run itself.
func (b *FrameBench) Empty(repeat int) (time.Duration, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return 0, explainLoad(err)
	}
	defer p.Close()
	_, d, err := p.Benchmark(make([]byte, 60), repeat, nil)
	return d, err
}

// ownerless is the owner of captures when no device has a program to exchange.
func ownerless(func() error) error { return nil }

// Capture makes One measure the capturing build with a capture of the selection. drain empties its ring; end makes One
// use the live program again.
func (b *FrameBench) Capture(s Selection) (drain, end func() error, err error) {
	if b.captures == nil {
		cs := &Captures{kernel: &Kernel{objects: b.objects, hz: b.hz, slots: b.slots}}
		if _, err := cs.use(ownerless); err != nil {
			return nil, nil, err
		}
		b.captures = cs
	}
	if err := b.captures.follow(b.slots); err != nil {
		return nil, nil, err
	}
	c, err := b.captures.Start(s, ownerless)
	if err != nil {
		return nil, nil, err
	}
	live := b.objects.HeddleIngress
	b.objects.HeddleIngress = c.build.capturing.Programs["heddle_ingress"]
	drain = func() error {
		for {
			switch _, err := c.Next(time.Now()); {
			case errors.Is(err, os.ErrDeadlineExceeded):
				return nil
			case err != nil:
				return err
			}
		}
	}
	return drain, func() error { b.objects.HeddleIngress = live; return c.Close() }, nil
}

// Flows meters the frames; times are the kernel's ticks.
func (b *FrameBench) Flows() *Flows { return b.flows }

// SetFlows sets which flows the frames of the cycle belong to. Frames with flows are IPv4.
func (b *FrameBench) SetFlows(f BenchFlows) error {
	var c [1]abi.BenchControl
	if _, err := b.control.ReadAt(bytesOf(c[:]), 0); err != nil {
		return err
	}
	c[0].Flows = uint32(f)
	return put(b.control, c[:], 0)
}

// SizeFlows makes the tables of a CPU large enough for that many IPv4 flows, as a drain does that has found so many.
// The tables are empty afterwards.
func (b *FrameBench) SizeFlows(cpu, flows int) error {
	b.flows.demand[cpu][ipv4].size = flows
	for _, t := range b.flows.tables {
		if err := t.exchange(b.flows.demand); err != nil {
			return err
		}
	}
	return nil
}
