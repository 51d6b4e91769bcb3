package export

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// wire is an exporter's host and a collector's, with a cable between them.
type wire struct {
	t         *testing.T
	host, far *netns.NS
	c         *collector
	r         *rig
}

func newWire(t *testing.T, c Config) *wire {
	t.Helper()
	testkit.Tool(t, "ip")
	w := &wire{t: t, host: testkit.NS(t, "exporter"), far: testkit.NS(t, "collector")}
	w.ip(w.host, "link", "add", "m0", "type", "veth", "peer", "name", "m1", "netns", w.far.Name)
	w.ip(w.host, "addr", "add", "198.51.100.1/24", "dev", "m0")
	w.ip(w.far, "addr", "add", "198.51.100.2/24", "dev", "m1")
	w.ip(w.host, "link", "set", "m0", "up")
	w.ip(w.far, "link", "set", "m1", "up")
	if err := w.far.Do(func() error { w.c = collect(t, "198.51.100.2:0"); return nil }); err != nil {
		t.Fatal(err)
	}
	c.Collectors = []Collector{{Address: "198.51.100.2", Port: w.c.port(), Shape: Standard}}
	if err := w.host.Do(func() error { w.r = newRig(t, c); return nil }); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *wire) ip(n *netns.NS, args ...string) {
	w.t.Helper()
	if out, err := n.Output("ip", args...); err != nil {
		w.t.Fatalf("ip %v: %v %s", args, err, out)
	}
}

// The switch's address is not one of the host's: a collector sees all hosts of a switch as one exporter.
func TestS67_SwitchAddressNeedNotBeOneOfTheHost(t *testing.T) {
	w := newWire(t, Config{Source: netip.MustParseAddr("203.0.113.9")})
	w.ip(w.far, "route", "add", "203.0.113.9/32", "via", "198.51.100.1")
	w.r.send(record(0))
	w.c.await(1)
	if len(w.c.messages) < 2 || w.c.messages[1].from.Addr().String() != "203.0.113.9" {
		t.Errorf("the collector sees %+v, status %+v", w.c.messages, w.r.x.Status())
	}
}

// RFC 5471 §3.6.1: the network is away for some time. What could not be sent is counted, and records arrive again when
// it is back.
func TestRFC5471_3_6_1_NetworkThatIsAwayForAWhile(t *testing.T) {
	w := newWire(t, Config{})
	for range 12 {
		w.r.pass(time.Second)
	}
	w.r.send(many(40)...)
	before := len(w.c.await(40))
	w.ip(w.host, "link", "set", "m0", "down")
	w.r.send(many(30)...)
	if st := w.r.x.Status()[0]; st.State != Away || st.Lost.Records != 30 || st.Why == "" {
		t.Errorf("status %+v", st)
	}
	w.r.pass(10 * time.Second)
	w.ip(w.host, "link", "set", "m0", "up")
	for i := 0; w.r.x.Status()[0].State != Sending; i++ {
		if i == 50 {
			t.Fatalf("status %+v", w.r.x.Status())
		}
		w.r.pass(time.Second)
	}
	w.r.send(many(50)...)
	after := len(w.c.await(90)) - before
	if st := w.r.x.Status()[0]; before != 40 || after != 50 || st.Lost.Records != 30 || st.Records != 90 {
		t.Errorf("%d records before and %d after the outage; status %+v", before, after, st)
	}
	told := w.c.with("notSentFlowTotalCount")
	if n := number(t, told[len(told)-1], "notSentFlowTotalCount"); n != 30 {
		t.Errorf("the collector was told of %d records that it was not sent, want 30", n)
	}
	if err := sequence(w.c); err != nil {
		t.Error(err)
	}
}

// sequence checks that the gaps in the sequence are what was not sent.
func sequence(c *collector) error {
	for i, r := range c.results {
		if r.Lost < 0 || r.Unknown > 0 {
			return fmt.Errorf("message %d: %+v", i, r)
		}
	}
	return nil
}

// detour is the prefixes of the addresses on a path with a router: on the exporter's side, and on the collector's.
type detour struct{ near, far, prefix string }

func detour4() detour { return detour{"198.51.100.", "192.0.2.", "/24"} }

func detour6() detour { return detour{"2001:db8:1::", "2001:db8:2::", "/64"} }

// newDetour is an exporter's host and a collector's with a router between them. All MTUs are 1500 except that of the
// router's link to the collector.
func newDetour(t *testing.T, d detour, mtu int) (w *wire, router *netns.NS) {
	t.Helper()
	testkit.Tool(t, "ip", "ping")
	w, router = &wire{t: t, host: testkit.NS(t, "exporter"), far: testkit.NS(t, "collector")}, testkit.NS(t, "router")
	w.ip(w.host, "link", "add", "m0", "type", "veth", "peer", "name", "r0", "netns", router.Name)
	w.ip(w.far, "link", "add", "m1", "type", "veth", "peer", "name", "r1", "netns", router.Name)
	for _, x := range []struct {
		n               *netns.NS
		device, address string
		mtu             int
	}{{w.host, "m0", d.near + "1", 1500}, {router, "r0", d.near + "254", 1500}, {router, "r1", d.far + "254", mtu},
		{w.far, "m1", d.far + "2", mtu}} {
		w.ip(x.n, "addr", "add", x.address+d.prefix, "dev", x.device, "nodad")
		w.ip(x.n, "link", "set", x.device, "mtu", fmt.Sprint(x.mtu), "up")
	}
	if out, err := router.Output("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > "+
		"/proc/sys/net/ipv6/conf/all/forwarding"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.ip(w.host, "route", "add", "default", "via", d.near+"254")
	w.ip(w.far, "route", "add", "default", "via", d.far+"254")
	for end := time.Now().Add(time.Minute); ; {
		out, err := w.host.Output("ping", "-n", "-c", "1", "-W", "1", d.far+"2")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the collector's host can't be reached: %v: %s", err, out)
		}
	}
	if err := w.far.Do(func() error {
		w.c = collect(t, netip.AddrPortFrom(netip.MustParseAddr(d.far+"2"), 0).String())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.host.Do(func() error {
		w.r = newRig(t, Config{Collectors: []Collector{{Address: d.far + "2", Port: w.c.port(), Shape: Standard}}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return w, router
}

// A router with a smaller MTU on the way: what it dropped is counted, and messages become shorter.
func TestMessagesKeepToThePathMTU(t *testing.T) {
	w, _ := newDetour(t, detour4(), 1000)
	w.r.pass(0) // templates fill messages of 1500 bytes, which the router drops
	for end := time.Now().Add(time.Minute); w.r.x.sessions[0].socket.sender.PathMTU() != 1000; time.Sleep(
		time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the kernel does not learn the path's MTU")
		}
	}
	w.r.pass(time.Second)
	w.r.send(many(100)...)
	got, largest := len(w.c.await(100)), 0
	for i, m := range w.c.messages {
		// The first templates were sent before the path's MTU was known: of two messages, the host itself may have
		// fragmented the second.
		if r := w.c.results[i]; r.Header.Sequence > 0 || r.Records > 0 {
			largest = max(largest, len(m.bytes)+28)
		}
	}
	if st := w.r.x.Status()[0]; got != 100 || largest > 1000 || largest < 800 || st.State != Sending ||
		st.Lost.Records != 0 {
		t.Errorf("%d records, the largest packet has %d bytes; status %+v", got, largest, st)
	}
}
