package rpc

import (
	"container/list"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Bounds of connections that have not proved who they are.
const (
	// mostWaiting is how many are in the handshake; a further one ends the oldest.
	mostWaiting = 512
	// mostGuests is how many have no certificate, such as those of hosts that join; a further one ends the oldest.
	mostGuests = 256
	// handshakeTime bounds a handshake.
	handshakeTime = 10 * time.Second
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
	log     *slog.Logger
	ready   chan net.Conn
	ended   chan struct{}
	err     error // when ended
	slots   chan struct{}
	waiting *crowd
	guests  *crowd
}

func newDoor(l net.Listener, conf *tls.Config, log *slog.Logger) *door {
	d := &door{Listener: l, conf: conf, log: log, ready: make(chan net.Conn), ended: make(chan struct{}),
		slots: make(chan struct{}, handshakes), waiting: newCrowd(mostWaiting), guests: newCrowd(mostGuests)}
	go d.run()
	return d
}

func (d *door) run() {
	defer close(d.ended)
	for {
		c, err := d.Listener.Accept()
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			continue
		}
		if err != nil {
			d.err = err
			d.waiting.end()
			return
		}
		v := &visitor{Conn: c, door: d}
		d.waiting.enter(v)
		go d.greet(v)
	}
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
	conf.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		d.slots <- struct{}{}
		v.computes = true
		return choose(h)
	}
	slow := time.AfterFunc(handshakeTime, func() { _ = v.Close() })
	c := tls.Server(v, conf)
	err := c.Handshake()
	slow.Stop()
	v.computed()
	if err != nil {
		d.log.Debug("a connection is refused", "address", v.RemoteAddr().String(), "err", err)
		v.part()
		return
	}
	d.waiting.leave(v)
	if len(c.ConnectionState().PeerCertificates) == 0 {
		d.guests.enter(v)
		time.AfterFunc(guestTime, func() { _ = v.Close() })
	}
	select {
	case d.ready <- c:
	case <-d.ended:
		_ = c.Close()
	}
}

// visitor is a connection below TLS.
type visitor struct {
	net.Conn
	door     *door
	computes bool // it holds a slot; for the goroutine that shakes hands
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

// Close ends it.
func (v *visitor) Close() error {
	v.door.waiting.leave(v)
	v.door.guests.leave(v)
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

// crowd is a bounded number of connections, the oldest first.
type crowd struct {
	most int

	mu    sync.Mutex
	order *list.List
	at    map[*visitor]*list.Element
}

func newCrowd(most int) *crowd {
	return &crowd{most: most, order: list.New(), at: map[*visitor]*list.Element{}}
}

// enter takes one in, and ends the oldest where there are too many.
func (c *crowd) enter(v *visitor) {
	c.mu.Lock()
	c.at[v] = c.order.PushBack(v)
	var over *visitor
	if c.order.Len() > c.most {
		over, _ = c.order.Front().Value.(*visitor)
	}
	c.mu.Unlock()
	if over != nil {
		_ = over.Close()
	}
}

func (c *crowd) leave(v *visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[v]; ok {
		c.order.Remove(e)
		delete(c.at, v)
	}
}

// end ends all of them.
func (c *crowd) end() {
	c.mu.Lock()
	var all []*visitor
	for v := range c.at {
		all = append(all, v)
	}
	c.mu.Unlock()
	for _, v := range all {
		_ = v.Close()
	}
}

func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
