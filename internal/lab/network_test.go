package lab

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit"
)

// shapedPair is two machines on a bridge, each by a cable of the given rate:
//
//	a/e0 ── p1 [bridge] p2 ── e0/b
func shapedPair(t *testing.T, rate scenario.Rate) (a, b *netns.NS, pair traffic.Pair) {
	t.Helper()
	a, b, sw := testkit.NS(t, "a"), testkit.NS(t, "b"), testkit.NS(t, "sw")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []struct {
		ns   *netns.NS
		port string
		addr string
	}{{a, "p1", "10.9.9.1/24"}, {b, "p2", "10.9.9.2/24"}} {
		must(cable(end{ns: k.ns, device: "e0"}, end{ns: sw, device: k.port}, 1500))
		must(shape(k.ns, "e0", rate))
		must(shape(sw, k.port, rate))
		must(address(k.ns, "e0", []netip.Prefix{netip.MustParsePrefix(k.addr)}, netip.Addr{}))
	}
	must(bridge(sw, "bridge0", []string{"p1", "p2"}))
	return a, b, traffic.Pair{
		Client: traffic.Endpoint{NS: a}, Server: traffic.Endpoint{NS: b}, Addr: netip.MustParseAddr("10.9.9.2"),
	}
}

// received is what a device has received.
func received(t *testing.T, ns *netns.NS, device string) (packets, bytes uint64) {
	t.Helper()
	err := ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		packets, bytes = l.Attrs().Statistics.RxPackets, l.Attrs().Statistics.RxBytes
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packets, bytes
}

func stream(t *testing.T, p traffic.Pair, d time.Duration) *traffic.Stream {
	t.Helper()
	res, err := traffic.Measure(context.Background(), p, traffic.Load{Kind: traffic.KindStream, Duration: d})
	if err != nil {
		t.Fatal(err)
	}
	return res.Stream
}

func TestShapedLinkIsNotFasterThanItsRate(t *testing.T) {
	testkit.Root(t)
	const rate = 100e6
	_, b, pair := shapedPair(t, rate)
	start := time.Now()
	stream(t, pair, 500*time.Millisecond)
	_, bytes := received(t, b, "e0")
	// Two token buckets on the way may each have been full at the start.
	if most := rate / 8 * (time.Since(start) + 2*burstTime).Seconds(); float64(bytes) > most*1.02 {
		t.Errorf("%d bytes crossed a link that carries at most %.0f in this time", bytes, most)
	}
}

func TestShapedLinkKeepsSegmentedFramesWhole(t *testing.T) {
	testkit.Root(t)
	_, b, pair := shapedPair(t, 10e9)
	stream(t, pair, 300*time.Millisecond)
	packets, bytes := received(t, b, "e0")
	if packets == 0 || bytes/packets < 3*1514 {
		t.Errorf("%d bytes came in %d frames: they have been split to the size of the MTU", bytes, packets)
	}
}
