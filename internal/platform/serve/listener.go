package serve

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"
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

// Listener is a listener for TLS: what it accepts has shaken hands.
type Listener struct {
	net.Listener
	conf    *tls.Config
	refused *Refusals
	ready   chan net.Conn
	ended   chan struct{}
	err     error // when ended
	slots   chan struct{}
	queue   *queue
	waiting *crowd
	proving *crowd
	guests  *crowd
	known   *crowd // those of them that were admitted
}

// Bounds are those of a listener that may be others than usual; 0 stands for the usual one.
type Bounds struct {
	// Waiting is how many connections have said nothing yet.
	Waiting int
}

// NewListener makes TLS of a listener, and counts whom it refuses.
func NewListener(l net.Listener, conf *tls.Config, refused *Refusals, b Bounds) *Listener {
	d := &Listener{Listener: l, conf: conf, refused: refused, ready: make(chan net.Conn), ended: make(chan struct{}),
		slots: make(chan struct{}, handshakes), queue: newQueue(mostQueued, fairQueued, seats),
		proving: newCrowd(mostProving), guests: newCrowd(mostGuests),
		waiting: newCrowd(cmp.Or(b.Waiting, mostWaiting)), known: newCrowd(mostKnown)}
	go d.run()
	return d
}

// Held are the connections that a listener has and that have not proved who they are, and those of them that were
// admitted since.
type Held struct{ Waiting, Proving, Guests, Known, Computing int }

// Held counts them.
func (d *Listener) Held() Held {
	return Held{d.waiting.size(), d.proving.size(), d.guests.size(), d.known.size(), len(d.slots)}
}

func (d *Listener) run() {
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
		v := newVisitor(c, d)
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
func (d *Listener) makeRoom() {
	for _, c := range []*crowd{d.waiting, d.proving, d.guests} {
		if c.endOldest() {
			break
		}
	}
	time.Sleep(roomPause)
}

// Accept is the next connection that has shaken hands.
func (d *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-d.ready:
		return c, nil
	case <-d.ended:
		return nil, d.err
	}
}

// greet shakes hands.
func (d *Listener) greet(v *visitor) {
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
	v.giveSeat()
	if err != nil {
		d.refused.Note(v.RemoteAddr().String(), err)
		v.part()
		return
	}
	d.proving.leave(v)
	if len(c.ConnectionState().PeerCertificates) == 0 {
		v.leavesAfter(guestTime)
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
func (d *Listener) admit(v *visitor) error {
	d.waiting.leave(v)
	if !d.queue.enter(v.RemoteAddr().String()) {
		return net.ErrClosed
	}
	defer d.queue.admitted()
	giveSeat := v.sits(d.queue.rise)
	d.slots <- struct{}{}
	time.AfterFunc(seatTime, giveSeat)
	v.begin()
	if v.gone() {
		return errGone
	}
	d.proving.enter(v)
	return nil
}

// stays has a guest that was admitted stay.
func (d *Listener) stays(v *visitor) {
	d.guests.leave(v)
	d.known.enter(v)
}

// computed takes in that a handshake is computed.
func (d *Listener) computed() { <-d.slots }

// left takes in that a connection has ended.
func (d *Listener) left(v *visitor) {
	for _, c := range []*crowd{d.waiting, d.proving, d.guests, d.known} {
		c.leave(v)
	}
}
