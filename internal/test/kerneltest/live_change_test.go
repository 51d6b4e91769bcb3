package kerneltest

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

const twoVLANs = `
  portGroups:
  - {name: ten, vlan: {access: 10}}
  - {name: twenty, vlan: {access: 20}}
  - {name: moves, vlan: {access: 10}}
`

// stream sends numbered frames from an owner, about one every 100 µs, until it is stopped.
type stream struct {
	size   int           // of each frame, bytes
	number atomic.Uint64 // given to a frame just before it is sent
	quit   chan struct{}
	done   sync.WaitGroup
	err    error
}

// startStream sends frames of 60 bytes with that header and their number, from 1.
func startStream(e *end, header string) *stream { return startSized(e, header, 60) }

func startSized(e *end, header string, size int) *stream {
	s := &stream{size: size, quit: make(chan struct{})}
	s.done.Go(func() { onOneCPU(e.t, func() { s.run(e, header) }) })
	return s
}

func (s *stream) run(e *end, header string) {
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for s.err == nil {
		f := binary.BigEndian.AppendUint64(wire(header+" [0]"), s.number.Add(1))
		s.err = e.inject(append(f, make([]byte, s.size-len(f))...))
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
	}
}

// stop returns how many frames were sent.
func (s *stream) stop(h *host) uint64 {
	h.t.Helper()
	close(s.quit)
	s.done.Wait()
	if s.err != nil {
		h.t.Fatal(s.err)
	}
	return s.number.Load()
}

// numbers are the numbers of the frames that an owner received.
func numbers(list []captured) []uint64 {
	var out []uint64
	for _, c := range list {
		out = append(out, binary.BigEndian.Uint64(c.frame[14:]))
	}
	return out
}

func TestAStreamLosesNothingWhilePlansAndProgramsChange(t *testing.T) {
	testkit.Long(t, "streams while plans and programs change")
	for _, dst := range []string{"vm2", "all"} {
		t.Run(dst, func(t *testing.T) {
			h := newHost(t, twoVLANs, "vm1 ten", "vm2 ten", "vm3 moves")
			gathered := h.gather()
			s := startStream(h.ends["vm1"], dst+" vm1 0800")
			for range 3 {
				h.edit("name: moves, vlan: {access: 10}", "name: moves, vlan: {access: 20}")
				h.edit("name: moves, vlan: {access: 20}", "name: moves, vlan: {access: 10}")
				if err := h.k.Close(); err != nil {
					t.Fatal(err)
				}
				h.open() // exchanges the program on every device
				h.reapply()
			}
			h.await("a thousand frames", func() bool { return s.number.Load() > 1000 })
			sent := s.stop(h)
			h.await("every frame is switched", func() bool { return h.received("vm1") == sent })
			got := numbers(gathered()["vm2"])
			if uint64(len(got)) != sent || !slices.IsSorted(got) || got[0] != 1 || got[len(got)-1] != sent {
				t.Errorf("sent 1–%d, received %d frames", sent, len(got))
			}
		})
	}
}

func TestAChangedVLANIsInForceWhenApplyReturns(t *testing.T) {
	testkit.Long(t, "streams while VLANs change; the package host moves ports to other segments")
	for _, dst := range []string{"vm2", "all", "ext1"} {
		t.Run(dst, func(t *testing.T) {
			h := newHost(t, twoVLANs+"  - {name: sniff, vlan: {access: 10}, security: {promiscuous: accept}}\n",
				"vm1 ten", "vm2 moves", "vm3 sniff", "tap4 moves")
			gathered := h.gather()
			s := startStream(h.ends["vm1"], dst+" vm1 0800")
			// More than a tap's queue holds, as when the change takes a slow machine its time.
			h.await("frames in the old segment", func() bool { return h.received("vm1") > 1200 })
			h.edit("name: moves, vlan: {access: 10}", "name: moves, vlan: {access: 20}")
			last := s.number.Load()
			h.await("frames after the change", func() bool { return s.number.Load() > last+500 })
			sent := s.stop(h)
			h.await("every frame is switched", func() bool { return h.received("vm1") == sent })
			got := gathered()
			for _, name := range []string{"vm2", "tap4"} {
				n := numbers(got[name])
				if wants := dst == "all" || dst == name; wants != (len(n) > 0) {
					t.Errorf("%s received %d frames before the change", name, len(n))
				}
				if len(n) > 0 && n[len(n)-1] > last {
					t.Errorf("%s received frame %d after the change, which was over at frame %d", name, n[len(n)-1],
						last)
				}
			}
			if n := len(got["vm3"]); uint64(n) != sent { // the one that stayed misses nothing
				t.Errorf("vm3 received %d of %d frames", n, sent)
			}
		})
	}
}

// attached is how many programs run where frames enter a device.
func (h *host) attached(ns *netns.NS, index int) (n int) {
	h.t.Helper()
	h.in(ns, func() error {
		q, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			n = len(q.Programs)
		}
		return err
	})
	return n
}

func TestADeviceThatLeftTheHostIsDetached(t *testing.T) {
	h := newHost(t, twoVLANs, "vm1 ten", "vm2 ten", "vm3 ten")
	elsewhere := testkit.NS(t, "elsewhere")
	handle, err := elsewhere.Handle()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	h.in(h.ns, func() error {
		l, err := netlink.LinkByIndex(h.ends["vm2"].index)
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(l, int(handle))
	})
	var moved int
	h.in(elsewhere, func() error {
		l, err := netlink.LinkByName("vm2")
		if err != nil {
			return err
		}
		moved = l.Attrs().Index
		return netlink.LinkSetUp(l)
	})
	if n := h.attached(elsewhere, moved); n != 1 {
		t.Fatalf("%d programs on the moved device: the kernel no longer takes the link along, this test is void", n)
	}
	delete(h.d.Facts, port("vm2"))
	h.reapply()
	if n := h.attached(elsewhere, moved); n != 0 {
		t.Errorf("%d programs still run on a device that left the host", n)
	}
	gone := h.ends["vm2"]
	delete(h.ends, "vm2")
	defer gone.close()
	if err := gone.inject(wire("all vm2 0806")); err != nil {
		t.Fatal(err)
	}
	h.emit("vm1", "all vm1 0806", to("vm3")) // and nothing of vm2's
	h.emit("vm1", "vm2 vm1 0800", dropped("unknown-unicast"))
}

func TestADeletedDeviceIsForgottenAndItsSuccessorTaken(t *testing.T) {
	h := newHost(t, twoVLANs, "vm1 ten", "vm2 ten", "vm3 ten")
	h.in(h.ns, func() error {
		l, err := netlink.LinkByIndex(h.ends["vm2"].index)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
	h.ends["vm2"].close()
	delete(h.ends, "vm2")
	delete(h.d.Facts, port("vm2"))
	h.reapply()
	h.emit("vm1", "all vm1 0806", to("vm3"))
	if err := h.k.Close(); err != nil {
		t.Fatal(err)
	}
	h.open()
	p := h.plan()
	h.ends["vm2"] = h.plugVeth("vm2", word6("dev2"), word6("vm2"))
	h.inForce(p)
	h.emit("vm1", "all vm1 0806", to("vm2 vm3"))
	h.emit("vm2", "vm1 vm2 0800", to("vm1"))
}

func word6(w string) [6]byte { return [6]byte(word(w)) }
