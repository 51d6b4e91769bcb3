package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

// together is how many messages of a session left in one piece with others.
func together(s *session) (n int) {
	for i, m := range s.recent {
		if m.behind > 0 || i > 0 && s.recent[i-1].behind > 0 {
			n++
		}
	}
	return n
}

// oneByOne makes the kernel refuse to divide what a session sends, as it does without checksums.
func oneByOne(t *testing.T, s *session) {
	t.Helper()
	var err error
	if late := s.socket.raw.Control(func(fd uintptr) {
		if s.socket.remote.Addr().Is4() {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_NO_CHECK6_TX, 1)
		}
	}); late != nil || err != nil {
		t.Fatal(errors.Join(late, err))
	}
}

// takeUnsummed makes a collector accept IPv6 datagrams without checksums.
func (c *collector) takeUnsummed() {
	c.t.Helper()
	raw, err := c.conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if late := unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_NO_CHECK6_RX, 1); late != nil {
				c.t.Fatal(late)
			}
		})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// RFC 7011 §3.1: what leaves in one piece arrives as messages, each a datagram with its own header, and in order; also
// if the kernel refuses to divide.
func TestBurstArrivesAsMessages(t *testing.T) {
	for _, divided := range []bool{true, false} {
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			for _, shape := range []Shape{Standard, VDS} {
				t.Run(fmt.Sprint(divided, at, shape), func(t *testing.T) { testBurst(t, divided, at, shape) })
			}
		}
	}
}

func testBurst(t *testing.T, divided bool, at string, shape Shape) {
	c := collect(t, at)
	r := newRig(t, to(c, shape))
	s := r.x.sessions[0]
	if !divided {
		c.takeUnsummed()
		oneByOne(t, s)
	}
	const n = 700
	r.pass(0)
	r.send(many(n)...)
	got := c.await(n)
	if len(got) != n {
		t.Fatalf("%d records of %d arrived", len(got), n)
	}
	for i, f := range got {
		if want := record(i); number(t, f, "sourceTransportPort") != uint64(want.Key.SrcPort) {
			t.Fatalf("record %d is that of port %d, want %d", i, number(t, f, "sourceTransportPort"), want.Key.SrcPort)
		}
	}
	next, octets := uint32(0), uint64(0)
	for i, m := range c.messages {
		if int(binary.BigEndian.Uint16(m.bytes[2:])) != len(m.bytes) || len(m.bytes) > 1500-28 {
			t.Errorf("message %d of %d bytes says that it has %d", i, len(m.bytes),
				binary.BigEndian.Uint16(m.bytes[2:]))
		}
		if sequence := binary.BigEndian.Uint32(m.bytes[8:]); sequence != next {
			t.Fatalf("message %d has sequence number %d, want %d", i, sequence, next)
		}
		next += uint32(c.results[i].Records)
		octets += uint64(len(m.bytes))
	}
	if st := r.x.Status()[0]; st.Records != n || st.Messages != uint64(len(c.messages)) || st.Octets != octets ||
		st.Lost != (Loss{}) {
		t.Errorf("%d messages of %d bytes arrived; status %+v", len(c.messages), octets, st)
	}
	if k := together(s); divided != (k > len(c.messages)/2) || !divided && k > 0 {
		t.Errorf("%d of %d messages left together with others", k, len(c.messages))
	}
}

// A collector closes its port in the middle of a burst: what arrived before was received, and everything from the first
// refused message on is lost.
func TestRefusalInTheMidstOfABurst(t *testing.T) {
	for _, divided := range []bool{true, false} {
		testkit.Tool(t, "nft")
		w := newWire(t, Config{})
		s := w.r.x.sessions[0]
		if !divided {
			oneByOne(t, s)
		}
		w.r.pass(0)
		w.r.send(many(1)...)
		w.c.await(1)
		// The first 66 kB pass: the first piece of a burst, which has the maximal length, but not the second.
		for _, rule := range []string{"add table ip f", "add chain ip f in { type filter hook input priority 0; }",
			fmt.Sprintf("add rule ip f in udp dport %d quota over 66 kbytes reject", w.c.port())} {
			if out, err := w.far.Output("nft", rule); err != nil {
				t.Fatalf("nft %s: %v %s", rule, err, out)
			}
		}
		const n = 800 // some 90 kB
		w.r.send(many(n)...)
		w.r.await(func(st Status) bool { return st.State == Away })
		st := w.r.x.Status()[0]
		got := len(w.c.await(int(st.Records)))
		if got != int(st.Records) || st.Records+st.Lost.Records != n+1 || got < n/2 || st.Lost.Records < 50 {
			t.Errorf("divided %v: %d records of %d arrived; status %+v", divided, got, n+1, st)
		}
		want := Loss{}
		for _, r := range many(n)[got-1:] {
			want.Add(Loss{1, r.Delta.Packets, r.Delta.Bytes})
		}
		if st.Lost != want {
			t.Errorf("divided %v: %+v counts as lost, want %+v", divided, st.Lost, want)
		}
	}
}

// A burst from an address that the host does not have.
func TestS67_BurstFromTheAddressOfTheSwitch(t *testing.T) {
	w := newWire(t, Config{Source: netip.MustParseAddr("203.0.113.9")})
	w.ip(w.far, "route", "add", "203.0.113.9/32", "via", "198.51.100.1")
	w.r.send(many(300)...)
	if n := len(w.c.await(300)); n != 300 || together(w.r.x.sessions[0]) < 10 {
		t.Errorf("%d records; %d messages left together; status %+v", n, together(w.r.x.sessions[0]), w.r.x.Status())
	}
	if i := slices.IndexFunc(w.c.messages, func(m message) bool {
		return m.from.Addr().String() != "203.0.113.9"
	}); i >= 0 {
		t.Errorf("message %d is from %v", i, w.c.messages[i].from)
	}
}

// A device that computes no checksums: all arrive, whether the kernel divides for it or not.
func TestBurstLeavesByADeviceWithoutChecksums(t *testing.T) {
	testkit.Tool(t, "ethtool")
	w := newWire(t, Config{})
	if out, err := w.host.Output("ethtool", "-K", "m0", "tx", "off"); err != nil {
		t.Fatalf("ethtool: %v %s", err, out)
	}
	w.r.send(many(400)...)
	if n := len(w.c.await(400)); n != 400 || w.r.x.Status()[0].Lost != (Loss{}) {
		t.Errorf("%d records of 400; status %+v", n, w.r.x.Status())
	}
}

// A path whose MTU becomes smaller: a router drops the part of a burst that is too long, which counts as lost; the rest
// is received.
func TestBurstThatIsTooLongForARouter(t *testing.T) {
	for _, d := range []detour{detour4(), detour6()} {
		for _, divided := range []bool{true, false} {
			t.Run(fmt.Sprint(divided, d.near), func(t *testing.T) { testTooLong(t, d, divided) })
		}
	}
}

func testTooLong(t *testing.T, d detour, divided bool) {
	w, router := newDetour(t, d, 1500)
	if !divided {
		oneByOne(t, w.r.x.sessions[0])
		if d == detour6() {
			w.c.takeUnsummed()
		}
	}
	w.r.pass(0)
	w.r.send(many(20)...)
	w.c.await(20)
	const mtu = 1300
	w.ip(router, "link", "set", "r1", "mtu", fmt.Sprint(mtu))
	const n = 400 // the last message has some records, and passes
	w.r.send(many(n)...)
	w.r.await(func(Status) bool { return w.r.x.sessions[0].socket.sender.PathMTU() == mtu })
	w.r.pass(time.Second)
	lost := w.r.x.Status()[0].Lost.Records
	w.r.send(many(100)...)
	got := len(w.c.await(20 + n + 100 - int(lost)))
	if st := w.r.x.Status()[0]; got+int(st.Lost.Records) != 20+n+100 || st.Lost.Records != lost || lost == 0 ||
		int(st.Records) != got || st.State != Sending {
		t.Errorf("%d records of %d arrived, %d were lost; status %+v", got, 20+n+100, lost, st)
	}
}

// Messages configured to be longer than the path's MTU leave in fragments, and nothing counts as lost.
func TestBurstOfMessagesLongerThanTheMTU(t *testing.T) {
	w := newWire(t, Config{MTU: 4000})
	for i := range 3 {
		w.r.pass(time.Second)
		w.r.send(many(300)...)
		if n := len(w.c.await(300 * (i + 1))); n != 300*(i+1) || w.r.x.Status()[0].Lost != (Loss{}) ||
			w.r.x.Status()[0].State != Sending {
			t.Fatalf("%d records of %d; status %+v", n, 300*(i+1), w.r.x.Status())
		}
	}
	if longest := slices.MaxFunc(w.c.messages, func(a, b message) int { return len(a.bytes) - len(b.bytes) }); len(
		longest.bytes) < 3500 {
		t.Errorf("the longest message has %d bytes", len(longest.bytes))
	}
}
