package udpbatch

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// patience limits every wait.
const patience = time.Minute

func listen(t *testing.T, at string) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func dial(t *testing.T, to net.Addr) *Sender {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, to.(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s, err := NewSender(conn)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Sender) option(t *testing.T, level, name, value int) {
	t.Helper()
	var err error
	if late := s.raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, name, value) }); late != nil ||
		err != nil {
		t.Fatal(errors.Join(late, err))
	}
}

// batch is one of datagrams of these lengths, all different.
func batch(lengths ...int) *Batch {
	b := &Batch{}
	for i, n := range lengths {
		d := bytes.Repeat([]byte{byte(i)}, n)
		d[0] = byte(n)
		b.Add(d)
	}
	return b
}

func times(n, length int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = length
	}
	return all
}

// send sends all of b.
func (s *Sender) all(t *testing.T, b *Batch) {
	t.Helper()
	if n, err := s.Send(b, patience); n != b.Len() || err != nil {
		t.Fatalf("%d of %d datagrams were sent: %v", n, b.Len(), err)
	}
}

// expect reads the datagrams of b with a call each.
func expect(t *testing.T, conn *net.UDPConn, b *Batch) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1<<16)
	for i := range b.Len() {
		n, err := conn.Read(got)
		if err != nil {
			t.Fatalf("datagram %d of %d: %v", i, b.Len(), err)
		}
		if !bytes.Equal(got[:n], b.Datagram(i)) {
			t.Fatalf("datagram %d has %d bytes that begin with %x, want %d, %x", i, n, got[:min(n, 4)],
				len(b.Datagram(i)), b.Datagram(i)[:2])
		}
	}
}

// nothing checks that there is nothing to read.
func nothing(t *testing.T, conn *net.UDPConn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1<<16)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes came that were not sent: %v", n, err)
	}
}

// behind is what left together, as Batch.Behind has it.
func behind(b *Batch) (all []int) {
	for i := range b.Len() {
		all = append(all, b.Behind(i))
	}
	return all
}

// cable is two hosts with a cable of MTU 1500 between them, 198.51.100.1 and 2.
type cable struct {
	t         *testing.T
	near, far *netns.NS
}

func newCable(t *testing.T) *cable {
	t.Helper()
	testkit.Tool(t, "ip")
	c := &cable{t: t, near: testkit.NS(t, "batch"), far: testkit.NS(t, "batch")}
	c.run(c.near, "ip", "link", "add", "m0", "type", "veth", "peer", "name", "m1", "netns", c.far.Name)
	for _, end := range []struct {
		n               *netns.NS
		device, address string
	}{{c.near, "m0", "198.51.100.1/24"}, {c.far, "m1", "198.51.100.2/24"}} {
		c.run(end.n, "ip", "addr", "add", end.address, "dev", end.device)
		c.run(end.n, "ip", "link", "set", end.device, "up")
	}
	return c
}

func (c *cable) run(n *netns.NS, name string, args ...string) {
	c.t.Helper()
	if out, err := n.Output(name, args...); err != nil {
		c.t.Fatalf("%s %v: %v %s", name, args, err, out)
	}
}

// sockets are a receiver on the far end and a sender to it on the near one.
func (c *cable) sockets() (to *net.UDPConn, s *Sender) {
	c.t.Helper()
	if err := errors.Join(
		c.far.Do(func() error { to = listen(c.t, "198.51.100.2:0"); return nil }),
		c.near.Do(func() error { s = dial(c.t, to.LocalAddr()); return nil })); err != nil {
		c.t.Fatal(err)
	}
	return to, s
}
