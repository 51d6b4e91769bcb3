package traffic

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
)

func TestSessionsAreMeasuredTogether(t *testing.T) {
	for how, f := range map[string]measureFunc{"goroutines": Measure, "processes": processes(t).Measure} {
		for _, k := range []Kind{KindStream, KindRR, KindCRR} {
			t.Run(how+"/"+string(k), func(t *testing.T) {
				load := short(k)
				load.Sessions = 4
				res, _ := measured(t, f, loopback, load, carries(1<<20, 20))
				if k == KindStream {
					if res.Sink.Connections != 4 || res.Stream.Bytes < 1<<20 || res.Stream.BitsPerSecond <= 0 {
						t.Errorf("stream %+v, sink %+v", *res.Stream, *res.Sink)
					}
					return
				}
				tr := res.Transactions
				if tr.Count < 20 || res.Sink.Bytes < tr.Count || tr.Latency.P50 <= 0 ||
					tr.Latency.P99 < tr.Latency.P50 || tr.PerSecond <= 0 {
					t.Errorf("transactions %+v, sink %+v", *tr, *res.Sink)
				}
				if k == KindRR && res.Sink.Connections != 4 {
					t.Errorf("four sessions used %d connections", res.Sink.Connections)
				}
			})
		}
	}
}

func TestConnectionsGoToEveryAddressOfTheServer(t *testing.T) {
	load := short(KindCRR)
	load.Sessions, load.Addresses = 2, 8 // of the loopback, 127.0.0.1 to 8
	for how, f := range map[string]measureFunc{"goroutines": Measure, "processes": processes(t).Measure} {
		t.Run(how, func(t *testing.T) {
			res, _ := measured(t, f, loopback, load, carries(0, 20))
			if res.Transactions.Count < 20 || res.Sink.Connections < res.Transactions.Count {
				t.Errorf("%s: %+v", how, res)
			}
		})
	}
	servers, family, err := consecutive(netip.MustParseAddrPort("10.0.0.255:7"), 2)
	if err != nil || family != syscall.AF_INET || len(servers) != 2 ||
		servers[1].(*unix.SockaddrInet4).Addr != [4]byte{10, 0, 1, 0} {
		t.Errorf("two addresses: %+v, %v", servers, err)
	}
}

func TestMergeAddsUpSessions(t *testing.T) {
	short, long := &histogram{}, &histogram{}
	for range 9 {
		short.add(time.Microsecond)
	}
	long.add(time.Millisecond)
	sum := merge([]Result{
		{Kind: KindCRR, Transactions: &Transactions{Seconds: 1, Count: 9, PerSecond: 9, CPUSeconds: 0.25,
			times: short}},
		{Kind: KindCRR, Transactions: &Transactions{Seconds: 2, Count: 1, PerSecond: 0.5, CPUSeconds: 0.5,
			times: long}},
	}).Transactions
	if sum.Count != 10 || sum.PerSecond != 9.5 || sum.Seconds != 2 || sum.CPUSeconds != 0.75 {
		t.Errorf("sum %+v", *sum)
	}
	if l := sum.Latency; l.P50 > 2e-6 || l.P99 < 0.9e-3 || l.Max != 1e-3 {
		t.Errorf("latency of all %+v", l)
	}
}

func TestIntervalBeginsWhenAsked(t *testing.T) {
	load := short(KindRR)
	sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindRR, At: netip.AddrPortFrom(loopback.Addr, 0)})
	if err != nil {
		t.Fatal(err)
	}
	var res Result
	for ahead := 150 * time.Millisecond; ahead < longestInterval; ahead *= 2 {
		load.Begin = time.Now().Add(ahead)
		if res, err = Send(t.Context(), Endpoint{}, load, sink.Addr()); !late(err) {
			break
		}
	}
	if _, finishErr := sink.Finish(); err != nil || finishErr != nil {
		t.Fatal(err, finishErr)
	}
	if since := time.Since(load.Begin).Seconds(); since < res.Transactions.Seconds {
		t.Errorf("an interval of %g s ended %g s after it was to begin", res.Transactions.Seconds, since)
	}
	load.Begin = time.Now().Add(-time.Millisecond)
	if _, err := Send(t.Context(), Endpoint{}, load, sink.Addr()); !errors.Is(err, ErrLate) {
		t.Errorf("a sender that is late: %v", err)
	}
}

func TestOneSessionThatFailsEndsAll(t *testing.T) {
	sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindRR, At: netip.AddrPortFrom(loopback.Addr, 0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for warmup := time.Duration(0); warmup < longestInterval; warmup = 2*warmup + 20*time.Millisecond {
		load := Load{Kind: KindRR, Warmup: warmup, Duration: time.Hour}
		_, err = SendEach(ctx, Endpoint{}, load, []netip.AddrPort{sink.Addr(),
			netip.MustParseAddrPort("127.0.0.1:1")})
		if !late(err) {
			break
		}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil {
		t.Error(err)
	}
	if _, err := sink.Finish(); err != nil {
		t.Error(err)
	}
}

func TestSessionsAndFlowsAreChecked(t *testing.T) {
	for want, l := range map[string]Load{
		"it has one": {Kind: KindUDP, Sessions: 2}, "65 sessions": {Kind: KindRR, Sessions: 65},
		"flows of a scan":    {Kind: KindScan, Flows: -1},
		"has one connection": {Kind: KindRR, Addresses: 2}, "257 addresses": {Kind: KindCRR, Addresses: 257},
		"size 1": {Kind: KindScan, Size: 1},
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := l.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want an error with %q", l, err, want)
			}
		})
	}
}

// resolve waits until the ends of a new path know each other's MAC. A request that is lost while the path comes up is
// repeated only after a second, and the kernel stores at most some 200 SYNs until its answer.
func resolve(t *testing.T, pair Pair) {
	t.Helper()
	for range 100 {
		res, err := Measure(t.Context(), pair, Load{Kind: KindEcho, Duration: 100 * time.Millisecond})
		if err == nil && res.Echo.Answered > 0 {
			return
		}
	}
	t.Fatal("the ends of the path do not reach each other")
}

func TestScanCountsWhatComesBack(t *testing.T) {
	pair := vethPair(t)
	resolve(t, pair)
	load := Load{Kind: KindScan, Warmup: 20 * time.Millisecond, Duration: 300 * time.Millisecond, Rate: 5000,
		Flows: 700}
	for name, f := range map[string]measureFunc{"own": Measure, "process": processes(t).Measure} {
		t.Run(name, func(t *testing.T) {
			// A busy machine delays SYNs beyond the interval, and those of the warm-up into it; and answers, until
			// nobody waits for them any more.
			near := func(s *Scanned, l Load) bool {
				most := 4. / 3 * l.Rate * l.Duration.Seconds()
				return s.Sent >= 750 && float64(s.Sent) <= most && s.Answered == s.Sent
			}
			res, load := measured(t, f, pair, load, func(r Result, l Load) bool { return near(r.Scan, l) })
			if s := res.Scan; !near(s, load) || s.Flows != 700 || s.FlowsAnswered != 700 || s.Refused != 0 {
				t.Errorf("%s: %+v in %v", name, *s, load.Duration)
			}
		})
	}
	pair.Addr = netip.MustParseAddr("10.98.0.77")
	res, err := Measure(t.Context(), pair, load)
	if err != nil {
		t.Fatal(err)
	}
	if s := res.Scan; s.Answered != 0 || s.FlowsAnswered != 0 || s.Sent+s.Refused == 0 {
		t.Errorf("a host that is not there answered: %+v", *s)
	}
}

func TestScanOverIPv6UntilItsContextEnds(t *testing.T) {
	testkit.Root(t)
	// Ports of this machine that are open answer too.
	good := func(s *Scanned) bool { return s.Sent >= 100 && s.Answered >= s.Sent*9/10 && s.FlowsAnswered == 100 }
	pair := Pair{Addr: netip.IPv6Loopback()}
	load := Load{Kind: KindScan, Rate: 2000, Flows: 100, Duration: 200 * time.Millisecond}
	_, err := untilItsContextEnds(t.Context(), pair, load)
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		testkit.Missing(t, "IPv6 on the loopback")
	}
	res, _ := measured(t, untilItsContextEnds, pair, load, func(r Result, _ Load) bool { return good(r.Scan) })
	if !good(res.Scan) {
		t.Errorf("scan %+v", *res.Scan)
	}
}

func TestNiceEndsAreSessionsOfTheirOwn(t *testing.T) {
	p := processes(t)
	p.Nice = 5
	sink, err := p.sink(t.Context(), Endpoint{}, SinkOptions{Kind: KindRR, At: netip.AddrPortFrom(loopback.Addr, 0),
		Size: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	pid := sink.cmd.Process.Pid
	session, err := unix.Getsid(pid)
	if err != nil || session != pid {
		t.Errorf("the sink %d is of session %d, %v", pid, session, err)
	}
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, pid) // the kernel's answer is 20 − nice
	if err != nil || raw != 20-5 {
		t.Errorf("priority %d, %v", 20-raw, err)
	}
	if _, err := sink.finish(); err != nil {
		t.Error(err)
	}
}
