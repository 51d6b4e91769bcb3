package export

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
	"heddle/internal/flow/udpbatch"
)

// session is the state of one collector.
type session struct {
	x       *Exporter
	process uint32 // exportingProcessId: the position of the collector in the configuration, from 1
	shape   shape
	names   *resolver
	status  Status // changed with the exporter's lock held
	// lostBefore is the loss when losing was called last.
	lostBefore Loss

	stream    *stream // the transport over TCP and TLS; nil over UDP, which uses the fields below
	sessions  int     // number of the stream's session whose collector has the ports' names
	socket    *socket
	b         *ipfix.Builder
	underWay  Loss           // what the present message reports
	burst     udpbatch.Batch // finished messages that were not sent yet; empty when the exporter returns
	waiting   []sent         // the content of the burst's messages
	recent    []sent
	announced time.Duration // when the templates were sent, by meter.Instant.Up
	fresh     bool          // templates must be sent before anything else
	messages  int           // sent since the templates and what goes with them
	since     time.Duration // when the state began, by meter.Instant.Up
	hold      time.Duration // until when records are held back if they can't be sent
	untold    []uint16      // slots of ports whose names must be sent
	probed    bool          // away, and a message was sent to see whether it is refused
}

// sent is a message that may still be refused.
type sent struct {
	sequence uint32
	behind   int // number of messages that left after it in the same piece
	loss     Loss
}

// Times of a session.
const (
	patience = 5 * time.Second  // how long records wait for a collector that is away
	steady   = 10 * time.Second // how long a collector must have been there before, to be waited for
	probing  = 900 * time.Millisecond
	stall    = 100 * time.Millisecond // how long a burst may wait for space in the socket's buffer
	// remembered is for how many messages a refusal can be recognized.
	remembered = 256
)

// open makes the socket to the collector if its address is known and differs from the present one.
func (s *session) open(now meter.Instant) {
	var present netip.Addr
	if s.socket != nil {
		present = s.socket.remote.Addr()
	}
	address, err := s.names.address(present, s.x.c.Source.IsValid())
	if err != nil {
		var resolver *net.DNSError // says so itself
		if !errors.As(err, &resolver) {
			err = fmt.Errorf("look the name up: %w", err)
		}
		s.fault(err)
	}
	if !address.IsValid() || address == present {
		return
	}
	k, err := dial(netip.AddrPortFrom(address, s.status.Collector.Port), s.x.c.Source)
	if err != nil {
		s.fault(err)
		s.enter(Away, now)
		return
	}
	b, err := ipfix.NewBuilder(s.x.c.Domain, 0, s.bound(k))
	if err != nil {
		k.close()
		s.fault(err)
		return
	}
	s.close()
	s.socket, s.b, s.recent, s.fresh, s.probed = k, b, nil, true, false
	s.status.Local, s.status.Remote, s.status.Messages, s.status.Octets = k.local.String(), k.remote.String(), 0, 0
	s.enter(Sending, now)
}

// bound is the maximal length of messages.
func (s *session) bound(k *socket) int {
	const usual = 1500 // more would be too much for collectors that read into buffers of that size
	mtu := s.x.c.MTU
	if mtu == 0 {
		mtu = usual
		if path := k.sender.PathMTU(); path > 0 {
			mtu = min(path, usual)
		}
	}
	headers := 20 + 8
	if k.remote.Addr().Is6() {
		headers = 40 + 8
	}
	return max(ipfix.MinMessage, min(mtu, 65535)-headers)
}

func (s *session) close() {
	if s.stream != nil {
		s.stream.finish()
		s.sync()
	}
	if s.socket != nil {
		s.socket.close()
		s.socket = nil
	}
}

// local is the source address of messages; zero before there is a socket.
func (s *session) local() netip.Addr {
	if s.stream != nil {
		from, _ := netip.ParseAddrPort(s.status.Local)
		return from.Addr().Unmap()
	}
	if s.socket == nil {
		return netip.Addr{}
	}
	return s.socket.local.Addr().Unmap()
}

func (s *session) fault(err error) {
	if s.status.Why != err.Error() {
		s.x.c.Log.Warn("flow collector", "collector", s.status.Collector.Address, "port", s.status.Collector.Port,
			"error", err)
	}
	s.status.Why = err.Error()
}

// enter changes the state. The exporter waits for a collector that was there for some time.
func (s *session) enter(state State, now meter.Instant) {
	if s.status.State == state {
		return
	}
	if state == Away && s.status.State == Sending && now.Up-s.since >= steady {
		s.hold = now.Up + patience
	}
	if state == Sending {
		s.x.c.Log.Info("flow collector is sent records", "collector", s.status.Collector.Address, "port",
			s.status.Collector.Port,
			"shape", s.status.Collector.Shape, "from", s.status.Local)
	}
	s.status.State, s.status.Since, s.since = state, now.Wall, now.Up
}

// listen checks whether messages were refused. From the first refused one on, all messages count as lost: those sent
// until the refusal came back met the same closed port.
func (s *session) listen(now meter.Instant) {
	if s.socket == nil {
		return
	}
	for r, ok := s.socket.refused(); ok; r, ok = s.socket.refused() {
		tooLong := errors.Is(r.err, unix.EMSGSIZE)
		s.lose(r, tooLong)
		if tooLong {
			s.shorten()
			continue
		}
		s.fault(fmt.Errorf("a message was refused: %w", r.err))
		s.probed = false
		s.enter(Away, now)
	}
}

// lose counts the messages that a refusal reports as lost. If a message was too long, this includes those that left in
// the same piece, which are as long.
func (s *session) lose(r refusal, tooLong bool) {
	piece := 0
	for i := range s.recent {
		m := &s.recent[i]
		behind := int32(m.sequence - r.sequence)
		if behind == 0 {
			piece = max(piece, 1+m.behind)
		}
		if behind >= 0 && !tooLong || piece > 0 || !r.exact && i == len(s.recent)-1 {
			s.status.Lost.Add(m.loss)
			s.status.Records -= m.loss.Records
			m.loss = Loss{}
		}
		piece = max(0, piece-1)
	}
}

// namesAtOnce limits how many names of ports are sent per second: with a thousand ports they would overrun a
// collector's socket.
const namesAtOnce = 200

// tick does the work that depends on time: it checks whether a collector is back, and sends templates again.
func (s *session) tick(now meter.Instant) {
	if s.stream != nil {
		s.tickStream(now)
		return
	}
	s.open(now)
	s.listen(now)
	switch {
	case s.socket == nil:
	case s.status.State == Away:
		s.probe(now)
	case s.fresh || now.Up-s.announced >= s.x.c.TemplateEvery:
		s.announce(now)
		s.listen(now)
	case len(s.untold) > 0:
		s.sendOptions(now)
		s.listen(now)
	}
}

// probe sends the templates to a collector that is away, and considers it back when they are not refused.
func (s *session) probe(now meter.Instant) {
	if s.probed && now.Up-s.announced >= probing {
		s.probed = false
		s.status.Why = ""
		s.enter(Sending, now)
		s.announce(now)
		s.listen(now)
		return
	}
	if s.probed {
		return
	}
	before := s.status.Why
	s.status.Why = ""
	s.announce(now)
	s.probed = s.status.Why == ""
	s.status.Why = before
}
