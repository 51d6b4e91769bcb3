package export

import (
	"errors"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

// export sends records, or counts them as lost.
func (s *session) export(now meter.Instant, records []flow.Record) {
	s.sync()
	if s.status.State == Sending && (s.fresh || s.manySince()) {
		s.announce(now)
	}
	for i := range records {
		l, r, ends := s.shape.of(&records[i], &s.x.ports)
		if l == nil {
			s.status.Unshaped++
			continue
		}
		loss := Loss{1, r.Delta.Packets, r.Delta.Bytes}
		if both := r.Reverse; both != nil && l.biflow != (ipfix.Place{}) {
			loss.Add(Loss{0, both.Delta.Packets, both.Delta.Bytes})
		}
		rec := s.record(l.t, now)
		if rec == nil {
			s.status.Lost.Add(loss)
			continue
		}
		l.fill(rec, r, &s.x.ports, ends)
		s.underWay.Add(loss)
	}
	s.flush(now)
	s.push(now)
	s.listen(now)
}

// record reserves space for a record in a message; nil if nothing can be sent to the collector.
func (s *session) record(t *ipfix.Template, now meter.Instant) []byte {
	for range 2 {
		if s.status.State != Sending && s.stream == nil {
			return nil
		}
		if rec := s.b.Record(t); rec != nil {
			return rec
		}
		s.flush(now)
		if s.manySince() {
			s.announce(now)
		}
	}
	return nil
}

// manySince reports whether so many messages were sent since the templates that the templates must be sent again (S70).
func (s *session) manySince() bool {
	n := s.x.c.TemplateMessages
	return n > 0 && s.messages >= n && s.stream == nil // over TCP what was sent has arrived
}

// flush finishes the present message and adds it to the burst. It sends the burst before that gets too large.
func (s *session) flush(now meter.Instant) {
	if s.b == nil {
		return
	}
	sequence, count := s.b.Sequence(), s.b.Records()
	message := s.b.Message(now.Wall)
	if message == nil {
		return
	}
	m := sent{sequence: sequence, loss: s.underWay}
	s.underWay = Loss{}
	if s.stream != nil {
		if !s.stream.add(message, count, m.loss) {
			s.status.Lost.Add(m.loss)
		}
		return
	}
	if before := s.status.State; s.burst.Full(len(message)) {
		s.push(now)
		if s.listen(now); s.status.State != before {
			s.status.Lost.Add(m.loss)
			return
		}
	}
	s.burst.Add(message)
	s.waiting = append(s.waiting, m)
	s.messages++
}

// push sends the burst. Messages that can't be sent count as lost.
func (s *session) push(now meter.Instant) {
	if s.burst.Len() == 0 {
		return
	}
	n, err := s.socket.sender.Send(&s.burst, stall)
	for i, m := range s.waiting {
		if i >= n {
			s.status.Lost.Add(m.loss)
			continue
		}
		s.status.Messages++
		s.status.Octets += uint64(len(s.burst.Datagram(i)))
		s.status.Records += m.loss.Records
		if len(s.recent) == remembered {
			s.recent = append(s.recent[:0], s.recent[remembered/2:]...)
		}
		m.behind = s.burst.Behind(i)
		s.recent = append(s.recent, m)
	}
	s.waiting = s.waiting[:0]
	s.burst.Reset()
	if err != nil {
		s.fault(err)
		s.enter(Away, now)
	}
}

// shorten limits messages to the MTU that the kernel has learned for the path. Messages that wait are sent as they are:
// the kernel divides them.
func (s *session) shorten() {
	if s.b.Len() > 0 {
		return // messages are shortened at the next refusal, or when the session opens again
	}
	if b, err := ipfix.NewBuilder(s.x.c.Domain, s.b.Sequence(), s.bound(s.socket)); err == nil {
		s.b, s.fresh = b, true // the dropped message may have contained the templates
	}
}

// announce sends the templates, and the options if the shape has them.
func (s *session) announce(now meter.Instant) {
	s.flush(now)
	s.fresh, s.announced = false, now.Up
	for _, t := range s.templates() {
		if t.Options() {
			s.b.EndSet() // pmacct reads one options template per set
		}
		if err := s.add(now, func() error { return s.b.Template(t) }); err != nil {
			s.fault(err)
		}
	}
	s.flush(now)
	s.push(now)
	if s.shape.options() && s.status.State == Sending {
		s.untold = changed(nil, s.x.state.Points)
		s.sendOptions(now)
	}
	s.messages = 0
}

// templates are the templates of flows, and of options if the shape has them.
func (s *session) templates() []*ipfix.Template {
	all := s.shape.templates()
	if s.shape.options() {
		all = append(all[:len(all):len(all)], s.x.options...)
	}
	return all
}

// sendOptions sends the options, and the next few of the ports' names. The options count everything that was sent
// before.
func (s *session) sendOptions(now meter.Instant) {
	o := optionsOf{templates: s.x.options, add: func(t *ipfix.Template, rec []byte) error {
		return s.add(now, func() error { return s.b.Append(t, rec) })
	}}
	o.write(s, &s.x.state)
	n := min(namesAtOnce, len(s.untold))
	for _, slot := range s.untold[:n] {
		if p, ok := s.x.state.Points[slot]; ok {
			o.name(p)
		}
	}
	s.untold = s.untold[n:]
	if o.err != nil {
		s.fault(o.err)
	}
	s.flush(now)
	s.push(now)
}

// add adds to the present message, or to the next.
func (s *session) add(now meter.Instant, try func() error) error {
	err := try()
	if errors.Is(err, ipfix.ErrFull) {
		s.flush(now)
		err = try()
	}
	return err
}
