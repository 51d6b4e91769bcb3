package linkproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/plan"
	"heddle/internal/uplinks/wire"
)

// Uplink is an uplink's device.
type Uplink struct {
	Ifindex uint32
	MAC     plan.MAC
	// Up: the device has carrier, and protocols run on it.
	Up bool
}

// Socket is the interface of a wire.Conn.
type Socket interface {
	Send(frame []byte) error
	Receive() (*wire.Frame, error)
	// Hear changes which frames are received.
	Hear(wire.Listen) error
	// Bound reports whether the device on which the socket was opened still exists.
	Bound() bool
	Close() error
}

// Opener opens a socket on one device, like wire.Open.
type Opener func(ifindex uint32, listen wire.Listen) (Socket, error)

// Open returns the Opener of the kernel's packet sockets.
func Open(ifindex uint32, listen wire.Listen) (Socket, error) { return wire.Open(ifindex, listen) }

// Own is the set of configured addresses of this host's own ports and uplinks. A frame from one of them is not a
// neighbour's: it came back, by a cable between two uplinks or a device that forwards link control frames. MACs that a
// guest may choose, learned and changed ones, are left out: a guest that chose the MAC of its host's neighbour could
// silence that neighbour.
type Own map[plan.MAC]bool

// mostPerSecond is how many frames per second and device are processed; LACP and LLDP send a few. The kernel drops the
// rest, so that a peer that floods costs next to nothing.
const mostPerSecond = 50

// heard is a received frame.
type heard struct {
	ifindex uint32
	source  plan.MAC
	own     bool // from this host
	payload []byte
}

// wires are one protocol's sockets, one per device. All methods but the readers' run in one goroutine.
type wires struct {
	open    Opener
	log     *slog.Logger
	listen  wire.Listen
	own     atomic.Pointer[Own] // nil: no own addresses are known
	conns   map[uint32]*reader
	heard   chan heard
	most    int // frames per second and device that are processed
	readers sync.WaitGroup
}

type reader struct {
	Socket
	closed chan struct{}
}

func newWires(open Opener, log *slog.Logger, listen wire.Listen) *wires {
	return &wires{open: open, log: log, listen: listen, conns: map[uint32]*reader{}, heard: make(chan heard),
		most: mostPerSecond}
}

// hear changes, on every device, from which senders frames are accepted.
func (w *wires) hear(sources [][6]byte) error {
	if w.listen.Sources != nil && slices.Equal(w.listen.Sources, sources) {
		return nil
	}
	w.listen.Sources = sources
	var errs []error
	for _, r := range w.conns {
		errs = append(errs, r.Hear(w.listen))
	}
	return errors.Join(errs...)
}

// use opens a socket on a device that has none, or whose socket belongs to an earlier device with the same index. What
// failed is tried again with the next call.
func (w *wires) use(ifindex uint32) error {
	if r, ok := w.conns[ifindex]; ok {
		if r.Bound() {
			return nil
		}
		delete(w.conns, ifindex)
		if err := r.end(); err != nil {
			return err
		}
	}
	s, err := w.open(ifindex, w.listen)
	if err != nil {
		return err
	}
	r := &reader{s, make(chan struct{})}
	w.conns[ifindex] = r
	w.readers.Go(func() { w.read(ifindex, r) })
	return nil
}

// keep closes the sockets of devices that are no longer wanted.
func (w *wires) keep(want map[uint32]bool) error {
	var errs []error
	for ifindex, r := range maps.All(w.conns) {
		if !want[ifindex] {
			delete(w.conns, ifindex)
			errs = append(errs, r.end())
		}
	}
	return errors.Join(errs...)
}

func (r *reader) end() error {
	close(r.closed)
	return r.Close()
}

// close ends all readers and waits for them.
func (w *wires) close() error {
	err := w.keep(nil)
	w.readers.Wait()
	return err
}

// read passes frames on until the socket is closed. When a device is set down, reading fails once; the socket works
// again when the device is up.
func (w *wires) read(ifindex uint32, r *reader) {
	began, n, told := time.Now(), 0, false
	for {
		f, err := r.Receive()
		if errors.Is(err, unix.ENETDOWN) {
			continue
		}
		if err != nil {
			return
		}
		h := heard{ifindex, plan.MAC(f.Source), w.isOwn(f.Source), bytes.Clone(f.Payload)}
		if h.own && !told {
			w.log.Warn("what this host sent comes back on an uplink: are two of its uplinks joined by a cable?",
				"device", ifindex, "type", fmt.Sprintf("%#04x", f.EtherType), "source", h.source)
			told = true
		}
		select {
		case w.heard <- h:
		case <-r.closed:
			return
		}
		n++
		if rest := time.Second - time.Since(began); rest <= 0 {
			began, n = time.Now(), 0
		} else if n >= w.most {
			select {
			case <-time.After(rest):
			case <-r.closed:
				return
			}
		}
	}
}

// isOwn reports whether an address is one of this host's own.
func (w *wires) isOwn(source plan.MAC) bool {
	own := w.own.Load()
	return own != nil && (*own)[source]
}

// send sends a frame to a group from the device's own address.
func (w *wires) send(u Uplink, to plan.MAC, payload []byte) error {
	r, ok := w.conns[u.Ifindex]
	if !ok {
		return fmt.Errorf("no socket on device %d", u.Ifindex)
	}
	return r.Send(frame(u.MAC, to, w.listen.EtherType, payload))
}

func frame(from, to plan.MAC, etherType uint16, payload []byte) []byte {
	f := make([]byte, 0, 14+len(payload))
	f = append(append(f, to[:]...), from[:]...)
	return append(binary.BigEndian.AppendUint16(f, etherType), payload...)
}
