package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// session is one conversation. One goroutine listens, one takes in, one activates, one reports, one speaks.
type session struct {
	*Client
	ctx      context.Context
	rpc      controllerv1connect.HostServiceClient
	stream   controllerv1connect.HostServiceFollowSliceClientStream
	talking  *talking
	received *received
	reported *reported
	changes  bool // the controller takes what is another instead of all
	// renewsOnly: the controller does nothing but renew the host's certificate.
	renewsOnly bool
	inbox      *inbox
	// next holds the newest version that is not active yet: one that is superseded before is never activated.
	next   chan ready
	claims claims
	due    chan *controllerv1.RenewCertificate // holds one
	anew   atomic.Uint64                       // the number of the newest report_anew that is not answered; 0 for none
	say    chan *controllerv1.FollowSliceRequest
	// answers to calls come after all else that is to be said.
	answers chan *controllerv1.HostAnswer
	calls   *calls
	// prepare holds the newest version that the host is to make ready.
	prepare chan preparing
}

// listen hears what the controller says, beginning with first, until there is no more. What it says is taken in apart:
// the host is there also while it is busy with that.
func (s *session) listen(first *controllerv1.FollowSliceResponse) error {
	s.inbox.end(s.hear(first))
	return nil // what was said before the end is taken in first
}

func (s *session) hear(first *controllerv1.FollowSliceResponse) error {
	for m := first; ; {
		if err := s.answerAtOnce(m); err != nil {
			return err
		}
		if err := s.inbox.put(s.ctx, m); err != nil {
			return err
		}
		var err error
		if m, err = s.stream.Receive(); err != nil {
			return err
		}
	}
}

// answerAtOnce answers what asks whether the host is there, and what its clock shows.
func (s *session) answerAtOnce(m *controllerv1.FollowSliceResponse) error {
	if n := m.GetPing(); n != 0 {
		if err := s.send(&controllerv1.FollowSliceRequest{Pong: n}); err != nil {
			return err
		}
	}
	return s.tellClock(m.GetClock())
}

// take takes in one message.
func (s *session) take(m *controllerv1.FollowSliceResponse) error {
	if list := m.GetControllers(); len(list) > 0 {
		if err := s.Membership.KeepControllers(list); err != nil {
			s.Log.Error("remember where the controllers are", "err", err)
		}
	}
	if to := m.GetMoveTo(); to != "" {
		return moved{to}
	}
	if q := m.GetRenew(); q != nil {
		select {
		case s.due <- q:
		default:
		}
	}
	if n := m.GetReportAnew(); n != 0 {
		s.anew.Store(n)
		s.Changed()
	}
	if q := m.GetCall(); q != nil {
		if err := s.calls.take(q); err != nil {
			return err
		}
	}
	err := s.takePorts(m)
	if err == nil && m.GetMoves() != nil && s.Moves != nil {
		err = s.Moves.Moves(s.ctx, m.GetMoves())
	}
	if err == nil && m.GetFlapping() != nil && s.Moves != nil {
		err = s.Moves.Flapping(s.ctx, m.GetFlapping())
	}
	if err != nil {
		return err
	}
	if err := s.received.older(cmp.Or(m.GetCurrent(), m.GetUpdate().GetVersion())); err != nil {
		return err
	}
	defer s.takePrepare(m.GetPrepare()) // which is made of what the message makes of the content
	switch u := m.GetUpdate(); {
	case u != nil:
		err = s.received.update(u)
	case m.GetCurrent() != nil:
		err = s.received.current(m.GetCurrent())
	default:
		return nil
	}
	if err != nil {
		s.Log.Warn("the whole definition is asked for", "why", err)
		return s.send(&controllerv1.FollowSliceRequest{
			Acknowledgement: &controllerv1.SliceAcknowledgement{Resend: true}})
	}
	select {
	case <-s.next: // superseded
	default:
	}
	next := s.received.ready()
	next.Forced, next.NotBefore, next.Together = m.GetForced(), m.GetNotBefore(), m.GetTogetherId()
	s.next <- next
	return nil
}

// activate activates the newest version, one after the other, until the host has another certificate: the next
// conversation goes on then.
func (s *session) activate() error {
	var next ready
	var again <-chan time.Time // when a version is tried once more
	var said []string          // why it was not active
	for {
		select {
		case next = <-s.next:
			again, said = nil, nil
		case <-again:
			again = nil
		case q := <-s.due:
			err := s.renew(q)
			if err == nil {
				close(s.talking.renewed)
				return nil
			}
			if s.renewsOnly {
				return err
			}
			continue
		case <-s.ctx.Done():
			return nil
		}
		problems, err := s.activateOne(next.Slice)
		var passes *MayPass
		if errors.As(err, &passes) {
			problems, again = []string{passes.Error()}, time.After(jitter(tryEvery, random))
			if slices.Equal(problems, said) {
				continue
			}
		} else if err != nil {
			return err
		}
		said = problems
		if len(problems) > 0 {
			s.Log.Error("the controller's definition is not active; the one before is", "revision", next.Revision,
				"why", problems)
		}
		a := &controllerv1.SliceAcknowledgement{Version: next.version(), Problems: problems}
		if a.ActiveAt, err = s.activeAt(next.Slice, problems); err != nil {
			return err
		}
		if s.Kept != nil && len(problems) == 0 {
			if a.Warnings, err = s.Kept(s.ctx); err != nil {
				return err
			}
		}
		if err := s.send(&controllerv1.FollowSliceRequest{Acknowledgement: a}); err != nil {
			return err
		}
		s.Changed() // the warnings
		s.Settle()
	}
}

// report reports what the host has, when it is another.
func (s *session) report() error {
	for {
		select {
		case <-s.changed:
		case <-s.ctx.Done():
			return nil
		}
		anew, ended := s.anew.Swap(0), s.ended.take() // before the host is looked at
		now, err := s.Host.Report(s.ctx)
		if err != nil {
			return err
		}
		change, err := s.reported.change(now)
		if err != nil {
			return err
		}
		if change != nil || anew != 0 || len(ended) > 0 {
			m := &controllerv1.FollowSliceRequest{Change: change, Reported: anew, Connected: ended}
			if !s.changes {
				m.Change, m.Report = nil, now
			}
			if err := s.send(m); err != nil {
				return err
			}
		}
		if !sleep(s.ctx, reportEvery) {
			return nil
		}
	}
}

// send hands a message to the goroutine that speaks.
func (s *session) send(m *controllerv1.FollowSliceRequest) error {
	select {
	case s.say <- m:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// answer hands a part of an answer to the goroutine that speaks.
func (s *session) answer(a *controllerv1.HostAnswer) error {
	select {
	case s.answers <- a:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *session) speak() error {
	for {
		var m *controllerv1.FollowSliceRequest
		select {
		case m = <-s.say:
		default:
			select {
			case m = <-s.say:
			case a := <-s.answers:
				m = &controllerv1.FollowSliceRequest{Answer: a}
			case <-s.ctx.Done():
				return nil
			}
		}
		if m.Clock != nil {
			now, err := s.Together.Clock()
			if err != nil {
				return err
			}
			m.Clock.Sent = now
		}
		if err := s.stream.Send(m); err != nil {
			return err
		}
	}
}
