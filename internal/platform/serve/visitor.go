package serve

import (
	"errors"
	"heddle/internal/platform/access"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// visitor is a connection below TLS.
type visitor struct {
	net.Conn
	of   listener
	from netip.Addr
	// asking is how many requests it has under way, as long as it has proved nothing.
	asking atomic.Int32
	// For the goroutine that shakes hands.
	computes bool   // it holds a slot
	rise     func() // gives its seat back
	// leaves ends it when it has stayed for long enough without proving who it is.
	leaves *time.Timer
	stayed sync.Once
}

// listener is what a connection tells its listener.
type listener interface {
	stays(*visitor)
	computed()
	left(*visitor)
}

func newVisitor(c net.Conn, of listener) *visitor {
	return &visitor{Conn: c, of: of, rise: func() {}, from: access.NetworkOf(c.RemoteAddr().String())}
}

// network is where it comes from.
func (v *visitor) network() netip.Addr { return v.from }

// sits has it hold a seat, which the function that it returns gives back.
func (v *visitor) sits(rise func()) func() {
	v.rise = sync.OnceFunc(rise)
	return v.rise
}

// giveSeat gives its seat back, where it has one.
func (v *visitor) giveSeat() { v.rise() }

// begin says that its handshake is computed from now on: it holds a slot.
func (v *visitor) begin() { v.computes = true }

// leavesAfter ends it after a time, unless it stays.
func (v *visitor) leavesAfter(d time.Duration) {
	v.leaves = time.AfterFunc(d, func() { _ = v.Close() })
}

// stay lets a connection without a certificate stay: who is there has proved it in another way.
func (v *visitor) stay() {
	v.stayed.Do(func() {
		v.leaves.Stop()
		v.of.stays(v)
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
		v.of.computed()
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
	v.of.left(v)
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
