package cluster

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"
	"golang.org/x/sync/errgroup"
)

// besidePause is after what time another conversation beside the one about the definition begins, where one has ended
// alone.
const besidePause = time.Second

// Talk is a conversation of a part of the host with the controllers, beside the one about the definition. Its functions
// are called from any goroutine.
type Talk struct {
	// About is what it is about. Unknown tells the operator what the host does with a controller that has no such
	// conversation, since it is of an earlier version.
	About, Unknown string
	// Wanted returns once the host has something to talk about; false when ctx has ended.
	Wanted func(ctx context.Context) bool
	// Hold has one conversation with the controller that to calls, until it ends or ctx does.
	Hold func(ctx context.Context, to *connect.Client) error
}

// beginTalks begins the conversations of the host's parts.
func (s *session) beginTalks(g *errgroup.Group, to *connect.Client) {
	for _, t := range s.Talks {
		g.Go(func() error {
			return s.beside(t.About, t.Unknown, t.Wanted, func() error { return t.Hold(s.ctx, to) })
		})
	}
}

// beside keeps a conversation about something beside the one about the definition, while the host wants it. It never
// ends that: a controller of an earlier version has none, of which unknown tells the operator.
func (s *session) beside(about, unknown string, wanted func(context.Context) bool, talk func() error) error {
	for wanted(s.ctx) {
		err := talk()
		switch {
		case s.ctx.Err() != nil:
			return nil
		case connect.CodeOf(err) == connect.CodeUnimplemented:
			s.Log.Warn(unknown)
			<-s.ctx.Done()
			return nil
		}
		s.Log.Warn("the conversation about "+about+" has ended, and begins anew", "err", err)
		if !sleep(s.ctx, jitter(2*besidePause, random)) {
			return nil
		}
	}
	return nil
}

// SendFirst sends the first message of a conversation. Where that fails the error is why the controller ended it, if it
// says so.
func SendFirst[Q, A any](stream interface {
	Send(*Q) error
	Receive() (*A, error)
}, m *Q) error {
	err := stream.Send(m)
	if err == nil {
		return nil
	}
	if _, why := stream.Receive(); why != nil {
		return why
	}
	return err
}
