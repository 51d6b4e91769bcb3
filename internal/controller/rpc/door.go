package rpc

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heddle/internal/platform/access"
)

// Bounds of connections that have not proved who they are.
const (
	// mostWaiting is how many have said nothing yet, or nothing that was read; a further one ends the oldest. There is
	// room for the hosts of a cluster that come all at once.
	mostWaiting = 4096
	// mostQueued is how many have said hello and wait for their turn. While there are so many, none is accepted: those
	// that come wait in the kernel, where they take next to nothing. Where more than fairQueued of them are of one
	// network, the last of those is ended in their place.
	mostQueued = 1024
	fairQueued = 64
	// mostProving is how many have been answered and have not proved who they are; a further one ends the oldest.
	mostProving = 2048
	// seats is how many shake hands at a time. Who takes longer than seatTime to answer shakes hands standing, so that
	// nobody keeps the others waiting.
	seats    = 128
	seatTime = 500 * time.Millisecond
	// mostGuests is how many have no certificate, such as those of hosts that join; a further one ends the oldest.
	mostGuests = 256
	// handshakeTime bounds how long the other side may take: to say hello, and then to prove who it is. The time in
	// which it waits for its turn does not count.
	handshakeTime = 10 * time.Second
	// mostKnown is how many have shown a token; a further one ends the oldest.
	mostKnown = 1024
	// guestTime is how long a connection without a certificate stays.
	guestTime = 30 * time.Second
	// handshakes is how many are computed at a time. Who has not said hello takes none of them, and who waits for the
	// other side has given it back.
	handshakes = 8
	// partingTime is how long a connection that is refused may take to read why.
	partingTime = time.Second
)

// door is a listener for TLS: what it accepts has shaken hands.
type door struct {
	net.Listener
	conf    *tls.Config
	refused *refusals
	ready   chan net.Conn
	ended   chan struct{}
	err     error // when ended
	slots   chan struct{}
	queue   *doorQueue
	waiting *crowd
	proving *crowd
	guests  *crowd
	known   *crowd // those of them that were admitted
}

func newDoor(l net.Listener, conf *tls.Config, refused *refusals) *door {
	d := &door{Listener: l, conf: conf, refused: refused, ready: make(chan net.Conn), ended: make(chan struct{}),
		slots: make(chan struct{}, handshakes), queue: newDoorQueue(mostQueued, fairQueued, seats),
		proving: newCrowd(mostProving), guests: newCrowd(mostGuests),
		waiting: newCrowd(mostWaiting), known: newCrowd(mostKnown)}
	go d.run()
	return d
}

func (d *door) run() {
	defer close(d.ended)
	for {
		d.queue.room()
		c, err := d.Listener.Accept()
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			continue
		}
		if lacks(err) {
			d.makeRoom()
			continue
		}
		if err != nil {
			d.err = err
			d.waiting.end()
			d.proving.end()
			return
		}
		v := &visitor{Conn: c, door: d, rise: func() {}, network: access.NetworkOf(c.RemoteAddr().String())}
		d.waiting.enter(v)
		go d.greet(v)
	}
}

// lacks reports whether a connection could not be accepted for lack of something that comes back: a descriptor, memory.
func lacks(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED}, func(e error) bool { return errors.Is(err, e) })
}

// roomPause is how long what was ended takes at most until it has given back what it had.
const roomPause = 2 * time.Millisecond

// makeRoom ends the oldest of those that have not said anything, or have not proved who they are. It gives the process
// time to end others where there is none.
func (d *door) makeRoom() {
	for _, c := range []*crowd{d.waiting, d.proving, d.guests} {
		if c.endOldest() {
			break
		}
	}
	time.Sleep(roomPause)
}

// Accept is the next connection that has shaken hands.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.ready:
		return c, nil
	case <-d.ended:
		return nil, d.err
	}
}

// greet shakes hands.
func (d *door) greet(v *visitor) {
	conf := d.conf.Clone()
	choose := conf.GetConfigForClient
	slow := time.AfterFunc(handshakeTime, func() { _ = v.Close() })
	conf.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if !slow.Stop() {
			return nil, net.ErrClosed
		}
		defer slow.Reset(handshakeTime)
		if err := d.admit(v); err != nil {
			return nil, err
		}
		return choose(h)
	}
	c := tls.Server(v, conf)
	err := c.Handshake()
	slow.Stop()
	v.computed()
	v.rise()
	if err != nil {
		d.refused.note(v.RemoteAddr().String(), err)
		v.part()
		return
	}
	d.proving.leave(v)
	if len(c.ConnectionState().PeerCertificates) == 0 {
		v.leaves = time.AfterFunc(guestTime, func() { _ = v.Close() })
		d.guests.enter(v)
	}
	select {
	case d.ready <- c:
	case <-d.ended:
		_ = c.Close()
	}
}

// errGone says that the other side has left while it waited for its turn: it may come again, and what its handshake
// takes is for those that are there.
var errGone = errors.New("the other side has gone")

// admit waits for the turn of somebody who has said hello. The seat's time begins with the handshake: for how long it
// waits for a slot is not its doing.
func (d *door) admit(v *visitor) error {
	d.waiting.leave(v)
	if !d.queue.enter(v.RemoteAddr().String()) {
		return net.ErrClosed
	}
	defer d.queue.admitted()
	v.rise = sync.OnceFunc(d.queue.rise)
	d.slots <- struct{}{}
	time.AfterFunc(seatTime, v.rise)
	v.computes = true
	if v.gone() {
		return errGone
	}
	d.proving.enter(v)
	return nil
}

// visitor is a connection below TLS.
type visitor struct {
	net.Conn
	door    *door
	network netip.Addr
	// asking is how many requests it has under way, as long as it has proved nothing.
	asking atomic.Int32
	// For the goroutine that shakes hands.
	computes bool   // it holds a slot
	rise     func() // gives its seat back
	// leaves ends it when it has stayed for long enough without proving who it is.
	leaves *time.Timer
	stayed sync.Once
}

// stay lets a connection without a certificate stay: who is there has proved it in another way.
func (v *visitor) stay() {
	v.stayed.Do(func() {
		v.leaves.Stop()
		v.door.guests.leave(v)
		v.door.known.enter(v)
	})
}

// Write sends; with the first of it, the handshake's costly part is done.
func (v *visitor) Write(b []byte) (int, error) {
	v.computed()
	return v.Conn.Write(b)
}

func (v *visitor) computed() {
	if v.computes {
		v.computes = false
		<-v.door.slots
	}
}

// gone reports whether the other side has closed the connection, and nothing of it is left to be read.
func (v *visitor) gone() bool {
	n, err := v.peek()
	return err == nil && n == 0 || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// peek looks for a byte that has come, and leaves it there.
func (v *visitor) peek() (n int, err error) {
	c, ok := v.Conn.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	// Control, and not Read: that would wait for the one who reads.
	failed := raw.Control(func(fd uintptr) {
		n, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return n, errors.Join(err, failed)
}

// Close ends it.
func (v *visitor) Close() error {
	v.door.waiting.leave(v)
	v.door.proving.leave(v)
	v.door.guests.leave(v)
	v.door.known.leave(v)
	return v.Conn.Close()
}

// part ends a connection that is refused. What the other side sent meanwhile is read: a connection that is closed
// before loses the alert that says why.
func (v *visitor) part() {
	if c, ok := v.Conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil &&
		v.SetReadDeadline(time.Now().Add(partingTime)) == nil {
		_, _ = io.CopyN(io.Discard, v.Conn, 64<<10) // however that ends
	}
	_ = v.Close()
}
