package flowexport

import (
	"context"
	"net/netip"
	"time"

	"heddle/internal/traffic"
)

// background is a scan that opens flows between VMs of both hosts until it is stopped, as the article's did.
type background struct {
	stop   context.CancelFunc
	done   chan struct{}
	result traffic.Result
	err    error
}

// startBackground begins with the first flow.
func (r *rig) startBackground(ctx context.Context) *background {
	ctx, stop := context.WithCancel(ctx)
	b := &background{stop: stop, done: make(chan struct{})}
	p := r.pair(0, r.cpus[len(r.cpus)-1:], nil)
	load := traffic.Load{Kind: traffic.KindScan, Flows: r.opts.Flows, Rate: r.opts.FlowRate}
	go func() {
		defer close(b.done)
		b.result, b.err = traffic.Send(ctx, p.Client, load, netip.AddrPortFrom(p.Addr, 0))
	}()
	return b
}

// cycle waits so long that the background has sent on each of its flows when a further time is over.
func (r *rig) cycle(ctx context.Context, further time.Duration) error {
	return pause(ctx, time.Duration(float64(time.Second)*float64(r.opts.Flows)/r.opts.FlowRate)-further)
}

// end stops the scan and says what it has come to.
func (b *background) end() (traffic.Scanned, error) {
	b.stop()
	<-b.done
	if b.err != nil {
		return traffic.Scanned{}, b.err
	}
	return *b.result.Scan, nil
}
