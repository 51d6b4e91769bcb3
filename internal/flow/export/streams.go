package export

import (
	"context"
	"errors"
	"fmt"

	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

// openStream begins the stream to a collector over TCP or TLS.
func (s *session) openStream(ctx context.Context) (err error) {
	if s.b, err = ipfix.NewBuilder(s.x.c.Domain, 0, streamMessage); err != nil {
		return err
	}
	templates, err := s.templateMessages()
	if err != nil {
		return err
	}
	s.hold = 0 // the stream itself stores what it can't send yet
	s.stream = newStream(ctx, s.x.c, s.status.Collector, s.names, templates)
	return nil
}

// templateMessages are the first messages of every session. They do not change while the exporter exists, so that no
// template is ever withdrawn.
func (s *session) templateMessages() (messages []parcel, err error) {
	b, err := ipfix.NewBuilder(s.x.c.Domain, 0, streamMessage)
	if err != nil {
		return nil, err
	}
	finish := func() {
		if m := b.Message(s.status.Since); m != nil {
			messages = append(messages, parcel{bytes: append([]byte(nil), m...)})
		}
	}
	for _, t := range s.templates() {
		if t.Options() {
			b.EndSet() // as over UDP
		}
		err := b.Template(t)
		if errors.Is(err, ipfix.ErrFull) {
			finish()
			err = b.Template(t)
		}
		if err != nil {
			return nil, fmt.Errorf("template %d: %w", t.ID(), err)
		}
	}
	finish()
	return messages, nil
}

// sync takes over the state of the stream.
func (s *session) sync() {
	if s.stream != nil {
		s.stream.report(&s.status)
	}
}

// tickStream does the work that goes by time: it sends the options at the beginning of a session and again, and
// checks whether a session should begin anew.
func (s *session) tickStream(now meter.Instant) {
	s.sync()
	if s.stream.follow(); s.status.State != Sending || !s.shape.options() {
		return
	}
	if n := s.stream.sessionsBegun(); n != s.sessions {
		s.sessions, s.fresh, s.untold = n, true, changed(nil, s.x.state.Points)
	}
	switch {
	case s.fresh || now.Up-s.announced >= s.x.c.TemplateEvery:
		s.fresh, s.announced = false, now.Up
		s.sendOptions(now)
	case len(s.untold) > 0:
		s.sendOptions(now)
	}
}
