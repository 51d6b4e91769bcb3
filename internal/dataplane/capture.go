package dataplane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/plan"
)

// ErrTooManyCaptures means that the largest possible number of captures is already running.
var ErrTooManyCaptures = fmt.Errorf("%d captures run already, and that is as many as there can be at a time",
	abi.MaxCaptures)

// captureRing is the size of one capture's ring, in bytes: a power of two. It limits the memory of a capture, and how
// far its reader can fall behind.
const captureRing = 8 << 20

// captureLook is how often a reader checks a ring that is not filling up.
const captureLook = 20 * time.Millisecond

// Segment is one broadcast domain of a switch.
type Segment struct {
	VNI  uint32 // 0 = none; 1–16777214: an overlay segment, VLAN is inside it
	VLAN uint16 // 0 = the untagged segment
	AD   bool   // the VLAN is an 802.1ad one
	All  bool   // every VLAN inside the VNI, and what is untagged in it
}

// Selection says which frames a capture records.
type Selection struct {
	// Ports are ports and uplinks; none means all. A port that does not exist yet is captured once it exists.
	Ports []plan.PortID
	// Segments are segments of Switch; none means all, and then Switch is not used.
	Switch   string
	Segments []Segment
	// Stages are abi.CaptureAdmit and so on.
	Stages []int
	// Reasons of drops; none means all.
	Reasons []abi.Reason
	// Filter is a classic BPF program that CheckFilter accepts; an empty one accepts every frame.
	Filter []abi.FilterInstruction
	// Snap is the most bytes of a frame to capture, 1 to abi.MaxSnap.
	Snap int
}

// Captures are the running captures. Any goroutine may call its methods.
type Captures struct {
	kernel *Kernel
	// loading guards build and users, and is held while a program is loaded; mu guards the rest.
	loading sync.Mutex
	build   *capturingBuild // nil while nothing is captured
	users   int

	mu      sync.Mutex
	places  compile.Slots
	decode  atomic.Pointer[decoder]
	running [abi.MaxCaptures]*Capture
}

// Capture is a running capture. Next and Counts are for one goroutine.
type Capture struct {
	of        *Captures
	id        uint32
	active    bool
	owner     func(func() error) error
	selection Selection
	inner     *ebpf.Map
	ring      *ringbuf.Reader
	record    ringbuf.Record
	build     *capturingBuild
}

// Captured is one frame or copy. Frame is valid until the next call.
type Captured struct {
	abi.CaptureRecord
	// Where the frame was, if anywhere: the overlay segment, 0 for none, the VLAN (inside it), 0 for untagged, and
	// whether that is an 802.1ad one.
	VNI   uint32
	VLAN  uint16
	AD    bool
	Frame []byte
	// Remote and Local are the ends of the tunnel, of a frame there; not valid where they are not known.
	Remote, Local netip.Addr
}

// decoder reads the number of a segment.
type decoder func(segment uint32) (vni uint32, vlan uint16, ad bool)

// Captures returns the captures of this kernel.
func (k *Kernel) Captures() *Captures { return k.captures }

// Start begins a capture. The first one takes as long as loading a program, some tenths of a second. owner runs a
// function on the goroutine that may call the kernel's methods; it is called here and when the capture is closed. The
// error is ErrTooManyCaptures if no slot is free.
func (c *Captures) Start(s Selection, owner func(func() error) error) (*Capture, error) {
	if err := CheckFilter(s.Filter); err != nil {
		return nil, err
	}
	build, err := c.use(owner)
	if err != nil {
		return nil, err
	}
	run, err := c.add(build, s)
	if err != nil {
		return nil, errors.Join(err, c.unuse(owner))
	}
	run.owner = owner
	return run, nil
}

// use makes sure that the capturing build is active, and keeps it active until unuse.
func (c *Captures) use(owner func(func() error) error) (*capturingBuild, error) {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.build == nil {
		var tunnels map[string]*ebpf.Map
		if err := owner(func() error { tunnels = c.kernel.overlays.shared(); return nil }); err != nil {
			return nil, err
		}
		b, err := loadCapturingBuild(c.kernel, tunnels)
		if err != nil {
			return nil, err
		}
		if err := owner(func() error { return c.kernel.exchangeFor(b) }); err != nil {
			back := owner(func() error { return c.kernel.exchangeFor(nil) })
			return nil, errors.Join(err, back, b.close())
		}
		c.build = b
	}
	c.users++
	return c.build, nil
}

// unuse attaches the live program to the devices again after the last use.
func (c *Captures) unuse(owner func(func() error) error) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.users--; c.users > 0 {
		return nil
	}
	b := c.build
	c.build = nil
	err := owner(func() error { return c.kernel.exchangeFor(nil) })
	return errors.Join(err, b.close())
}

func (c *Captures) add(build *capturingBuild, s Selection) (*Capture, error) {
	run := &Capture{of: c, selection: s, build: build}
	var err error
	if run.inner, err = ebpf.NewMap(&ebpf.MapSpec{Name: "capture", Type: ebpf.RingBuf,
		MaxEntries: captureRing}); err != nil {
		return nil, fmt.Errorf("make a capture's ring: %w", err)
	}
	if run.ring, err = ringbuf.NewReader(run.inner); err != nil {
		return nil, errors.Join(fmt.Errorf("read a capture's ring: %w", err), run.inner.Close())
	}
	if err := c.begin(run); err != nil {
		return nil, errors.Join(err, run.closeRing())
	}
	return run, nil
}

// begin gives the capture a free slot and activates it.
func (c *Captures) begin(run *Capture) error {
	if err := c.reserve(run); err != nil {
		return err
	}
	err := run.build.prepare(run)
	c.mu.Lock()
	defer c.mu.Unlock()
	if run.active = err == nil; run.active {
		err = c.activate(run.build)
	}
	if err != nil {
		c.running[run.id] = nil
	}
	return err
}

// reserve writes the capture to a slot that no run of the program reads.
func (c *Captures) reserve(run *Capture) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.running {
		if c.running[id] != nil {
			continue
		}
		run.id = uint32(id)
		if err := put(run.build.captures, []abi.Capture{c.compile(run.selection)}, int64(id)); err != nil {
			return fmt.Errorf("write a capture: %w", err)
		}
		c.running[id] = run
		return nil
	}
	return ErrTooManyCaptures
}

// prepare waits for a grace period of the kernel.
func (b *capturingBuild) prepare(run *Capture) error {
	zero := make([]abi.CaptureCounts, ebpf.MustPossibleCPU())
	if err := b.counts.Put(run.id, zero); err != nil {
		return fmt.Errorf("reset a capture's counters: %w", err)
	}
	if err := b.rings.Put(run.id, run.inner); err != nil {
		return fmt.Errorf("give a capture its ring: %w", err)
	}
	return nil
}

// activate sets which captures the program runs. It is a system call, so that the program sees everything that was
// written about the captures before.
func (c *Captures) activate(b *capturingBuild) error {
	var ctl abi.CaptureControl
	for id, run := range c.running {
		if run != nil && run.active {
			ctl.Active |= 1 << id
		}
	}
	if err := b.control.Put(uint32(0), &ctl); err != nil {
		return fmt.Errorf("activate captures: %w", err)
	}
	return nil
}

// close ends the captures that are still running, before the kernel's handles are closed.
func (c *Captures) close() error {
	c.mu.Lock()
	var left []*Capture
	for _, run := range c.running {
		if run != nil {
			left = append(left, run)
		}
	}
	c.mu.Unlock()
	var errs []error
	for _, run := range left {
		run.owner = func(f func() error) error { return f() } // the caller is the goroutine that closes the kernel
		errs = append(errs, run.Close())
	}
	if c.kernel.standIn != nil { // a capture ended while its owner was busy with closing
		errs = append(errs, c.kernel.exchangeFor(nil))
	}
	return errors.Join(errs...)
}

// Next waits for the next frame; after the deadline the error is os.ErrDeadlineExceeded, and after Close os.ErrClosed.
func (r *Capture) Next(deadline time.Time) (Captured, error) {
	for {
		look := time.Now().Add(captureLook)
		if look.After(deadline) {
			look = deadline
		}
		r.ring.SetDeadline(look)
		err := r.ring.ReadInto(&r.record)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && look.Before(deadline):
			continue
		case errors.Is(err, ringbuf.ErrClosed):
			return Captured{}, os.ErrClosed
		case err != nil:
			return Captured{}, err
		}
		head := int(unsafe.Sizeof(abi.CaptureRecord{}))
		if len(r.record.RawSample) < head {
			return Captured{}, fmt.Errorf("a captured frame of %d bytes is shorter than what describes it",
				len(r.record.RawSample))
		}
		f := Captured{CaptureRecord: *(*abi.CaptureRecord)(unsafe.Pointer(&r.record.RawSample[0])),
			Frame: r.record.RawSample[head:]}
		r.of.describe(&f)
		return f, nil
	}
}

// describe says in which segment a frame was, and between which ends of a tunnel. One that came with a VNI of which
// the switch has no segment is in that VNI and in the VLAN of its tag.
func (c *Captures) describe(f *Captured) {
	f.Remote, f.Local = outerAddress(f.Outer.Remote), outerAddress(f.Outer.Local)
	if decode := c.decode.Load(); decode != nil && f.Segment != 0 {
		f.VNI, f.VLAN, f.AD = (*decode)(f.Segment)
	}
	f.inside()
	if f.VNI != 0 || f.Outer.Vni == 0 {
		return
	}
	f.VNI = f.Outer.Vni
	if len(f.Frame) >= 16 && binary.BigEndian.Uint16(f.Frame[12:]) == vlanTag {
		f.VLAN = binary.BigEndian.Uint16(f.Frame[14:]) & abi.VIDMask
	}
}

// outerAddress is the invalid address for none.
func outerAddress(words [4]uint32) netip.Addr {
	if words == ([4]uint32{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte(bytesOf(words[:]))).Unmap()
}

// Counts returns how many frames and copies were selected, and how many of them did not fit into the ring.
func (r *Capture) Counts() (selected, lost uint64, err error) {
	var of []abi.CaptureCounts
	if err := r.build.counts.Lookup(r.id, &of); err != nil {
		return 0, 0, fmt.Errorf("read a capture's counters: %w", err)
	}
	for _, c := range of {
		selected, lost = selected+c.Selected, lost+c.Lost
	}
	return selected, lost, nil
}

// Stop ends the selection of frames; frames in the ring can still be read.
func (r *Capture) Stop() error {
	c := r.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[r.id] != r {
		return nil
	}
	// The capture keeps its slot until Close; without stages it selects nothing.
	at := int64(r.id)*int64(unsafe.Sizeof(abi.Capture{})) + int64(unsafe.Offsetof(abi.Capture{}.Stages))
	_, err := r.build.captures.WriteAt(bytesOf([]uint32{0}), at)
	return err
}

// Close ends the capture. After the last one, devices run the live program again.
func (r *Capture) Close() error {
	c := r.of
	c.mu.Lock()
	if c.running[r.id] != r {
		c.mu.Unlock()
		return nil
	}
	c.running[r.id] = nil
	err := c.activate(r.build)
	c.mu.Unlock()
	return errors.Join(err, r.build.rings.Delete(r.id), r.closeRing(), c.unuse(r.owner))
}

func (r *Capture) closeRing() error { return errors.Join(r.ring.Close(), r.inner.Close()) }

// Name returns the present port or uplink at a record's slot; the zero PortID if it is gone.
func (c *Captures) Name(slot uint16) (plan.PortID, error) {
	var n abi.PortName
	if err := c.kernel.objects.PortNames.Lookup(uint32(slot), &n); err != nil {
		return plan.PortID{}, fmt.Errorf("read name of slot %d: %w", slot, err)
	}
	return portID(n), nil
}
