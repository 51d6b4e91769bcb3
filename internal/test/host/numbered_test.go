package host

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
	"heddle/internal/test/testkit/cable"
)

const (
	// fastRate is from where on a sink looks for packets now and then: to be woken by each costs more than the path.
	fastRate = 20000
	fastNap  = 200 * time.Microsecond
	// fastBuffer holds seconds of packets: as long as an agent that starts may keep a CPU from the sink.
	fastBuffer = 512 << 20
)

// numbered is a stream of numbered packets between two guests that runs until finish.
type numbered struct {
	t    *testing.T
	sink *traffic.Sink
	stop context.CancelFunc
	sent chan sentPackets
}

type sentPackets struct {
	traffic.Result
	err error
}

// packetRate is how many packets a second the streams have; HEDDLE_RATE asks for another, as the soak does: 100000.
func packetRate(t *testing.T) float64 {
	t.Helper()
	text := os.Getenv("HEDDLE_RATE")
	if text == "" {
		return 5000
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("HEDDLE_RATE: %v", err)
	}
	return rate
}

func startNumbered(t *testing.T, from, to *netns.NS, address string) *numbered {
	t.Helper()
	rate := packetRate(t)
	opts := traffic.SinkOptions{Kind: traffic.KindUDP, At: netip.AddrPortFrom(netip.MustParseAddr(address), 0)}
	if rate > fastRate {
		opts.Nap, opts.Buffer = fastNap, fastBuffer
	}
	sink, err := traffic.Listen(traffic.Endpoint{NS: to}, opts)
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := cable.CPU() // one: packets of a sender that moves may overtake each other before any switch
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &numbered{t: t, sink: sink, stop: stop, sent: make(chan sentPackets, 1)}
	go func() {
		res, err := traffic.Send(ctx, traffic.Endpoint{NS: from, CPUs: []int{cpu}},
			traffic.Load{Kind: traffic.KindUDP, Rate: rate}, sink.Addr())
		n.sent <- sentPackets{res, err}
	}()
	t.Cleanup(stop)
	return n
}

// finish ends the stream and fails the test if the switch lost, doubled or reordered a packet. The switch's loss is
// what was sent minus what was received and minus what the receiver's own socket dropped, which the kernel counts. It
// returns how many frames of the stream the sender's port has passed to the switch.
func (n *numbered) finish() (frames uint64) {
	n.t.Helper()
	n.stop()
	sent := <-n.sent
	if sent.err != nil {
		n.t.Fatal(sent.err)
	}
	res, err := n.sink.Finish()
	if err != nil {
		n.t.Fatal(err)
	}
	p := *res.Packets
	if !p.Complete || p.Sent == 0 || p.Lost > p.Overflowed || p.Duplicated+p.Reordered+p.TooLate > 0 {
		n.t.Errorf("packets %+v", p)
	}
	n.t.Logf("%d packets, %.0f a second; lost by the switch %d, by the receiver's socket %d; longest silence %.1f ms",
		p.Sent, sent.Sent.PacketsPerSecond, p.Lost-min(p.Lost, p.Overflowed), p.Overflowed, 1000*p.LongestGap)
	return sent.Sent.Packets + traffic.EndMarks
}

// knows keeps a neighbour's address for good, so that the guest sends nothing but what it is told to.
func knows(t *testing.T, guest *netns.NS, ip, mac string) {
	t.Helper()
	err := guest.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		hw, err := net.ParseMAC(mac)
		if err != nil {
			return err
		}
		return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: net.ParseIP(ip), HardwareAddr: hw})
	})
	if err != nil {
		t.Fatal(fmt.Errorf("keep the address of %s: %w", ip, err))
	}
}
