package cluster

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"
)

// besidePause is after what time another conversation beside the one about the definition begins, where one has ended
// alone.
const besidePause = time.Second

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

// sendFirst sends the first message of a conversation. Where that fails the error is why the controller ended it, if it
// says so.
func sendFirst[Q, A any](stream interface {
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
