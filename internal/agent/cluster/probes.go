package cluster

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// Probes is what the host has and knows of probes between hosts. Its methods are called from any goroutine.
type Probes interface {
	// Wanted returns once the host has uplinks that take part; false when ctx has ended.
	Wanted(ctx context.Context) bool
	// Begin is the first message of a conversation. Changed has a value when there may be something to say; Say is
	// what, nil for nothing.
	Begin() *controllerv1.FollowProbesRequest
	Changed() <-chan struct{}
	Say() *controllerv1.FollowProbesRequest
	// Heard takes in what the controller says.
	Heard(*controllerv1.FollowProbesResponse)
}

// probesEvery is the least time between two reports of probes.
const probesEvery = time.Second

// followProbes keeps a conversation about probes.
func (s *session) followProbes() error {
	if s.Probes == nil {
		return nil
	}
	return s.beside("probes", "the controller knows no probes between hosts: update it; until then this host probes "+
		"alone", s.Probes.Wanted, s.talkOfProbes)
}

type probeStream = controllerv1connect.HostServiceFollowProbesClientStream

// talkOfProbes has one conversation.
func (s *session) talkOfProbes() error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stream, err := s.rpc.FollowProbes(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	if err := sendFirst(stream, s.Probes.Begin()); err != nil {
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
			s.Probes.Heard(m)
		}
	})
	g.Go(func() error { defer cancel(); return s.sayProbes(gctx, stream) })
	return g.Wait()
}

func (s *session) sayProbes(ctx context.Context, stream probeStream) error {
	for {
		select {
		case <-s.Probes.Changed():
		case <-ctx.Done():
			return ctx.Err()
		}
		if m := s.Probes.Say(); m != nil {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		if !sleep(ctx, probesEvery) {
			return ctx.Err()
		}
	}
}
