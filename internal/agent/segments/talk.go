package segments

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"
	"golang.org/x/sync/errgroup"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/agent/cluster"
)

// sayEvery is the least time between two reports of segments: what changes meanwhile goes together.
const sayEvery = 20 * time.Millisecond

// Talk is the conversation about overlay segments with the controllers.
func (k *Keeper) Talk() cluster.Talk {
	return cluster.Talk{About: "overlay segments", Unknown: "the controller knows no overlay segments: update it; " +
		"until then this host goes on by what it knows of other hosts", Wanted: k.Wanted, Hold: k.hold}
}

// hold has one conversation.
func (k *Keeper) hold(ctx context.Context, to *connect.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := controllerv1connect.NewHostServiceClient(to).FollowSegments(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	defer k.End()
	if err := cluster.SendFirst(stream, k.Begin()); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	answers := make(chan *controllerv1.FollowSegmentsRequest)
	g.Go(func() error { defer cancel(); return k.hears(gctx, stream, answers) })
	g.Go(func() error { defer cancel(); return k.says(gctx, stream, answers) })
	return g.Wait()
}

type stream = controllerv1connect.HostServiceFollowSegmentsClientStream

// hears takes in what the controller says, until ctx ends.
func (k *Keeper) hears(ctx context.Context, from stream, answers chan<- *controllerv1.FollowSegmentsRequest) error {
	for {
		m, err := from.Receive()
		if err != nil {
			return err
		}
		answer, err := k.Heard(m)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		select {
		case answers <- answer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// says tells the controller what there is to say, and what it is answered, until ctx ends.
func (k *Keeper) says(ctx context.Context, to stream, answers <-chan *controllerv1.FollowSegmentsRequest) error {
	changed := k.Changed()
	var again <-chan time.Time // while what changes is gathered
	for {
		var m *controllerv1.FollowSegmentsRequest
		select {
		case m = <-answers:
		case <-again:
			changed, again = k.Changed(), nil
		case <-changed:
			m = k.Say()
			changed, again = nil, time.After(sayEvery)
		case <-ctx.Done():
			return ctx.Err()
		}
		if m == nil {
			continue
		}
		if err := to.Send(m); err != nil {
			return err
		}
	}
}
