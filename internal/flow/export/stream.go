package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// stream sends messages to a collector over TCP, or TLS over TCP. Adding a message never waits: the message goes to the
// kernel at once if that accepts it, else it waits in a bounded queue, also while there is no connection. A message is
// stored until the collector's host has confirmed all of it. When the connection ends, the next one sends again what
// was not confirmed. Each connection is a session of its own: templates come first, and its sequence begins at 0 (RFC
// 7011 §10.4).
type stream struct {
	to        Collector
	tls       TLS
	source    netip.Addr
	names     *resolver
	log       *slog.Logger
	pace      pace
	dial      func(context.Context, netip.AddrPort, netip.Addr, time.Duration) (*connection, error)
	templates []parcel // the first messages of every session
	cancel    context.CancelFunc
	done      chan struct{} // closed when all its goroutines have ended

	mu     sync.Mutex
	queue  []parcel // that no session has taken yet, oldest first
	flight []parcel // that the session has taken, but the collector's host has not confirmed
	tail   []tail   // that it has confirmed
	bytes  int      // of queue and flight
	line   *line    // the session; nil while there is none
	// finishing: no session begins after this one
	finishing bool
	begun     int    // sessions
	state     Status // of this stream; its Lost is what was lost since the last report
}

// parcel is a message and what it contains.
type parcel struct {
	bytes   []byte
	records uint32 // data records: what it adds to the sequence number
	loss    Loss   // of flow records; a message without any is of options or templates, and is not sent again
	end     uint64 // its end, as an offset in the bytes of its session
}

// tail is a message that was confirmed.
type tail struct {
	end  uint64
	loss Loss
}

// pace is the timing of a stream.
type pace struct {
	connect time.Duration // how long connecting may take, with the TLS handshake
	dead    time.Duration // how long a collector's host may confirm nothing
	first   time.Duration // how soon a new connection is tried; then at growing intervals
	last    time.Duration
	// how long a TLS session must last before anything is sent in it, if the collector asks for a certificate
	proving time.Duration
	finish  time.Duration // how long finish may wait for what is under way
}

func usualPace() pace {
	return pace{connect: 5 * time.Second, dead: 30 * time.Second, first: time.Second, last: 30 * time.Second,
		proving: time.Second, finish: time.Second}
}

// Bounds of a stream.
const (
	// streamMessage is the maximal length of a message: one is one record of TLS, and far below the maximum of RFC
	// 7011 (65,535), for which not every collector has a buffer.
	streamMessage = 16_000
	// mostQueued limits the memory of messages until they are confirmed: records of 20,000 to 40,000 flows.
	mostQueued = 4 << 20
	// unread is how many bytes a collector's host may have confirmed that the collector has not read: the default size
	// of a socket's buffer in Linux.
	unread = 6 << 20
)

// newStream begins to connect to a collector.
func newStream(ctx context.Context, x Config, to Collector, names *resolver, templates []parcel) *stream {
	s := &stream{to: to, tls: x.TLS[to], source: x.Source, names: names, pace: x.pace, dial: x.dial,
		templates: templates, done: make(chan struct{}),
		log: x.Log.With("collector", to.Address, "port", to.Port, "transport", to.Transport)}
	s.state = Status{State: Resolving, Since: time.Now()}
	ctx, s.cancel = context.WithCancel(ctx)
	go s.run(ctx)
	return s
}

// add queues a message; false if the queue is full. b is copied.
func (s *stream) add(b []byte, records int, loss Loss) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if s.bytes+len(b) > mostQueued {
		return false
	}
	s.queue = append(s.queue, parcel{bytes: append([]byte(nil), b...), records: uint32(records), loss: loss})
	s.bytes += len(b)
	s.advance()
	return true
}

// advance hands the session as much as it accepts; s.mu is held.
func (s *stream) advance() {
	l := s.line
	if l == nil {
		return
	}
	for len(s.queue) > 0 {
		if !l.accepts() {
			return
		}
		p := s.queue[0]
		s.queue[0] = parcel{}
		s.queue = s.queue[1:]
		s.flight = append(s.flight, l.send(p))
	}
	s.queue = nil // its array has no free space in front
}

// settle records what the collector's host has confirmed; s.mu is held.
func (s *stream) settle() {
	if s.line == nil {
		return
	}
	_, confirmed, _ := s.line.wire.progress()
	n := 0
	for ; n < len(s.flight) && s.flight[n].end <= confirmed; n++ {
		p := &s.flight[n]
		s.bytes -= len(p.bytes)
		s.state.Messages++
		s.state.Octets += uint64(len(p.bytes))
		s.state.Records += p.loss.Records
		s.tail = append(s.tail, tail{p.end, p.loss})
	}
	s.flight = s.flight[n:]
	old := 0
	for ; old < len(s.tail) && s.tail[old].end+unread < confirmed; old++ {
	}
	s.tail = s.tail[old:]
}

// run connects again and again until ctx is done.
func (s *stream) run(ctx context.Context) {
	defer close(s.done)
	wait := s.pace.first
	for ctx.Err() == nil {
		began := time.Now()
		address, err := s.names.address(netip.Addr{}, s.source.IsValid())
		switch {
		case address.IsValid():
			s.enter(Connecting, nil)
			err = s.session(ctx, netip.AddrPortFrom(address, s.to.Port))
			if time.Since(began) >= steady {
				wait = s.pace.first
			}
		default:
			s.enter(Resolving, lookupFault(err))
			wait = s.pace.first
		}
		if errors.Is(err, errLeaving) {
			continue
		}
		select {
		case <-ctx.Done():
		// hosts that lost their collector together should not come back together
		case <-time.After(wait - wait/4 + rand.N(wait/2)):
		}
		wait = min(2*wait, s.pace.last)
	}
}

// session connects, and follows the session until it ends.
func (s *stream) session(ctx context.Context, remote netip.AddrPort) error {
	l, err := s.connect(ctx, remote)
	if err != nil {
		if ctx.Err() == nil {
			s.enter(Away, err)
		}
		return err
	}
	release := context.AfterFunc(ctx, l.wire.abort)
	defer release()
	go l.flush(s)
	proved := time.AfterFunc(l.proving(s.pace), func() { s.begin(l) })
	err = l.read()
	proved.Stop()
	return s.end(l, err)
}

// begin makes l the session: templates first, then what waits.
func (s *stream) begin(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over {
		return
	}
	s.line, s.tail = l, nil
	s.begun++
	s.state.Messages, s.state.Octets = 0, 0
	for _, p := range s.templates {
		s.flight = append(s.flight, l.send(p))
		s.bytes += len(p.bytes)
	}
	s.state.Local, s.state.Remote = l.wire.LocalAddr().String(), l.wire.RemoteAddr().String()
	s.state.Why = ""
	s.enterLocked(Sending, nil)
	s.log.Info("flow collector is sent records", "shape", s.to.Shape, "from", s.state.Local)
	s.advance()
}

// errLeaving is that the session was ended on this side, to begin another.
var errLeaving = errors.New("the session begins anew")

// end returns to the queue what the collector's host has not confirmed, and counts what may or may not have been read.
func (s *stream) end(l *line, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.over = true
	close(l.ended)
	if s.line == l {
		s.settle()
		s.line = nil
		s.takeBack(l.wire.ended() || l.leaving)
	}
	l.close()
	if s.finishing {
		s.cancel() // no other session begins
	}
	if l.leaving {
		return errLeaving
	}
	s.enterLocked(Away, why)
	return why
}

// takeBack queues what was not confirmed to be sent again. sure: the collector read exactly what was confirmed; s.mu is
// held.
func (s *stream) takeBack(sure bool) {
	again := make([]parcel, 0, len(s.flight)+len(s.queue))
	for _, p := range s.flight {
		if p.loss.Records == 0 { // the next session has its own
			s.bytes -= len(p.bytes)
			continue
		}
		if !sure {
			s.state.Unsure.Add(p.loss) // it may have arrived, but not its confirmation
		}
		again = append(again, p)
	}
	if !sure {
		for _, t := range s.tail { // the collector may have ended before it read them
			s.state.Unsure.Add(t.loss)
		}
	}
	s.queue, s.flight, s.tail = append(again, s.queue...), nil, nil
}

// enter changes the state.
func (s *stream) enter(state State, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterLocked(state, why)
}

// enterLocked is enter for callers that hold the lock. A collector that was away stays so until something is sent to
// it.
func (s *stream) enterLocked(state State, why error) {
	if why != nil {
		if s.state.Why != why.Error() {
			s.log.Warn("flow collector", "error", why)
		}
		s.state.Why = why.Error()
	}
	if s.state.State == state || state == Connecting && s.state.State == Away {
		return
	}
	s.state.State, s.state.Since = state, time.Now()
}

// report copies the state of the stream, and hands over what was lost.
func (s *stream) report(to *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.advance()
	lost := to.Lost
	lost.Add(s.state.Lost)
	s.state.Lost = Loss{}
	collector, unshaped, counted := to.Collector, to.Unshaped, to.Counted
	*to = s.state
	to.Collector, to.Unshaped, to.Lost, to.Counted = collector, unshaped, lost, counted
	handed := uint64(0)
	if s.line != nil {
		handed = s.line.wire.handed()
	}
	for i := range s.flight {
		to.Waiting.Add(s.flight[i].loss)
		if s.flight[i].end > handed {
			to.Held.Add(s.flight[i].loss)
		}
	}
	for i := range s.queue {
		to.Waiting.Add(s.queue[i].loss)
		to.Held.Add(s.queue[i].loss)
	}
}

// renew ends the session when all its messages are confirmed, and begins another.
func (s *stream) renew(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == nil {
		return
	}
	if !s.line.leaving {
		s.log.Info("the session with a flow collector begins anew", "because", why)
	}
	s.line.leaving = true
	s.line.closeWhen(len(s.flight) == 0, s.pace.finish)
}

// finish ends the stream. Messages under way have a moment to arrive; the rest counts as lost.
func (s *stream) finish() {
	for end := time.Now().Add(s.pace.finish); ; time.Sleep(time.Millisecond) { // host acknowledgements are polled
		s.mu.Lock()
		s.settle()
		s.advance()
		idle := s.line == nil || len(s.queue)+len(s.flight) == 0
		s.mu.Unlock()
		if idle || time.Now().After(end) {
			break
		}
	}
	s.mu.Lock()
	l := s.line
	s.finishing = true
	if l != nil {
		l.leaving = true // it gets no more messages
		s.settle()
		for _, p := range s.flight {
			s.state.Lost.Add(p.loss)
			s.state.Unsure.Add(p.loss)
		}
		l.closeWhen(len(s.flight) == 0, s.pace.finish)
	}
	for _, p := range s.queue {
		s.state.Lost.Add(p.loss)
	}
	s.queue, s.flight, s.bytes, s.line = nil, nil, 0, nil
	parted := l != nil && l.parted
	s.mu.Unlock()
	if parted {
		<-l.ended
	}
	s.cancel()
	<-s.done
}

// lookupFault says that a name has no address; nil while that is not known.
func lookupFault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("look the name up: %w", err)
}

// follow begins a new session when the collector's name has another address, or the TLS files have changed and can be
// used.
func (s *stream) follow() {
	s.mu.Lock()
	l := s.line
	s.mu.Unlock()
	if l == nil {
		return
	}
	remote := l.wire.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if now, err := s.names.address(remote, s.source.IsValid()); err == nil && now.IsValid() &&
		now != remote.WithZone(now.Zone()) {
		s.renew("the name has another address")
	}
	if s.to.Transport != OverTLS || s.tls.stamped() == l.identity {
		return
	}
	if _, err := s.tls.config(s.to.Address, time.Now()); err != nil {
		s.enter(Sending, fmt.Errorf("the files of TLS have changed and can't be used, so that the session goes on "+
			"with what they were: %w", err))
		return
	}
	s.renew("the files of TLS have changed")
}

// sessionsBegun is the number of sessions so far.
func (s *stream) sessionsBegun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}
