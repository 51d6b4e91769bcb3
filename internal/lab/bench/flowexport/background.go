package flowexport

import (
	"context"
	"net/netip"

	"heddle/internal/lab/traffic"
)

// background is a scan that opens flows between VMs of both hosts until it is stopped, like the article's.
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

// end stops the scan and returns its result.
func (b *background) end() (traffic.Scanned, error) {
	b.stop()
	<-b.done
	if b.err != nil {
		return traffic.Scanned{}, b.err
	}
	return *b.result.Scan, nil
}
