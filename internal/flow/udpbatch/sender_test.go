package udpbatch

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// A receiver without batches sees datagrams, in order and with their own lengths; those of one length left in one
// piece.
func TestDatagramsArriveOneByOne(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		to := listen(t, at)
		s := dial(t, to.LocalAddr())
		b := batch(100, 100, 100, 99, 100, 100, 1472, 1472, 1, 1)
		s.all(t, b)
		expect(t, to, b)
		if want := []int{2, 1, 0, 0, 1, 0, 1, 0, 1, 0}; !slices.Equal(behind(b), want) {
			t.Errorf("%s: left together with %v behind, want %v", at, behind(b), want)
		}
		b.Reset()
		s.all(t, b)
		nothing(t, to)
	}
}

// The kernel divides 64 datagrams at most, and no more bytes than a packet has.
func TestLongRunsHaveSeveralPieces(t *testing.T) {
	to := listen(t, "127.0.0.1:0")
	s := dial(t, to.LocalAddr())
	for _, c := range []struct {
		b     *Batch
		first []int // the datagrams after which that many left in the same piece
	}{
		{batch(times(100, 50)...), []int{63, 35}},
		{batch(times(50, 1472)...), []int{43, 5}},
		{batch(65507, 65507), []int{0, 0}},
		{batch(32753, 32753, 32753), []int{1, 0}},
		{batch(times(200, 20)...), []int{63, 63, 63, 7}},
	} {
		s.all(t, c.b)
		expect(t, to, c.b)
		at := 0
		for _, n := range c.first {
			if c.b.Behind(at) != n {
				t.Errorf("%d datagrams of %d bytes: %d left with datagram %d, want %d", c.b.Len(), len(c.b.Datagram(0)),
					c.b.Behind(at), at, n)
			}
			at += n + 1
		}
	}
}

// The kernel does not divide datagrams of a socket without checksums; the sender finds this out once.
func TestDatagramsGoOneByOneWhereTheKernelDoesNotDivide(t *testing.T) {
	for _, c := range []struct {
		at          string
		level, name int
	}{{"127.0.0.1:0", unix.SOL_SOCKET, unix.SO_NO_CHECK}, {"[::1]:0", unix.SOL_UDP, unix.UDP_NO_CHECK6_TX}} {
		t.Run(c.at, func(t *testing.T) {
			to := listen(t, c.at)
			s := dial(t, to.LocalAddr())
			s.option(t, c.level, c.name, 1)
			if c.name == unix.UDP_NO_CHECK6_TX {
				r := dial(t, to.LocalAddr())
				r.conn, r.raw = to, must(to.SyscallConn())
				r.option(t, unix.SOL_UDP, unix.UDP_NO_CHECK6_RX, 1)
			}
			b := batch(7, 1000, 1000, 1000, 500, 500, 1000, 1000)
			s.all(t, b)
			expect(t, to, b)
			if slices.Max(behind(b)) != 0 || s.divides {
				t.Errorf("%s: %v left together, and would again: %v", c.at, behind(b), s.divides)
			}
			s.all(t, b)
			expect(t, to, b)
			nothing(t, to)
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A device that computes no checksums: kernels before 6.11 do not divide for it, later ones compute the checksums
// themselves. Either way all arrive.
func TestDatagramsLeaveByADeviceWithoutChecksums(t *testing.T) {
	testkit.Tool(t, "ethtool")
	c := newCable(t)
	c.run(c.near, "ethtool", "-K", "m0", "tx", "off")
	to, s := c.sockets()
	for range 2 {
		b := batch(times(9, 300)...)
		s.all(t, b)
		expect(t, to, b)
		if together := b.Behind(0) == 8; together != s.divides {
			t.Errorf("%v left together, and would again: %v", behind(b), s.divides)
		}
	}
	nothing(t, to)
}

// Datagrams that are longer than the MTU go out in fragments, as without batches, and the next batch leaves together
// again.
func TestDatagramsLongerThanTheMTU(t *testing.T) {
	c := newCable(t)
	to, s := c.sockets()
	for _, long := range []*Batch{batch(100, 100, 2000, 2000, 1400, 1400, 2001), batch(1400, 1400, 2000), batch(2000)} {
		s.all(t, long)
		expect(t, to, long)
		if last := long.Len() - 1; slices.Max(behind(long)[last/2:]) != 0 {
			t.Errorf("left together: %v", behind(long))
		}
		b := batch(1400, 1400, 1400, 1472, 1472)
		s.all(t, b)
		expect(t, to, b)
		if want := []int{2, 1, 0, 1, 0}; !slices.Equal(behind(b), want) {
			t.Errorf("left together with %v behind, want %v", behind(b), want)
		}
	}
	if s.PathMTU() != 1500 {
		t.Errorf("the way's MTU is %d", s.PathMTU())
	}
}

// Errors that the socket got for earlier datagrams do not hold back a batch.
func TestBatchIsSentThoughTheOneBeforeWasRefused(t *testing.T) {
	to := listen(t, "127.0.0.1:0")
	address := to.LocalAddr().(*net.UDPAddr).AddrPort()
	s := dial(t, to.LocalAddr())
	_ = to.Close()
	b := batch(times(10, 100)...)
	s.all(t, b) // the kernel accepts it, and reports the error later
	to = listen(t, netip.AddrPortFrom(address.Addr(), address.Port()).String())
	s.all(t, b)
	expect(t, to, b)
	if b.Behind(0) != 9 {
		t.Errorf("a refusal is taken for that of a run: %v", behind(b))
	}
}

// Datagrams wait in the kernel while it resolves the address, and fill the socket's buffer.
func TestSendWaitsForRoom(t *testing.T) {
	c := newCable(t)
	to, s := c.sockets()
	const mac = "02:00:5e:00:00:02"
	c.run(c.far, "ip", "link", "set", "m1", "address", mac, "arp", "off") // does not answer
	s.option(t, unix.SOL_SOCKET, unix.SO_SNDBUF, 1)                       // the least there is
	b := batch(1400, 1300, 1200, 1100, 1000, 900, 800, 700, 600)
	n, err := s.Send(b, 20*time.Millisecond)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == b.Len() {
		t.Fatalf("%d datagrams of %d were taken without room: %v", n, b.Len(), err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.all(t, batch(300, 200))
	}()
	c.run(c.near, "ip", "neigh", "replace", "198.51.100.2", "lladdr", mac, "dev", "m0", "nud", "permanent")
	<-done
	got := make([]byte, 1<<16)
	if err := to.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for last := 0; last != 200; {
		if last, err = to.Read(got); err != nil {
			t.Fatal(err)
		}
	}
}

// A socket that was closed, or that is not connected.
func TestSocketsThatCantSend(t *testing.T) {
	to := listen(t, "127.0.0.1:0")
	if _, err := NewSender(to); err == nil {
		t.Error("a socket that is not connected became a sender")
	}
	s := dial(t, to.LocalAddr())
	_ = s.conn.Close()
	if n, err := s.Send(batch(100, 100), patience); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestSendMakesNoGarbage(t *testing.T) {
	to := listen(t, "127.0.0.1:0")
	s, b := dial(t, to.LocalAddr()), batch(append(times(40, 1400), 1000)...)
	if n := testing.AllocsPerRun(50, func() { s.all(t, b) }); n > 0 {
		t.Errorf("%v allocations for each batch", n)
	}
}

func TestBatchIsFullByBytesAndDatagrams(t *testing.T) {
	b := &Batch{}
	if b.Full(MaxBytes + 1) {
		t.Error("an empty batch is full")
	}
	for !b.Full(1000) {
		b.Add(make([]byte, 1000))
	}
	if b.Len() != MaxBytes/1000 {
		t.Errorf("%d datagrams of 1000 bytes", b.Len())
	}
	b.Reset()
	for !b.Full(10) {
		b.Add(make([]byte, 10))
	}
	if b.Len() != MaxDatagrams {
		t.Errorf("%d datagrams of 10 bytes", b.Len())
	}
}
