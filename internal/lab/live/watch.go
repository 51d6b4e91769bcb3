package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

// kept is how many arrivals a watcher remembers, a power of two: more than a round has.
const kept = 1 << 15

// guestDevice is the name of a VM's only adapter inside the VM.
const guestDevice = "eth0"

// watcher records when frames of one sender arrive at a VM: a program on its adapter reads CLOCK_MONOTONIC, the clock
// in which the agent reports the time of a change, as each frame is handed over.
type watcher struct {
	count, times *ebpf.Map
	program      *ebpf.Program
	attached     link.Link
}

// watch attaches the program, and puts the VM's adapter into promiscuous mode.
func watch(ns *netns.NS, from net.HardwareAddr) (w *watcher, err error) {
	w = &watcher{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("watch a segment: %w", err), w.close())
		}
	}()
	if w.count, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8,
		MaxEntries: 1}); err != nil {
		return w, err
	}
	if w.times, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8,
		MaxEntries: kept}); err != nil {
		return w, err
	}
	w.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: w.instructions(from),
		License: "GPL"})
	if err != nil {
		return w, err
	}
	return w, ns.Do(func() error {
		l, err := netlink.LinkByName(guestDevice)
		if err != nil {
			return err
		}
		if err := netlink.SetPromiscOn(l); err != nil {
			return err
		}
		w.attached, err = link.AttachTCX(link.TCXOptions{Interface: l.Attrs().Index, Program: w.program,
			Attach: ebpf.AttachTCXIngress})
		return err
	})
}

// instructions note the time of a frame whose source MAC ends with the sender's last four bytes, and pass every frame
// on.
func (w *watcher) instructions(from net.HardwareAddr) asm.Instructions {
	const sourceEnd = 8 // offset in an Ethernet frame
	tail := binary.BigEndian.Uint32(from[2:])
	take := asm.FetchAdd.Mem(asm.R0, asm.R1, asm.DWord, 0)
	take.Constant = int64(asm.FetchAdd) >> 8 // cilium/ebpf 0.22 leaves it out, and the instruction would fetch nothing
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadAbs(sourceEnd, asm.Word),
		asm.LoadImm(asm.R1, int64(tail), asm.DWord),
		asm.JNE.Reg(asm.R0, asm.R1, "pass"),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, w.count.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.Mov.Imm(asm.R1, 1),
		take,
		asm.And.Imm(asm.R1, kept-1),
		asm.StoreMem(asm.RFP, -4, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, w.times.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.StoreMem(asm.R0, 0, asm.R7, asm.DWord),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("pass"),
		asm.Return(),
	}
}

// seen is how many frames have arrived so far.
func (w *watcher) seen() (n uint64, err error) {
	err = w.count.Lookup(uint32(0), &n)
	return n, err
}

// since lists when the frames after the first n arrived, in nanoseconds of CLOCK_MONOTONIC.
func (w *watcher) since(n uint64) ([]int64, error) {
	now, err := w.seen()
	if err != nil {
		return nil, err
	}
	if now-n > kept {
		return nil, fmt.Errorf("%d frames arrived in one round, there is room for %d", now-n, kept)
	}
	times := make([]int64, 0, now-n)
	for ; n < now; n++ {
		var at uint64
		if err := w.times.Lookup(uint32(n%kept), &at); err != nil {
			return nil, err
		}
		times = append(times, int64(at))
	}
	return times, nil
}

func (w *watcher) close() error {
	var errs []error
	if w.attached != nil {
		errs = append(errs, w.attached.Close())
	}
	if w.program != nil {
		errs = append(errs, w.program.Close())
	}
	for _, m := range []*ebpf.Map{w.count, w.times} {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// flaps counts, until stop is called, the changes of a VM's adapter between up and not up.
type flaps struct {
	updates chan netlink.LinkUpdate
	done    chan struct{}
}

func watchLink(ns *netns.NS) (*flaps, error) {
	f := &flaps{updates: make(chan netlink.LinkUpdate, 256), done: make(chan struct{})}
	return f, ns.Do(func() error {
		return netlink.LinkSubscribeWithOptions(f.updates, f.done, netlink.LinkSubscribeOptions{})
	})
}

// stop returns how often the adapter was reported down or without carrier.
func (f *flaps) stop() (n int) {
	close(f.done)
	const running = unix.IFF_UP | unix.IFF_RUNNING | unix.IFF_LOWER_UP
	for u := range f.updates {
		if u.Attrs().Name == guestDevice && u.IfInfomsg.Flags&running != running {
			n++
		}
	}
	return n
}

func addressOf(ns *netns.NS) (mac net.HardwareAddr, err error) {
	err = ns.Do(func() error {
		l, err := netlink.LinkByName(guestDevice)
		if err == nil {
			mac = l.Attrs().HardwareAddr
		}
		return err
	})
	return mac, err
}

func idleDevice(i int) string { return fmt.Sprintf("idle%d", i) }

// makeIdle makes veths with both ends in the host: ports that are up and silent.
func makeIdle(ns *netns.NS, n int) error {
	return ns.Do(func() error {
		for i := range n {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = idleDevice(i)
			v := &netlink.Veth{LinkAttrs: attrs, PeerName: fmt.Sprintf("end%d", i)}
			if err := netlink.LinkAdd(v); err != nil {
				return fmt.Errorf("make device %s: %w", attrs.Name, err)
			}
			end, err := netlink.LinkByName(v.PeerName)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(end); err != nil {
				return err
			}
		}
		return nil
	})
}
