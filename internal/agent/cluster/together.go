package cluster

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/state"
)

// Together is the agent as far as it makes changes at one instant with other hosts (S101). Its methods are called from
// any goroutine.
type Together interface {
	// Prepare makes a version ready, all but activating it: problems says why it could not be active. It is of
	// the change of that id.
	Prepare(ctx context.Context, id string, next *state.Slice) (problems []string, err error)
	// Clock is what a clock shows that nobody sets, in nanoseconds.
	Clock() (int64, error)
	// ActiveAt is when the version that was activated last became active in the kernel, by that clock.
	ActiveAt(ctx context.Context) (int64, error)
}

// preparing is a version that the host is to make ready.
type preparing struct {
	id string
	ready
	err error // why it can't
}

// tellClock says at once what the clock shows; nil asks nothing.
func (s *session) tellClock(q *controllerv1.ClockQuestion) error {
	if q == nil || s.Together == nil {
		return nil
	}
	now, err := s.Together.Clock()
	if err != nil {
		return err
	}
	return s.send(&controllerv1.FollowSliceRequest{Clock: &controllerv1.ClockAnswer{Asked: q.GetSent(), Received: now}})
}

// takePrepare takes in what the host is to make ready; nil for nothing.
func (s *session) takePrepare(q *controllerv1.PrepareChange) {
	if q == nil || s.Together == nil {
		return
	}
	p := preparing{id: q.GetId()}
	next := *s.received
	if p.err = next.update(q.GetUpdate()); p.err == nil {
		p.ready = next.ready()
	}
	select {
	case <-s.prepare: // superseded
	default:
	}
	s.prepare <- p
}

// prepares makes versions ready, one after the other.
func (s *session) prepares() error {
	for {
		var p preparing
		select {
		case p = <-s.prepare:
		case <-s.ctx.Done():
			return nil
		}
		problems, err := []string(nil), p.err
		if err == nil {
			problems, err = s.Together.Prepare(s.ctx, p.id, p.Slice)
		}
		if s.ctx.Err() != nil {
			return nil
		}
		if err != nil {
			problems = []string{err.Error()}
		}
		if err := s.send(&controllerv1.FollowSliceRequest{Prepared: &controllerv1.PreparedChange{Id: p.id,
			Problems: problems}}); err != nil {
			return err
		}
	}
}

// Prepared says that the host can't activate what it has prepared any more, or can again. It does not block.
func (c *Client) Prepared(id string, problems []string) {
	s := c.session.Load()
	if s == nil {
		return
	}
	go func() { // ends with the conversation
		_ = s.send(&controllerv1.FollowSliceRequest{Prepared: &controllerv1.PreparedChange{Id: id, Problems: problems}})
	}()
}

// activateOne has the host activate a version. One that is decided and waits for its instant becomes active then also
// where the conversation ends meanwhile: the other hosts change, too.
func (s *session) activateOne(next *state.Slice) ([]string, error) {
	if next.NotBefore == 0 {
		return s.Host.Take(s.ctx, next)
	}
	type taken struct {
		problems []string
		err      error
	}
	done := make(chan taken, 1)
	go func() {
		problems, err := s.Host.Take(context.WithoutCancel(s.ctx), next)
		if err == nil {
			s.madeTogether(next, problems)
		}
		done <- taken{problems, err}
	}()
	select {
	case t := <-done:
		return t.problems, t.err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// madeTogether keeps when the host changed that had to wait for an instant: it says so in each conversation from now
// on, as the one in which it heard of it may have ended before.
func (s *session) madeTogether(next *state.Slice, problems []string) {
	if next.Together == "" || s.Together == nil || len(problems) > 0 {
		return
	}
	at, err := s.Together.ActiveAt(context.WithoutCancel(s.ctx))
	if err != nil {
		s.Log.Debug("when the host changed together with others is not known", "err", err)
		return
	}
	s.made.Store(&made{next.Together, max(at, next.NotBefore) - next.NotBefore})
}

// made is the newest change that the host made together with others: which one, and by how much after the instant.
type made struct {
	id  string
	off int64
}

// tellMade completes a first message with that. has is what the host has, with what an agent before this one has noted.
func (c *Client) tellMade(h *controllerv1.HostHello, has *state.Slice) {
	h.TellsTogether = c.Together != nil
	if m := c.made.Load(); m != nil {
		h.TogetherId, h.TogetherOff = m.id, m.off
	} else if has != nil && has.Made != nil {
		h.TogetherId, h.TogetherOff, h.TogetherUnsure = has.Made.ID, has.Made.Off, !has.Made.Known
	}
}

// activeAt is when the kernel began to forward by a version that waited for an instant.
func (s *session) activeAt(next *state.Slice, problems []string) (int64, error) {
	if next.NotBefore == 0 || s.Together == nil || len(problems) > 0 {
		return 0, nil
	}
	at, err := s.Together.ActiveAt(s.ctx)
	return max(at, next.NotBefore), err // where nothing was to be changed in the kernel, it changed then
}
