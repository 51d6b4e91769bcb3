package traffic

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// FloodKind says what the frames of a flood are.
type FloodKind string

// The floods. WellBehaved is what an ordinary busy station sends: to one receiver, from its own address.
const (
	WellBehaved    FloodKind = "well-behaved"
	RandomSource   FloodKind = "random-source"   // to one receiver, each frame from another address
	RandomBytes    FloodKind = "random-bytes"    // everything in the frame is random
	BroadcastStorm FloodKind = "broadcast"       // from its own address, as ARP requests that nobody answers
	UnknownUnicast FloodKind = "unknown-unicast" // from its own address, each frame to another address that nobody has
)

// Flood is a load of raw frames that the other end does not count.
type Flood struct {
	Kind FloodKind
	// Device is the adapter it leaves by.
	Device string
	// To is the receiver of frames that have one.
	To net.HardwareAddr
	// MinSize and MaxSize limit the length of a frame in bytes, 60–1514; each frame's length is random within.
	MinSize, MaxSize int
	// Rate in frames per second; 0: as fast as possible.
	Rate float64
	// Busy makes a flood that is ahead of its rate spin instead of sleep, so that it uses as much of its CPU as one
	// at full rate.
	Busy bool
	// Seed gives floods with the same seed the same lengths.
	Seed uint64
}

// floodNoise is how many random bytes there are to take payloads from.
const floodNoise = 1 << 16

// floodNap is how long a flood that is ahead of its rate sleeps. Unlike a measured stream, a delayed flood catches up
// fully, so that it reaches the requested rate.
const floodNap = 100 * time.Microsecond

// experimental is an Ethernet type that no stack knows (IEEE 802, local experimental 1).
const experimental = 0x88b5

// Flooding is a flood that runs until it is stopped.
type Flooding struct {
	sent, refused atomic.Uint64
	stop          context.CancelFunc
	done          chan struct{}
	// Written by the flood's thread, read after done.
	cpu time.Duration
	err error
}

// StartFlood begins to send from the endpoint.
func StartFlood(e Endpoint, f Flood) (*Flooding, error) {
	if f.MinSize < 60 || f.MaxSize < f.MinSize || f.MaxSize > 1514 {
		return nil, fmt.Errorf("a flood of frames of %d–%d bytes: a frame has 60–1514", f.MinSize, f.MaxSize)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Flooding{stop: cancel, done: make(chan struct{})}
	opened := make(chan error, 1)
	go func() {
		defer close(r.done)
		r.err = e.run(func() error {
			fd, own, err := floodSocket(f.Device)
			opened <- err
			if err != nil {
				return nil // told already
			}
			defer unix.Close(fd)
			halt, release := haltWith(ctx)
			defer release()
			defer func(before time.Duration) { r.cpu = threadCPU() - before }(threadCPU())
			return r.send(halt, fd, newFloodFrames(f, own))
		})
	}()
	select {
	case err := <-opened:
		if err != nil {
			cancel()
			return nil, err
		}
		return r, nil
	case <-r.done: // the namespace or the CPU was not available
		cancel()
		return nil, r.err
	}
}

// Sent is how many frames the sender's kernel has accepted so far.
func (r *Flooding) Sent() uint64 { return r.sent.Load() }

// Refused is how many frames the sender's own kernel did not accept.
func (r *Flooding) Refused() uint64 { return r.refused.Load() }

// CPU is the CPU time of the flood, valid after Stop, including what the kernel did for it in the same thread.
func (r *Flooding) CPU() time.Duration { return r.cpu }

// Stop ends the flood; no frame is sent afterwards.
func (r *Flooding) Stop() error {
	r.stop()
	<-r.done
	return r.err
}

// floodSocket is a raw socket on an adapter, and the adapter's own address.
func floodSocket(device string) (int, net.HardwareAddr, error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return -1, nil, fmt.Errorf("find adapter %s: %w", device, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, fmt.Errorf("open a raw socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index}); err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("bind a raw socket to %s: %w", device, err)
	}
	return fd, l.Attrs().HardwareAddr, nil
}

func (r *Flooding) send(h *halt, fd int, frames *floodFrames) error {
	start, rate := time.Now(), frames.flood.Rate
	fineTimer()
	for !h.asked() {
		if n := r.sent.Load(); rate != 0 && float64(n) > rate*time.Since(start).Seconds() {
			if !frames.flood.Busy {
				nap(floodNap)
			}
			continue
		}
		switch _, err := unix.Write(fd, frames.next()); {
		case err == nil:
			r.sent.Add(1)
		case refusal(err):
			r.refused.Add(1)
		default:
			return fmt.Errorf("send a frame: %w", err)
		}
	}
	return nil
}

// floodFrames makes the frames of a flood, all in the same memory.
type floodFrames struct {
	flood Flood
	own   net.HardwareAddr
	// sizes generates the lengths and dice everything else, so that floods of two kinds have the same lengths.
	sizes, dice *rand.Rand
	noise, buf  []byte
}

func newFloodFrames(f Flood, own net.HardwareAddr) *floodFrames {
	g := &floodFrames{flood: f, own: own, sizes: rand.New(rand.NewPCG(f.Seed, 1)),
		dice:  rand.New(rand.NewPCG(f.Seed, 2)),
		noise: make([]byte, floodNoise), buf: make([]byte, f.MaxSize)}
	for i := 0; i < floodNoise; i += 8 {
		binary.NativeEndian.PutUint64(g.noise[i:], g.dice.Uint64())
	}
	return g
}

// next returns a frame that is valid until the next call.
func (g *floodFrames) next() []byte {
	size := g.flood.MinSize
	if span := g.flood.MaxSize - g.flood.MinSize; span > 0 {
		size += g.sizes.IntN(span + 1)
	}
	f := g.buf[:size]
	copy(f, g.noise[g.dice.IntN(floodNoise-size):])
	if g.flood.Kind == RandomBytes {
		// so that addresses and type are not always from the same few bytes
		binary.NativeEndian.PutUint64(f, g.dice.Uint64())
		binary.NativeEndian.PutUint64(f[6:], g.dice.Uint64())
		return f
	}
	copy(f, g.flood.To)
	copy(f[6:], g.own)
	binary.BigEndian.PutUint16(f[12:], experimental)
	switch g.flood.Kind {
	case RandomSource:
		g.station(f[6:])
	case UnknownUnicast:
		g.station(f)
	case BroadcastStorm:
		g.arpRequest(f)
	}
	return f
}

// station writes a random unicast address that is locally administered.
func (g *floodFrames) station(at []byte) {
	n := g.dice.Uint64()
	for i := range 6 {
		at[i] = byte(n >> (8 * i))
	}
	at[0] = at[0]&^1 | 2
}

// arpRequest requests an address in 240.0.0.0/4, which nobody has (RFC 826, RFC 1112 section 4).
func (g *floodFrames) arpRequest(f []byte) {
	copy(f, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	binary.BigEndian.PutUint16(f[12:], 0x0806)
	copy(f[14:], []byte{0, 1, 8, 0, 6, 4, 0, 1})
	copy(f[22:], g.own)
	clear(f[28:38])
	binary.BigEndian.PutUint32(f[38:], 0xf0000000|g.dice.Uint32()>>4)
	clear(f[42:])
}
