package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/hostwords"
	"heddle/internal/controller/part"
	"heddle/internal/identity"
	"heddle/internal/platform/pki/issuing"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/slice"
)

// conn is a host's connection to this controller.
type conn struct {
	// Conn is the connection as the parts of the fleet know it.
	*part.Conn
	start   string
	address string
	serial  string               // of the certificate it came with
	issuer  identity.Fingerprint // of that
	// conversation is the host's number of it: the one with the highest counts.
	conversation uint64
	// begun is higher at each later start of the agent; 0 where it did not say.
	begun uint64
	// roster is the version of the list of controllers that the host has.
	roster int64
	moveTo string        // the address of a controller with fewer hosts
	wake   chan struct{} // holds one token when something may have to be sent
	cancel context.CancelCauseFunc
	resend bool // the whole content is asked for
	// acknowledged is how often the host has said what became of an update.
	acknowledged int
	// sent is what the host has been sent; nil before the first message.
	sent   *content
	beyond bool // it has reported what is not its to report
	ask    ask
	done   <-chan struct{} // closed when it has ended
	// answers: the host takes calls, and these are those under way.
	answers bool
	calls   calls
	// checks: the host checks which port a call about a move means.
	checks bool
	// clock is what the host's clock showed when it came, nil where it didn't say.
	clock *issuing.Clock
}

// poke says that something may have to be sent. It does not block.
func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) end(why error) { c.cancel(why) }

// helloTime bounds how long a host may take to say who it is.
const helloTime = 10 * time.Second

// FollowSlice hands a host its slice for as long as it is connected.
func (s *Server) FollowSlice(ctx context.Context, stream controllerv1connect.HostServiceFollowSliceServerStream) error {
	return enter(ctx, s, func(ctx context.Context, e entry) error {
		if e.peer.RenewOnly {
			return s.renewOnly(ctx, e, stream)
		}
		first, err := hear(ctx, s, e, stream, s.quorum.refuse)
		if err == nil && first.GetHello() == nil {
			err = connect.NewError(connect.CodeInvalidArgument, "the first message of a host is its hello")
		}
		if err != nil {
			return err
		}
		return s.follow(ctx, e, hostwords.Bounded(first), stream)
	})
}

// follow hands a host that has said hello its slice until ctx ends.
func (s *Server) follow(ctx context.Context, e entry, first *controllerv1.FollowSliceRequest,
	stream controllerv1connect.HostServiceFollowSliceServerStream) error {
	hello := first.GetHello()
	c := &conn{start: string(hello.GetStart()), address: addressOf(ctx), wake: make(chan struct{}, 1),
		conversation: hello.GetConversation(), begun: hello.GetBegun(), cancel: e.end, done: ctx.Done(),
		answers: hello.GetAnswers(), checks: hello.GetChecksMeant(),
		serial: e.peer.Serial, issuer: issuerOf(e.peer, s.Authority.Trust()),
		clock: s.issuing.In(hello.GetNow())}
	defer c.calls.end(connect.NewError(connect.CodeUnavailable, "its connection to the controller has ended"))
	id := e.peer.Name.ID
	if err := s.fleet.makeRoom(id, c); err != nil {
		return err
	}
	h, err := s.fleet.arrive(id, c, first)
	if err != nil {
		return err
	}
	defer s.fleet.leave(h, c)
	if err := s.claim(ctx, h, c); err != nil {
		return err
	}
	granter{s}.fillFor(ctx, h)
	go func() { e.end(s.listen(ctx, h, c, stream)) }()
	return s.hand(ctx, h, c, stream, hello.GetHave(), &renewal{Server: s, peer: e.peer})
}

// arrive takes in a host that connects. An older connection of the same host ends.
func (f *fleet) arrive(id string, c *conn, first *controllerv1.FollowSliceRequest) (*host, error) {
	hello := first.GetHello()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.loaded {
		return nil, connect.NewError(connect.CodeUnavailable, "the controller is starting")
	}
	h := f.hosts[id]
	if h == nil {
		return nil, rpcerrors.Removed()
	}
	if h.conn != nil {
		h.conn.end(errors.New("the host has connected again"))
	}
	c.Conn = &part.Conn{Poke: c.poke, Run: c.start, Number: c.conversation, Begun: c.begun,
		Slots: make(chan struct{}, part.MostRequests)}
	h.conn, h.agent, h.address, h.since = c, hello.GetAgent(), c.address, time.Now()
	h.active, h.failed, h.why = version{}, version{}, nil
	if have := hello.GetHave(); have != nil && len(have.GetHash()) == len(slice.Hash{}) {
		h.active = version{have.GetRevision(), slice.Hash(have.GetHash()), true}
	}
	f.fits(h, hello.GetFields())
	h.reverted = revertedBy(hello.GetReport())
	kept, ok := f.keepWhole(h, c, hello.GetReport())
	f.adapters.Arrived(h.id, c.Conn, adapters.Arrival{Counts: kept, Reported: ok, Brings: hello.GetReport().GetPorts(),
		Starting: hello.GetConnecting()})
	h.switches = switchesOf(f, h, hello.GetReport().GetSwitches())
	f.parts.Connected(h.id, c.Conn, first)
	f.log.Info("host connected", "host", h.doc.Name, "address", c.address, "agent", h.agent)
	f.wake()
	return h, nil
}

// leave takes in that a connection has ended.
func (f *fleet) leave(h *host, c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.conn != c {
		return
	}
	h.conn, h.since = nil, time.Now()
	f.adapters.Left(h.id, c.Conn)
	f.parts.Disconnected(h.id, c.Conn)
	f.log.Info("host disconnected", "host", h.doc.Name, "address", c.address)
	f.wake()
}

// listen takes in what a host says until it leaves.
func (s *Server) listen(ctx context.Context, h *host, c *conn,
	stream controllerv1connect.HostServiceFollowSliceServerStream) error {
	reports := newPaced(s, h, c)
	for {
		m, err := stream.Receive()
		if err != nil {
			return err
		}
		m = hostwords.Bounded(m)
		if a := m.GetAnswer(); a != nil {
			c.calls.answered(a)
			continue
		}
		if a := m.GetClock(); a != nil {
			s.fleet.together.Clock(h.id, c.Conn, a, s.fleet.together.Ticks())
			continue
		}
		if err := reports.take(ctx, m); err != nil {
			return err
		}
	}
}

// said takes in one message of a host.
func (f *fleet) said(h *host, c *conn, m *controllerv1.FollowSliceRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.conn != c {
		return
	}
	if r := m.GetReport(); r != nil {
		h.reverted = revertedBy(r)
		if kept, ok := f.keepWhole(h, c, r); ok {
			f.adapters.Reported(h.id, kept)
		}
		h.switches = switchesOf(f, h, r.GetSwitches())
	}
	if change := m.GetChange(); change != nil {
		f.amended(h, c, change)
		h.switches = switchesOf(f, h, change.GetSwitches())
	}
	f.parts.Hear(h.id, c.Conn, m)
	c.answered(m.GetPong())
	if a := m.GetAcknowledgement(); a != nil {
		v := a.GetVersion()
		switch {
		case a.GetResend():
			c.resend = true
			c.poke()
		case len(v.GetHash()) != len(slice.Hash{}):
		case len(a.GetProblems()) > 0:
			h.failed, h.why = version{v.GetRevision(), slice.Hash(v.GetHash()), true}, a.GetProblems()
			h.say(f.log, slog.LevelWarn, "a host cannot activate the definition", "host", h.doc.Name, "revision",
				v.GetRevision(), "why", h.why)
		default:
			h.reverted = nil // where it goes back again, it comes back and says so
			h.active = version{v.GetRevision(), slice.Hash(v.GetHash()), true}
			h.report = h.report.warned(a.GetWarnings())
		}
		if !a.GetResend() {
			c.acknowledged++
		}
	}
	f.wake()
}

// hand sends what the host is to have, whenever that changes, until ctx ends. What is superseded while a message is on
// its way is never sent.
func (s *Server) hand(ctx context.Context, h *host, c *conn,
	stream controllerv1connect.HostServiceFollowSliceServerStream, have *controllerv1.SliceVersion,
	renewal *renewal) error {
	sent := s.fleet.content(h, have)
	for first := true; ; first = false {
		m, err := s.fleet.next(h, c, sent, first)
		if err != nil {
			return err
		}
		if first {
			m.TakesChanges = true
		}
		if list, to := s.whereTo(c); len(list) > 0 || to != "" {
			if m == nil {
				m = &controllerv1.FollowSliceResponse{}
			}
			m.Controllers, m.MoveTo = list, to
		}
		if due := renewal.due(); due != nil {
			if m == nil {
				m = &controllerv1.FollowSliceResponse{}
			}
			m.Renew = due
		}
		if n := s.fleet.ping(c); n != 0 {
			if m == nil {
				m = &controllerv1.FollowSliceResponse{}
			}
			m.Ping = n
		}
		m = s.fleet.parts.Objects(h.id, c.Conn, preparing{s.fleet}.add(h, c, sent, m))
		if m != nil {
			if m.Clock != nil {
				m.Clock.Sent = s.fleet.together.Asks(h.id, c.Conn)
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		for q := c.calls.next(); q != nil; q = c.calls.next() {
			if err := stream.Send(&controllerv1.FollowSliceResponse{Call: q}); err != nil {
				return err
			}
		}
		select {
		case <-c.wake:
		case <-time.After(min(renewal.wait(), s.fleet.together.Wait(h.id, c.Conn))):
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// ended is the reason why a conversation ends, as the host is told it.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	var revoked *identity.PeerError
	if errors.As(cause, &revoked) {
		return connect.NewError(connect.CodePermissionDenied, cause.Error())
	}
	if !errors.Is(cause, context.Canceled) {
		return connect.NewError(connect.CodeUnavailable, cause.Error())
	}
	return ctx.Err()
}

// content is what a connection has been sent.
type content struct {
	known bool // set is nil where the controller does not remember the content of that hash
	hash  slice.Hash
	set   *slice.Set
}

// content is what a host has that says so.
func (f *fleet) content(h *host, have *controllerv1.SliceVersion) *content {
	if len(have.GetHash()) != len(slice.Hash{}) {
		return &content{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &content{known: true, hash: slice.Hash(have.GetHash())}
	c.set = contents{f}.remembered(h, c.hash)
	return c
}

// next is the next message to a host, nil for none. sent is what the host has been sent.
func (f *fleet) next(h *host, c *conn, sent *content, first bool) (*controllerv1.FollowSliceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.conn != c {
		return nil, connect.NewError(connect.CodeUnavailable, "the host has connected again")
	}
	c.sent = sent
	set, err := f.target(h)
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, fmt.Sprintf("the definition for this host: %v", err))
	}
	hash := set.Hash()
	current := &controllerv1.SliceVersion{Epoch: f.epoch, Revision: f.revision, Hash: hash[:]}
	if sent.known && sent.hash == hash && !c.resend {
		if !first {
			return nil, nil
		}
		// A host that does not have a rollout's change is not at its revision.
		if h.active.known && h.active.revision < f.revision && len(withheld{f}.held(h)) > 0 {
			current.Revision = h.active.revision
		}
		return &controllerv1.FollowSliceResponse{Current: current}, nil
	}
	forced := h.wentBackFrom(set)
	if forced && !h.mayTryAgain() {
		if !first {
			return nil, nil
		}
		return &controllerv1.FollowSliceResponse{}, nil
	}
	notBefore, change, held := f.together.NotBefore(h.id, c.Conn)
	if held && sent.known {
		if !first {
			return nil, nil
		}
		return &controllerv1.FollowSliceResponse{Current: &controllerv1.SliceVersion{Epoch: f.epoch,
			Revision: h.active.revision, Hash: sent.hash[:]}}, nil
	}
	was := sent.set
	if c.resend {
		was = nil
	}
	u := f.update(was, set)
	*sent, c.resend = content{true, hash, set}, false
	return &controllerv1.FollowSliceResponse{Update: u, Current: current, Forced: forced, NotBefore: notBefore,
		TogetherId: change}, nil
}
