package migration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
)

// A guest that is a namespace can't be copied from host to host. It has a device on each of the two hosts instead, and
// a valve, which is programs in the kernel, says on which of them the guest runs: its frames go to that host, and that
// host's frames come to it. Between its stop here and its start there it stands still. What a host delivers while the
// guest does not run there is counted and dropped, and so is what the guest's stack sends while it stands still.

// nowhere is where the guest runs while it stands still; the hosts are 1 and 2.
const nowhere = 0

// The indexes of what a program counts: frames and bytes by class, and frames that came at the wrong time. The first
// two are all frames that a host delivers, and of the guest's own those that found a host.
const (
	classFrames = 0
	classBytes  = classes
	wrongTime   = 2 * classes
	counted     = wrongTime + 1
)

// Classes of frames by destination. Those to all nodes are multicast, and apart because a host itself sends such ones
// to a guest: the queries of S50.
const (
	unicast = iota
	multicast
	broadcast
	allNodes
	classes
)

// The first four bytes of the addresses of all nodes (RFC 1112 §6.4, RFC 2464 §7), whose last two are these.
const (
	allNodesIPv4, allNodesIPv6 = 0x01005e00, 0x33330000
	allNodesEnd                = 0x0001
)

// Indexes of the map that says where the guest runs: that, and the devices towards the two hosts.
const whereNow = 0

// What programs return (include/uapi/linux/bpf.h).
const (
	tcxNext = -1
	tcxDrop = 2
)

// counts are what one program has counted so far.
type counts [counted]uint64

func (c counts) minus(o counts) counts {
	for i := range c {
		c[i] -= o[i]
	}
	return c
}

func (c counts) plus(o counts) counts {
	for i := range c {
		c[i] += o[i]
	}
	return c
}

// tap is a program on one device.
type tap struct {
	counts   *ebpf.Map
	program  *ebpf.Program
	attached link.Link
}

// valve is all programs that share where the guest runs.
type valve struct {
	where *ebpf.Map
	taps  []*tap
}

func newValve() (*valve, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 3})
	if err != nil {
		return nil, fmt.Errorf("make the valve's map: %w", err)
	}
	return &valve{where: m}, nil
}

// runs says where the guest runs from now on.
func (v *valve) runs(host int) error { return v.where.Put(uint32(whereNow), uint64(host)) }

// leads says which device leads to a host.
func (v *valve) leads(host, device int) error { return v.where.Put(uint32(host), uint64(device)) }

// attach attaches a program to what comes in by a device, and returns the device's number.
func (v *valve) attach(ns *netns.NS, device string, code func(counts *ebpf.Map) asm.Instructions) (t *tap, index int,
	err error) {
	t = &tap{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("attach a program to %s/%s: %w", ns.Name, device, err), t.close())
		}
	}()
	t.counts, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: counted})
	if err != nil {
		return t, 0, err
	}
	t.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: code(t.counts),
		License: "GPL"})
	if err != nil {
		return t, 0, err
	}
	err = ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		index = l.Attrs().Index
		t.attached, err = link.AttachTCX(link.TCXOptions{Interface: index, Program: t.program,
			Attach: ebpf.AttachTCXIngress})
		return err
	})
	if err == nil {
		v.taps = append(v.taps, t)
	}
	return t, index, err
}

func (v *valve) close() error {
	errs := []error{v.where.Close()}
	for _, t := range v.taps {
		errs = append(errs, t.close())
	}
	return errors.Join(errs...)
}

func (t *tap) close() error {
	var errs []error
	if t.attached != nil {
		errs = append(errs, t.attached.Close())
	}
	if t.program != nil {
		errs = append(errs, t.program.Close())
	}
	if t.counts != nil {
		errs = append(errs, t.counts.Close())
	}
	t.attached, t.program, t.counts = nil, nil, nil
	return errors.Join(errs...)
}

func (t *tap) read() (c counts, err error) {
	for i := range c {
		if err := t.counts.Lookup(uint32(i), &c[i]); err != nil {
			return c, fmt.Errorf("read the valve's counters: %w", err)
		}
	}
	return c, nil
}

// fromGuest sends the guest's frames to the host where it runs.
func (v *valve) fromGuest(c *ebpf.Map) asm.Instructions {
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	code = append(code, v.load(whereNow)...)
	code = append(code, asm.JEq.Imm(asm.R8, nowhere, "wrong"))
	code = append(code, count(c)...)
	code = append(code,
		asm.StoreMem(asm.RFP, -4, asm.R8, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, v.where.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "wrong"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return())
	return append(code, wrong(c, tcxDrop)...)
}

// toGuest hands the guest the frames of a host while it runs there.
func (v *valve) toGuest(host, guest int) func(*ebpf.Map) asm.Instructions {
	return func(c *ebpf.Map) asm.Instructions {
		code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
		code = append(code, v.load(whereNow)...)
		code = append(code, count(c)...)
		code = append(code, asm.JNE.Imm(asm.R8, int32(host), "wrong"))
		code = append(code, asm.Mov.Imm(asm.R1, int32(guest)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(),
			asm.Return())
		return append(code, wrong(c, tcxDrop)...)
	}
}

// onWire counts the frames of the guest's MAC that a host sends into the physical network, and passes everything on.
// They are behind head bytes of a tunnel's headers; 0 for none.
func (v *valve) onWire(host int, mac net.HardwareAddr, head int) func(*ebpf.Map) asm.Instructions {
	const sourceEnd = 8 // offset of the last four bytes of the source in an Ethernet frame
	return func(c *ebpf.Map) asm.Instructions {
		code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
		if head > 0 {
			for _, f := range tunnelled() {
				code = append(code, asm.LoadAbs(int32(f.offset), map[int]asm.Size{1: asm.Byte, 2: asm.Half}[f.size]),
					asm.JNE.Imm(asm.R0, int32(f.value), "pass"))
			}
		}
		code = append(code,
			asm.LoadAbs(int32(head)+sourceEnd, asm.Word),
			asm.LoadImm(asm.R1, int64(binary.BigEndian.Uint32(mac[2:])), asm.DWord),
			asm.JNE.Reg(asm.R0, asm.R1, "pass"))
		code = append(code, v.load(whereNow)...)
		code = append(code, asm.JNE.Imm(asm.R8, int32(host), "wrong"))
		code = append(code, count(c)...)
		code = append(code, asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("pass"), asm.Return())
		return append(code, wrong(c, tcxNext)...)
	}
}

// load puts a value of the shared map into R8; R6 is the frame.
func (v *valve) load(index int64) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.RFP, -4, index, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, v.where.FD()),
		asm.FnMapLookupElem.Call(),
		asm.Mov.Imm(asm.R8, nowhere),
		asm.JEq.Imm(asm.R0, 0, "loaded"),
		asm.LoadMem(asm.R8, asm.R0, 0, asm.DWord),
		asm.Mov.Reg(asm.R8, asm.R8).WithSymbol("loaded"),
	}
}

// count adds a frame and its bytes to the counters of its class.
func count(c *ebpf.Map) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Imm(asm.R7, unicast),
		asm.LoadAbs(0, asm.Byte),
		asm.And.Imm(asm.R0, 1),
		asm.JEq.Imm(asm.R0, 0, "class"),
		asm.Mov.Imm(asm.R7, multicast),
		asm.LoadAbs(0, asm.Word),
		asm.LoadImm(asm.R1, 0xffffffff, asm.DWord),
		asm.JEq.Reg(asm.R0, asm.R1, "broadcast"),
		asm.JEq.Imm(asm.R0, allNodesIPv4, "nodes"),
		asm.JNE.Imm(asm.R0, allNodesIPv6, "class"),
		asm.LoadAbs(4, asm.Half).WithSymbol("nodes"),
		asm.JNE.Imm(asm.R0, allNodesEnd, "class"),
		asm.Mov.Imm(asm.R7, allNodes),
		asm.Ja.Label("class"),
		asm.LoadAbs(4, asm.Half).WithSymbol("broadcast"),
		asm.JNE.Imm(asm.R0, 0xffff, "class"),
		asm.Mov.Imm(asm.R7, broadcast),
		asm.StoreMem(asm.RFP, -8, asm.R7, asm.Word).WithSymbol("class"),
		asm.Mov.Imm(asm.R9, 1),
	}
	code = append(code, add(c, -8, "frames")...)
	code = append(code,
		asm.Add.Imm(asm.R7, classBytes),
		asm.StoreMem(asm.RFP, -8, asm.R7, asm.Word),
		asm.LoadMem(asm.R9, asm.R6, 0, asm.Word)) // the length of the frame
	return append(code, add(c, -8, "bytes")...)
}

// wrong counts a frame that came at the wrong time, and returns what becomes of it.
func wrong(c *ebpf.Map, verdict int32) asm.Instructions {
	code := asm.Instructions{
		asm.StoreImm(asm.RFP, -8, wrongTime, asm.Word).WithSymbol("wrong"),
		asm.Mov.Imm(asm.R9, 1),
	}
	code = append(code, add(c, -8, "late")...)
	return append(code, asm.Mov.Imm(asm.R0, verdict), asm.Return())
}

// add adds R9 to the counter whose index is on the stack.
func add(c *ebpf.Map, at int32, label string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, at),
		asm.LoadMapPtr(asm.R1, c.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "no-"+label),
		asm.AddAtomic.Mem(asm.R0, asm.R9, asm.DWord, 0),
		asm.Mov.Reg(asm.R9, asm.R9).WithSymbol("no-" + label),
	}
}
