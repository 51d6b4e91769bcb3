package host

import (
	"encoding/json"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
)

// forgedFrame is a packet from 192.0.2.99, which nobody has, to guest b.
func forgedFrame(from net.HardwareAddr) []byte {
	f := append([]byte{2, 0, 0, 0, 0, 0x0b}, from...)
	// protocol 253: experiments
	f = append(f, 0x08, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 192, 0, 2, 99, 192, 0, 2, 11)
	return append(f, make([]byte, 26)...)
}

// socket is a guest's adapter, of which only forged frames are read.
func socket(t *testing.T, vm *netns.NS) (c *packet.Conn, mac net.HardwareAddr) {
	t.Helper()
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 26, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xc0000263, SkipFalse: 1},
		bpf.RetConstant{Val: 1 << 16}, bpf.RetConstant{Val: 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = vm.Do(func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		mac = eth0.HardwareAddr
		c, err = packet.Listen(eth0, packet.Raw, 0x0800, &packet.Config{Filter: filter})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, mac
}

// forger is a guest that sends forged frames all the time, and another one that counts those it gets.
type forger struct {
	t        *testing.T
	stop     chan struct{}
	sent     chan uint64
	received atomic.Uint64
}

// forgeEvery is how long the guest waits between two forged frames.
const forgeEvery = time.Millisecond

func startForged(t *testing.T, from, to *netns.NS) *forger {
	t.Helper()
	f := &forger{t: t, stop: make(chan struct{}), sent: make(chan uint64, 1)}
	hears, _ := socket(t, to)
	go func() {
		for buf := make([]byte, 128); ; {
			if _, _, err := hears.ReadFrom(buf); err != nil {
				return // closed at the end of the test
			}
			f.received.Add(1)
		}
	}()
	go f.send(socket(t, from))
	return f
}

func (f *forger) send(c *packet.Conn, mac net.HardwareAddr) {
	frame, tick, n := forgedFrame(mac), time.NewTicker(forgeEvery), uint64(0)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			f.sent <- n
			return
		case <-tick.C:
		}
		if _, err := c.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]}); err != nil {
			f.t.Errorf("forged frame %d: %v", n, err)
			f.sent <- n
			return
		}
		n++
	}
}

// finish ends it and fails the test when a forged frame arrived. The same frame from a guest without a guard has to
// arrive then, and alone: so it is known that they would have been seen.
func (f *forger) finish(free *netns.NS) (sent uint64) {
	f.t.Helper()
	close(f.stop)
	sent = <-f.sent
	if n := f.received.Load(); n > 0 || sent == 0 {
		f.t.Errorf("%d of %d forged frames arrived", n, sent)
	}
	c, mac := socket(f.t, free)
	frame, before := forgedFrame(mac), f.received.Load()
	if _, err := c.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]}); err != nil {
		f.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); f.received.Load() == before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := f.received.Load() - before; n != 1 {
		f.t.Errorf("of one frame from a guest without a guard %d arrived", n)
	}
	return sent
}

// refusedFrames is how many frames of a port were dropped for a reason.
func (h *host) refusedFrames(port, reason string) uint64 {
	h.t.Helper()
	var all []api.Stats
	if err := json.Unmarshal([]byte(h.must("stats", "-o", "json")), &all); err != nil {
		h.t.Fatal(err)
	}
	for _, s := range all {
		for _, d := range s.Drops {
			if s.Name == port && d.Reason == reason {
				return d.Value
			}
		}
	}
	return 0
}
