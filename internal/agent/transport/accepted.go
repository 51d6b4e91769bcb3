package transport

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"

	"heddle/internal/identity"
)

// Bounds of connections to the listener.
const (
	// mostProving is how many have not proved who they are; a further one ends the oldest.
	mostProving = 64
	// mostProved is how many have; a further one ends the oldest. The sources keep one each.
	mostProved = 256
)

// tlsListener is a listener for TLS. What it accepts has yet to shake hands, and is bounded by it.
type tlsListener struct {
	net.Listener
	conf    *tls.Config
	refused *refusals
	proving *crowd
	proved  *crowd
}

func newTLSListener(l net.Listener, b identity.Between, refused *refusals) *tlsListener {
	return &tlsListener{Listener: l, conf: b.From(), refused: refused,
		proving: &crowd{most: mostProving}, proved: &crowd{most: mostProved}}
}

// end ends all connections at once, and each that is accepted afterwards. What is below TLS is closed, so that nothing
// waits for a peer.
func (h *tlsListener) end() {
	for _, c := range []*crowd{h.proving, h.proved} {
		for _, v := range c.close() {
			_ = v.Close()
		}
	}
}

// Accept is the next connection.
func (h *tlsListener) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: c, tlsListener: h}
	v.slow = time.AfterFunc(handshakeTime, func() { _ = v.Close() })
	h.proving.enter(v)
	conf := h.conf.Clone()
	verify := conf.VerifyConnection
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		if err := verify(s); err != nil {
			h.refused.note(c.RemoteAddr().String(), err)
			return err
		}
		v.slow.Stop()
		h.proving.leave(v)
		h.proved.enter(v)
		return nil
	}
	return tls.Server(v, conf), nil
}

// visitor is a connection below TLS.
type visitor struct {
	net.Conn
	tlsListener *tlsListener
	slow        *time.Timer // ends it when it does not prove who it is
}

// Close ends it.
func (v *visitor) Close() error {
	v.slow.Stop()
	v.tlsListener.proving.leave(v)
	v.tlsListener.proved.leave(v)
	return v.Conn.Close()
}

// crowd is a bounded number of connections, the oldest first.
type crowd struct {
	most int

	mu     sync.Mutex
	order  []*visitor
	closed bool
}

// enter takes one in, and ends the oldest where there are too many.
func (c *crowd) enter(v *visitor) {
	c.mu.Lock()
	c.order = append(c.order, v)
	var over *visitor
	switch {
	case c.closed:
		over = v
	case len(c.order) > c.most:
		over = c.order[0]
	}
	c.mu.Unlock()
	if over != nil {
		_ = over.Close() // which takes it out
	}
}

// close lets nobody in from now on, and returns who is there.
func (c *crowd) close() []*visitor {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return slices.Clone(c.order)
}

func (c *crowd) leave(v *visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.order {
		if o == v {
			c.order = append(c.order[:i:i], c.order[i+1:]...)
			return
		}
	}
}
