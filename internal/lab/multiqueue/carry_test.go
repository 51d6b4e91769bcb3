package multiqueue_test

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/multiqueue"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit"
)

// taps are both ends of an adapter, with an address each.
type taps struct {
	host, vm multiqueue.End
	counts   string
	ended    chan error
}

const queues = 4

func start(t *testing.T) *taps {
	t.Helper()
	testkit.Root(t)
	testkit.Weigh(t, 3)
	p := &taps{host: multiqueue.End{NS: testkit.NS(t, "host"), Device: "vm-a"},
		vm: multiqueue.End{NS: testkit.NS(t, "vm"), Device: "eth0"}, counts: filepath.Join(t.TempDir(), "counts"),
		ended: make(chan error, 1)}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 7}
	if err := multiqueue.Make(p.host, p.vm, queues, 1500, mac); err != nil {
		t.Fatal(err)
	}
	for end, address := range map[multiqueue.End]string{p.host: "192.0.2.1/24", p.vm: "192.0.2.2/24"} {
		onLink(t, end, func(l netlink.Link) error {
			a, err := netlink.ParseAddr(address)
			if err != nil {
				return err
			}
			return netlink.AddrAdd(l, a)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { p.ended <- multiqueue.Carry(ctx, p.host, p.vm, queues, p.counts) }()
	t.Cleanup(func() {
		cancel()
		if err := <-p.ended; err != nil {
			t.Errorf("carry: %v", err)
		}
	})
	return p
}

func onLink(t *testing.T, e multiqueue.End, do func(netlink.Link) error) {
	t.Helper()
	err := e.NS.Do(func() error {
		l, err := netlink.LinkByName(e.Device)
		if err != nil {
			return err
		}
		return do(l)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sent are the frames that the namespace of an end has sent into its tap and that were read there.
func (p *taps) sent(t *testing.T, e multiqueue.End) (n uint64) {
	t.Helper()
	onLink(t, e, func(l netlink.Link) error {
		n = l.Attrs().Statistics.TxPackets
		return nil
	})
	return n
}

// TestFlowsAreCarriedBySeveralQueues: many flows of packets take all queues both ways, and the counts of the queues are
// those of the devices.
func TestFlowsAreCarriedBySeveralQueues(t *testing.T) {
	p := start(t)
	load := traffic.Load{Kind: traffic.KindUDP, Flows: 64, Rate: 20000, Duration: 300 * time.Millisecond}
	for _, way := range []struct {
		from, to *netns.NS
		at       string
	}{{p.host.NS, p.vm.NS, "192.0.2.2"}, {p.vm.NS, p.host.NS, "192.0.2.1"}} {
		reach(t, way.from, way.at)
		res, err := traffic.Measure(t.Context(), traffic.Pair{Client: traffic.Endpoint{NS: way.from},
			Server: traffic.Endpoint{NS: way.to}, Addr: netip.MustParseAddr(way.at)}, load)
		if err != nil || res.Sink.Packets == nil || res.Sink.Packets.Received == 0 {
			t.Fatalf("to %s: %+v, %v", way.at, res, err)
		}
	}
	var all []multiqueue.Counts
	var in, out uint64
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var err error
		if all, err = multiqueue.ReadCounts(p.counts); err != nil || len(all) != queues {
			t.Fatalf("%d queues: %v", len(all), err)
		}
		in, out = 0, 0
		for _, q := range all {
			in, out = in+q.ToVM+q.RefusedToVM, out+q.FromVM+q.RefusedFromVM
		}
		if in == p.sent(t, p.host) && out == p.sent(t, p.vm) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("queues carried %d and %d frames, the devices %d and %d", in, out, p.sent(t, p.host),
				p.sent(t, p.vm))
		}
	}
	for i, q := range all {
		if q.ToVM == 0 || q.FromVM == 0 {
			t.Errorf("queue %d was not used: %+v", i, all)
		}
	}
}

// TestWholeSegmentsAreCarried: a stream in writes of 64 KiB comes through, and in frames longer than the MTU.
func TestWholeSegmentsAreCarried(t *testing.T) {
	p := start(t)
	reach(t, p.vm.NS, "192.0.2.1")
	res, err := traffic.Measure(t.Context(), traffic.Pair{Client: traffic.Endpoint{NS: p.vm.NS},
		Server: traffic.Endpoint{NS: p.host.NS}, Addr: netip.MustParseAddr("192.0.2.1")},
		traffic.Load{Kind: traffic.KindStream, Duration: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var stats netlink.LinkStatistics
	onLink(t, p.host, func(l netlink.Link) error {
		stats = *l.Attrs().Statistics
		return nil
	})
	if res.Sink.Bytes == 0 || stats.RxBytes/stats.RxPackets <= 1514 {
		t.Errorf("%d bytes in %d frames for %d bytes of a stream", stats.RxBytes, stats.RxPackets, res.Sink.Bytes)
	}
}

// reach waits until the taps have a carrier and the other end answers.
func reach(t *testing.T, from *netns.NS, address string) {
	t.Helper()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 50 * time.Millisecond, Rate: 40}
	for deadline := time.Now().Add(time.Minute); ; {
		res, err := traffic.Send(t.Context(), traffic.Endpoint{NS: from}, load,
			netip.AddrPortFrom(netip.MustParseAddr(address), 0))
		if err == nil && res.Echo.Replies > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %+v, %v", address, res, err)
		}
	}
}

// TestATapWithFewerQueuesIsAnError: a process cannot have more queues than the tap was made with.
func TestATapWithFewerQueuesIsAnError(t *testing.T) {
	testkit.Root(t)
	host := multiqueue.End{NS: testkit.NS(t, "host"), Device: "vm-a"}
	vm := multiqueue.End{NS: testkit.NS(t, "vm"), Device: "eth0"}
	if err := multiqueue.Make(host, vm, 1, 1500, net.HardwareAddr{2, 0, 0, 0, 0, 7}); err != nil {
		t.Fatal(err)
	}
	err := multiqueue.Carry(t.Context(), host, vm, 2, filepath.Join(t.TempDir(), "counts"))
	if err == nil || !strings.Contains(err.Error(), "open a queue of vm-a") {
		t.Errorf("Carry = %v", err)
	}
}
