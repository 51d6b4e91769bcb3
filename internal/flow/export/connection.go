package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connection is a TCP connection whose writes do not block once it is direct: what the kernel does not accept at once
// waits in rest. It knows how many bytes the collector's host has confirmed.
type connection struct {
	*net.TCPConn
	raw  syscall.RawConn
	more chan struct{} // holds one when rest has something to flush

	mu     sync.Mutex
	direct bool   // false during a TLS handshake: writes block
	rest   []byte // accepted by Write, but not yet by the kernel
	taken  uint64 // bytes, in all
	err    error  // of a write
	eof    bool   // closed in order: everything that was confirmed had been read
}

// sendBuffer is how many unconfirmed bytes the kernel buffers; it doubles the value for its own overhead.
const sendBuffer = 128 << 10

// dialStream connects over TCP. A collector that disappears is noticed after dead.
func dialStream(ctx context.Context, remote netip.AddrPort, source netip.Addr, dead time.Duration) (*connection,
	error) {
	network := "tcp6"
	d := net.Dialer{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		return streamOptions(c, dead)
	}}
	if remote.Addr().Is4() {
		network = "tcp4"
		if source.IsValid() {
			d.LocalAddr = &net.TCPAddr{IP: source.AsSlice()}
		}
	}
	conn, err := d.DialContext(ctx, network, remote.String())
	switch {
	case errors.Is(err, unix.EADDRNOTAVAIL) && d.LocalAddr != nil:
		return nil, fmt.Errorf("switchIpAddress %s is not an address of this host, and over TCP the collector's "+
			"answers have to come back: "+
			"give it to the host, or use transport: udp", source)
	case err != nil:
		return nil, err
	}
	w := &connection{TCPConn: conn.(*net.TCPConn), more: make(chan struct{}, 1)}
	if w.raw, err = w.SyscallConn(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return w, nil
}

// streamOptions sets the options of a connection: how soon a dead collector is noticed, both while it is sent something
// and while not.
func streamOptions(c syscall.RawConn, dead time.Duration) error {
	var err error
	set := func(fd uintptr) {
		seconds := max(1, int(dead/time.Second/3))
		for _, o := range []struct{ level, name, value int }{
			{unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer},
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 2},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(dead / time.Millisecond)},
		} {
			err = errors.Join(err, unix.SetsockoptInt(int(fd), o.level, o.name, o.value))
		}
	}
	if late := c.Control(set); late != nil {
		return late
	}
	return err
}

// Write accepts all of b, without waiting for the collector once the connection is direct.
func (w *connection) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.direct {
		n, err := w.TCPConn.Write(b)
		w.taken += uint64(n)
		return n, err
	}
	if w.err != nil {
		return 0, w.err
	}
	w.taken += uint64(len(b))
	n := 0
	if len(w.rest) == 0 {
		n = w.try(b)
	}
	if w.rest = append(w.rest, b[n:]...); len(w.rest) > 0 {
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
	return len(b), w.err
}

// try hands the kernel as much as it accepts.
func (w *connection) try(b []byte) (n int) {
	late := w.raw.Control(func(fd uintptr) {
		for n < len(b) && w.err == nil {
			k, err := unix.SendmsgN(int(fd), b[n:], nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return
			case errors.Is(err, unix.EINTR):
			default:
				w.err = err
				n += max(0, k)
			}
		}
	})
	if w.err == nil {
		w.err = late
	}
	return n
}

// flush waits until the kernel accepts what is in rest. false: the connection has ended.
func (w *connection) flush() bool {
	failed := false
	err := w.raw.Write(func(uintptr) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		n := w.try(w.rest)
		w.rest = append(w.rest[:0], w.rest[n:]...)
		failed = w.err != nil
		return len(w.rest) == 0 || failed
	})
	return err == nil && !failed
}

// Read notes whether the collector has closed the connection in an orderly way.
func (w *connection) Read(b []byte) (int, error) {
	n, err := w.TCPConn.Read(b)
	if errors.Is(err, io.EOF) {
		w.mu.Lock()
		w.eof = true
		w.mu.Unlock()
	}
	return n, err
}

// progress is how many bytes were accepted in all, how many of them the collector's host has confirmed, and whether
// rest is empty.
func (w *connection) progress() (taken, confirmed uint64, room bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := 0
	if late := w.raw.Control(func(fd uintptr) { out, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); late != nil {
		return w.taken, 0, false
	}
	return w.taken, w.taken - uint64(len(w.rest)) - uint64(out), len(w.rest) == 0 && w.err == nil
}

// handed is how many bytes the kernel has accepted.
func (w *connection) handed() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken - uint64(len(w.rest))
}

// ended reports whether the collector has closed the connection in an orderly way. After a reset that a write returned,
// reading finds an end too; a write after an orderly end gets EPIPE.
func (w *connection) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eof && (w.err == nil || errors.Is(w.err, unix.EPIPE))
}

// fault is the error of a write; nil for none.
func (w *connection) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// release ends the handshake: from now on writes do not wait for the collector.
func (w *connection) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.direct = true
}

// abort ends the connection at once: what the collector's host has not confirmed is not sent any more.
func (w *connection) abort() {
	_ = w.SetLinger(0)
	_ = w.TCPConn.Close()
}
