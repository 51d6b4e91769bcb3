package cluster

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// Segments is what the host has and knows of overlay segments. Its methods are called from any goroutine.
type Segments interface {
	// Wanted returns once the host has overlay segments; false when ctx has ended.
	Wanted(ctx context.Context) bool
	// Begin is the first message of a conversation: all that the host has, and what it knows already.
	Begin() *controllerv1.FollowSegmentsRequest
	// Changed has a value when there may be something to say; Say is what, nil for nothing.
	Changed() <-chan struct{}
	Say() *controllerv1.FollowSegmentsRequest
	// Heard takes in what the controller says, and is what the host answers; nil for nothing.
	Heard(*controllerv1.FollowSegmentsResponse) (*controllerv1.FollowSegmentsRequest, error)
	// End ends the conversation.
	End()
}

// sayEvery is the least time between two reports of segments: what changes meanwhile goes together.
const sayEvery = 20 * time.Millisecond

// followSegments keeps a conversation about overlay segments.
func (s *session) followSegments() error {
	if s.Segments == nil {
		return nil
	}
	return s.beside("overlay segments", "the controller knows no overlay segments: update it; until then this host "+
		"goes on by what it knows of other hosts", s.Segments.Wanted, s.talkOfSegments)
}

// talkOfSegments has one conversation.
func (s *session) talkOfSegments() error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stream, err := s.rpc.FollowSegments(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	defer s.Segments.End()
	if err := SendFirst(stream, s.Segments.Begin()); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	answers := make(chan *controllerv1.FollowSegmentsRequest)
	g.Go(func() error { defer cancel(); return s.hearOfSegments(gctx, stream, answers) })
	g.Go(func() error { defer cancel(); return s.saySegments(gctx, stream, answers) })
	return g.Wait()
}

type segmentStream = controllerv1connect.HostServiceFollowSegmentsClientStream

func (s *session) hearOfSegments(ctx context.Context, stream segmentStream,
	answers chan<- *controllerv1.FollowSegmentsRequest) error {
	for {
		m, err := stream.Receive()
		if err != nil {
			return err
		}
		answer, err := s.Segments.Heard(m)
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

func (s *session) saySegments(ctx context.Context, stream segmentStream,
	answers <-chan *controllerv1.FollowSegmentsRequest) error {
	changed := s.Segments.Changed()
	var again <-chan time.Time // while what changes is gathered
	for {
		var m *controllerv1.FollowSegmentsRequest
		select {
		case m = <-answers:
		case <-again:
			changed, again = s.Segments.Changed(), nil
		case <-changed:
			m = s.Segments.Say()
			changed, again = nil, time.After(sayEvery)
		case <-ctx.Done():
			return ctx.Err()
		}
		if m == nil {
			continue
		}
		if err := stream.Send(m); err != nil {
			return err
		}
	}
}
