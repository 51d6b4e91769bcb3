package host

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"
	"golang.org/x/sync/errgroup"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/agent/cluster"
)

// sayEvery is the least time between two reports of probes.
const sayEvery = time.Second

// Talks are the conversations of this part with the controllers.
func (p *Host) Talks() []cluster.Talk {
	return []cluster.Talk{{About: "probes", Unknown: "the controller knows no probes between hosts: update it; until " +
		"then this host probes alone", Wanted: p.wanted, Hold: p.hold}}
}

type stream = controllerv1connect.HostServiceFollowProbesClientStream

// hold has one conversation about probes.
func (p *Host) hold(ctx context.Context, to *connect.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := controllerv1connect.NewHostServiceClient(to).FollowProbes(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	if err := cluster.SendFirst(stream, p.begin()); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer cancel()
		for {
			m, err := stream.Receive()
			if err != nil {
				return err
			}
			p.heard(m)
		}
	})
	g.Go(func() error { defer cancel(); return p.saysTo(gctx, stream) })
	return g.Wait()
}

// saysTo tells a controller what there is to say, until ctx ends.
func (p *Host) saysTo(ctx context.Context, to stream) error {
	for {
		select {
		case <-p.fabric.Changed():
		case <-ctx.Done():
			return ctx.Err()
		}
		if m := p.say(); m != nil {
			if err := to.Send(m); err != nil {
				return err
			}
		}
		pause := time.NewTimer(sayEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}
