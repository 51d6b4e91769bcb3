package traffic

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	vns "github.com/vishvananda/netns"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// childEnv makes the test binary behave as "heddle traffic", so that Processes can be tested without building another
// one.
const childEnv = "HEDDLE_TEST_TRAFFIC_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := Command().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func processes(t *testing.T) Processes {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Processes{Program: []string{self}, Env: []string{childEnv + "=1"}}
}

var loopback = Pair{Addr: netip.MustParseAddr("127.0.0.1")}

func short(k Kind) Load {
	return Load{Kind: k, Warmup: 20 * time.Millisecond, Duration: 100 * time.Millisecond}
}

// check checks a result against what must be true of any working path.
func check(t *testing.T, res Result, load Load) {
	t.Helper()
	if res.Kind != load.Kind {
		t.Errorf("result of kind %q, want %q", res.Kind, load.Kind)
	}
	seconds := 0.0
	switch load.Kind {
	case KindStream:
		seconds = res.Stream.Seconds
		if res.Stream.Bytes == 0 || res.Sink.Bytes < res.Stream.Bytes || res.Sink.Connections != 1 {
			t.Errorf("stream %+v, sink %+v", *res.Stream, *res.Sink)
		}
	case KindRR, KindCRR:
		tr := res.Transactions
		seconds = tr.Seconds
		if tr.Count == 0 || tr.Latency.P50 <= 0 || tr.Latency.P99 < tr.Latency.P50 || tr.Latency.Max < tr.Latency.P99 {
			t.Errorf("transactions %+v", *tr)
		}
		if wants := map[Kind]uint64{KindRR: 1, KindCRR: tr.Count}[load.Kind]; res.Sink.Connections < wants ||
			res.Sink.Bytes < tr.Count {
			t.Errorf("sink %+v for %d transactions", *res.Sink, tr.Count)
		}
		if load.Kind == KindRR && res.Sink.Connections != 1 {
			t.Errorf("rr used %d connections", res.Sink.Connections)
		}
	case KindUDP:
		seconds = res.Sent.Seconds
		got := res.Sink.Packets
		// A sink that does not get a CPU loses what does not fit into its buffer, which may include the end
		// marks.
		counted := got.Complete && got.Sent == res.Sent.Packets || !got.Complete && got.Overflowed >= EndMarks &&
			got.Sent <= res.Sent.Packets
		if !counted || got.Received+got.Lost != got.Sent || got.Received == 0 || got.Duplicated != 0 {
			t.Errorf("sent %+v, received %+v", *res.Sent, *got)
		}
		if res.ReceivedPerSecond() > res.Sent.PacketsPerSecond {
			t.Errorf("received %g of %g per second", res.ReceivedPerSecond(), res.Sent.PacketsPerSecond)
		}
	}
	if want := load.Duration.Seconds(); seconds < want { // a loaded machine may take longer, and says so
		t.Errorf("measured %g s, want at least %g", seconds, want)
	}
}

func TestMeasureOnLoopback(t *testing.T) {
	for _, k := range []Kind{KindStream, KindRR, KindCRR, KindUDP} {
		t.Run(string(k), func(t *testing.T) {
			res, load := measured(t, Measure, loopback, short(k), carries(1, 1))
			check(t, res, load)
		})
	}
}

func TestMeasureIPv6(t *testing.T) {
	res, err := Measure(t.Context(), Pair{Addr: netip.IPv6Loopback()}, short(KindRR))
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		testkit.Missing(t, "IPv6 on the loopback")
	}
	if err != nil {
		t.Fatal(err)
	}
	check(t, res, short(KindRR))
}

func TestProcessesOnLoopback(t *testing.T) {
	p := processes(t)
	for _, k := range []Kind{KindStream, KindRR, KindCRR, KindUDP} {
		t.Run(string(k), func(t *testing.T) {
			res, load := measured(t, p.Measure, loopback, short(k), carries(1, 1))
			check(t, res, load)
		})
	}
}

func TestProcessErrorsReachTheCaller(t *testing.T) {
	nowhere := Pair{Addr: netip.MustParseAddr("192.0.2.1")} // documentation prefix: no host has it
	_, err := processes(t).Measure(t.Context(), nowhere, short(KindRR))
	if err == nil || !strings.Contains(err.Error(), "bind") {
		t.Errorf("sink at an address that is not ours: %v", err)
	}
	far := Endpoint{CPUs: []int{1000}}
	if _, err = Measure(t.Context(), Pair{Addr: loopback.Addr, Client: far}, short(KindRR)); err == nil ||
		!strings.Contains(err.Error(), "pin to CPUs [1000]") {
		t.Errorf("pinning to a CPU that is not there: %v", err)
	}
	if _, err = Send(t.Context(), Endpoint{}, short(KindRR), netip.MustParseAddrPort("127.0.0.1:1")); !errors.Is(err,
		syscall.ECONNREFUSED) {
		t.Errorf("request to a closed port: %v", err)
	}
}

func TestCancelEndsEveryKind(t *testing.T) {
	measure := map[string]func(context.Context, Pair, Load) (Result, error){
		"goroutines": Measure, "processes": processes(t).Measure,
	}
	for how, f := range measure {
		for _, k := range []Kind{KindStream, KindRR, KindCRR, KindUDP} {
			t.Run(how+"/"+string(k), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := f(ctx, loopback, Load{Kind: k, Duration: time.Hour})
					ended <- err
				}()
				select {
				case err := <-ended:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("cancelled measurement: %v", err)
					}
				case <-time.After(2 * time.Minute):
					t.Error("it does not end")
				}
			})
		}
	}
}

func TestSinkOutlivesClientsThatLeave(t *testing.T) {
	sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindCRR, At: netip.AddrPortFrom(loopback.Addr, 0), Size: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, rude := range []string{"ab", "abcd"} { // leaves with half a request, leaves before the answer
		c, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(sink.Addr()))
		if err == nil {
			_, err = c.Write([]byte(rude))
		}
		if err == nil {
			err = c.SetLinger(0)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	load := short(KindCRR)
	load.Size = 4
	if _, err := Send(t.Context(), Endpoint{}, load, sink.Addr()); err != nil {
		t.Error(err)
	}
	res, err := sink.Finish()
	if err != nil || res.Broken < 1 || res.Connections < 5 {
		t.Errorf("sink %+v, %v", res, err)
	}
}

func TestMeasurementWithoutDurationEndsWithItsContext(t *testing.T) {
	load := Load{Kind: KindUDP, Rate: 1000, Duration: 200 * time.Millisecond}
	near := func(r Result, l Load) bool { // a busy machine ends later than the context
		got, most := r.Sink.Packets, 1.25*l.Rate*l.Duration.Seconds()
		return got.Sent >= 100 && float64(got.Sent) <= most && got.Lost == 0 && got.Complete
	}
	res, load := measured(t, untilItsContextEnds, loopback, load, near)
	if got := res.Sink.Packets; !near(res, load) || got.Duplicated != 0 || got.Reordered != 0 {
		t.Errorf("1000 packets per second for %v: %+v", load.Duration, *got)
	}
}

func TestLoadIsChecked(t *testing.T) {
	for _, l := range []Load{
		{Kind: "warp"}, {Kind: KindUDP, Size: 17}, {Kind: KindRR, Size: 1 << 20}, {Kind: KindRR, Rate: -1},
		{Kind: KindStream, Duration: -1}, {Kind: KindEcho, Rate: 1e6, Duration: time.Second},
	} {
		if _, err := Send(t.Context(), Endpoint{}, l, netip.MustParseAddrPort("127.0.0.1:9")); err == nil {
			t.Errorf("load %+v was accepted", l)
		}
	}
	if _, err := Listen(Endpoint{}, SinkOptions{Kind: KindEcho}); err == nil {
		t.Error("a sink for echo was opened")
	}
}

// vethPair makes two namespaces joined by a cable, 10.98.0.1 and 10.98.0.2.
func vethPair(t *testing.T) Pair {
	t.Helper()
	a, b := testkit.NS(t, "tra"), testkit.NS(t, "trb")
	move := func(into *netns.NS) vns.NsHandle {
		h, err := into.Handle()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}
	err := a.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(move(b)),
		})
	})
	for i, ns := range []*netns.NS{a, b} {
		if err == nil {
			err = ns.Do(func() error { return giveAddress("eth0", []string{"10.98.0.1/24", "10.98.0.2/24"}[i]) })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return Pair{Client: Endpoint{NS: a}, Server: Endpoint{NS: b}, Addr: netip.MustParseAddr("10.98.0.2")}
}

func giveAddress(device, cidr string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link))
}

func TestMeasureBetweenNamespaces(t *testing.T) {
	pair := vethPair(t)
	pair.Server.CPUs = []int{0}
	for _, k := range []Kind{KindStream, KindRR, KindCRR, KindUDP} {
		for how, f := range map[string]measureFunc{"goroutines": Measure, "processes": processes(t).Measure} {
			t.Run(how+"/"+string(k), func(t *testing.T) {
				res, load := measured(t, f, pair, short(k), carries(1, 1))
				check(t, res, load)
			})
		}
	}
}

func TestEchoCountsReplies(t *testing.T) {
	pair := vethPair(t)
	load := Load{Kind: KindEcho, Warmup: 20 * time.Millisecond, Duration: 200 * time.Millisecond, Rate: 100}
	for name, f := range map[string]measureFunc{"own": Measure, "process": processes(t).Measure} {
		t.Run(name, func(t *testing.T) {
			// A busy machine sends requests of the interval after it and those of the warm-up in it, and gets replies
			// when nobody waits for them any more.
			near := func(e *Echo, l Load) bool {
				most := 1.2 * l.Rate * l.Duration.Seconds()
				return e.Requests >= 10 && float64(e.Requests) <= most && e.Replies == e.Requests
			}
			res, load := measured(t, f, pair, load, func(r Result, l Load) bool { return near(r.Echo, l) })
			if e := res.Echo; !near(e, load) || e.RepliesPerPing != 1 || e.RTT.P50 <= 0 {
				t.Errorf("%s: %+v in %v", name, *e, load.Duration)
			}
		})
	}
	pair.Addr = netip.MustParseAddr("10.98.0.77")
	res, err := Measure(t.Context(), pair, load)
	if err != nil {
		t.Fatal(err)
	}
	if e := res.Echo; e.Replies != 0 || e.RepliesPerPing != 0 || e.Requests == 0 {
		t.Errorf("a host that is not there answered: %+v", *e)
	}
}

// Drops of a sink's own socket are distinguished from losses of the path: on a path that loses nothing, every loss is
// such a drop.
func TestWhatTheSocketThrowsAwayIsNotThePathsLoss(t *testing.T) {
	measure := func(ctx context.Context, p Pair, l Load) (Result, error) {
		sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindUDP, At: netip.AddrPortFrom(p.Addr, 0),
			Buffer: 16 << 10, Nap: 50 * time.Millisecond})
		if err != nil {
			return Result{}, err
		}
		res, err := Send(ctx, Endpoint{}, l, sink.Addr())
		got, finishErr := sink.Finish()
		res.Sink = &got
		return res, errors.Join(err, finishErr)
	}
	// The dropped packets may include the end marks.
	adds := func(r Result) bool {
		all := r.Sink.Packets.Received + r.Sink.Packets.Overflowed
		return all >= r.Sent.Packets && all <= r.Sent.Packets+EndMarks
	}
	// If a sink gets no CPU for a second, it is ended before it has read the packets in its buffer.
	res, _ := measured(t, measure, loopback, Load{Kind: KindUDP, Duration: 200 * time.Millisecond},
		func(r Result, _ Load) bool { return r.Sink.Packets.Overflowed > 0 && adds(r) })
	p := res.Sink.Packets
	if p.Overflowed == 0 {
		t.Fatalf("%+v: nothing was thrown away, this test is void", *p)
	}
	if !adds(res) {
		t.Errorf("%d sent; %d received and %d thrown away", res.Sent.Packets, p.Received, p.Overflowed)
	}
}
