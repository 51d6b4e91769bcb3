// Package linkproto speaks LACP and LLDP with the devices at the other ends of uplinks: the sockets, timers and goroutines around
// the pure packages lacp and lldp.
package linkproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/plan"
	"heddle/internal/wire"
)

// Uplink is an uplink's device.
type Uplink struct {
	Ifindex uint32
	MAC     plan.MAC
	// Up: it has carrier, and is to be spoken on.
	Up bool
}

// Socket is what a wire.Conn does.
type Socket interface {
	Send(frame []byte) error
	Receive() (*wire.Frame, error)
	// Bound says whether the device it was opened on is still there.
	Bound() bool
	Close() error
}

// Opener opens a socket for one EtherType on one device, like wire.Open.
type Opener func(ifindex uint32, etherType uint16, groups ...[6]byte) (Socket, error)

// Open is the Opener of the kernel's packet sockets.
func Open(ifindex uint32, etherType uint16, groups ...[6]byte) (Socket, error) {
	return wire.Open(ifindex, etherType, groups...)
}

// mostPerSecond is how many frames of one device are looked at per second; LACP and LLDP send a few. The kernel drops what is
// beyond, so that a peer that floods costs next to nothing.
const mostPerSecond = 50

// heard is a frame that arrived.
type heard struct {
	ifindex uint32
	source  plan.MAC
	payload []byte
}

// wires are one protocol's sockets, one per device. All methods but the readers' run in one goroutine.
type wires struct {
	open      Opener
	etherType uint16
	groups    [][6]byte
	conns     map[uint32]*reader
	heard     chan heard
	most      int // frames of one device that are looked at per second
	readers   sync.WaitGroup
}

type reader struct {
	Socket
	closed chan struct{}
}

func newWires(open Opener, etherType uint16, groups ...plan.MAC) *wires {
	w := &wires{open: open, etherType: etherType, conns: map[uint32]*reader{}, heard: make(chan heard), most: mostPerSecond}
	for _, g := range groups {
		w.groups = append(w.groups, g)
	}
	return w
}

// use opens a socket on a device that has none, or whose socket is one of a device that went and left its index to this one. What
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
	s, err := w.open(ifindex, w.etherType, w.groups...)
	if err != nil {
		return err
	}
	r := &reader{s, make(chan struct{})}
	w.conns[ifindex] = r
	w.readers.Go(func() { w.read(ifindex, r) })
	return nil
}

// keep closes the sockets of devices that are not wanted.
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

// read passes frames on until the socket is closed. A device that is set down says so once and its socket goes on when it is up again.
func (w *wires) read(ifindex uint32, r *reader) {
	began, n := time.Now(), 0
	for {
		f, err := r.Receive()
		if errors.Is(err, unix.ENETDOWN) {
			continue
		}
		if err != nil {
			return
		}
		h := heard{ifindex, plan.MAC(f.Source), bytes.Clone(f.Payload)}
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

// send sends a frame to a group from the device's own address.
func (w *wires) send(u Uplink, to plan.MAC, payload []byte) error {
	r, ok := w.conns[u.Ifindex]
	if !ok {
		return fmt.Errorf("no socket on device %d", u.Ifindex)
	}
	return r.Send(frame(u.MAC, to, w.etherType, payload))
}

func frame(from, to plan.MAC, etherType uint16, payload []byte) []byte {
	f := make([]byte, 0, 14+len(payload))
	f = append(append(f, to[:]...), from[:]...)
	return append(binary.BigEndian.AppendUint16(f, etherType), payload...)
}
