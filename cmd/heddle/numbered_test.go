package main

import (
	"context"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"heddle/internal/netns"
	"heddle/internal/traffic"
)

// numbered is a stream of numbered packets between two guests that runs until finish.
type numbered struct {
	t    *testing.T
	sink *traffic.Sink
	stop context.CancelFunc
	sent chan error
}

// packetRate is how many packets a second the streams have; HEDDLE_RATE asks for another, such as 100000 on a machine that
// is otherwise idle: what its receiver's buffer loses would not be the switch's loss.
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
	sink, err := traffic.Listen(traffic.Endpoint{NS: to}, traffic.SinkOptions{Kind: traffic.KindUDP, At: netip.AddrPortFrom(netip.MustParseAddr(address), 0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &numbered{t: t, sink: sink, stop: stop, sent: make(chan error, 1)}
	rate := packetRate(t)
	go func() {
		_, err := traffic.Send(ctx, traffic.Endpoint{NS: from}, traffic.Load{Kind: traffic.KindUDP, Rate: rate}, sink.Addr())
		n.sent <- err
	}()
	t.Cleanup(stop)
	return n
}

// finish fails the test when a packet was lost, doubled or overtaken.
func (n *numbered) finish() {
	n.t.Helper()
	n.stop()
	if err := <-n.sent; err != nil {
		n.t.Error(err)
	}
	res, err := n.sink.Finish()
	if err != nil {
		n.t.Fatal(err)
	}
	p := *res.Packets
	if !p.Complete || p.Sent == 0 || p.Lost+p.Duplicated+p.Reordered > 0 {
		n.t.Errorf("packets %+v", p)
	}
	n.t.Logf("%d packets, lost %d, longest silence %.1f ms", p.Sent, p.Lost, 1000*p.LongestGap)
}
