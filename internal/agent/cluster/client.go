package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/agent/state"
	"heddle/internal/slice/fields"
)

// Times of a connection.
const (
	// dialTime bounds an attempt to reach one controller. It may have thousands of hosts to answer, and a host that
	// gives up its place in that row makes the row longer for all.
	dialTime = 30 * time.Second
	// reachTime is how long a controller's machine may take to take the connection: the next one may be there.
	reachTime = 3 * time.Second
	// pingAfter is how long a silent connection is trusted.
	pingAfter = 5 * time.Second
	// pingTime is how long an answer to a ping may take.
	pingTime = 5 * time.Second
	// reportEvery is the least time between two reports.
	reportEvery = 250 * time.Millisecond
)

// maxMessage bounds what a controller may send at once, in bytes.
const maxMessage = 64 << 20

// Host is the agent as the conversation needs it. Its methods are called from any goroutine.
type Host interface {
	// Given is the version of the definition that is active, nil for none.
	Given(ctx context.Context) (*state.Slice, error)
	// Take activates another version, all or nothing: problems says why it is not active. The error is a *MayPass, or
	// of the agent that is ending.
	Take(ctx context.Context, next *state.Slice) (problems []string, err error)
	// Report is what the host has.
	Report(ctx context.Context) (*controllerv1.HostReport, error)
}

// MayPass is why a version is not active that may be active later without a change of anything, such as a full disk.
type MayPass struct{ Cause error }

func (m *MayPass) Error() string { return m.Cause.Error() }
func (m *MayPass) Unwrap() error { return m.Cause }

// tryEvery is after what time such a version is tried again, at most.
const tryEvery = 5 * time.Second

// Membership is who the host is, and where its controllers are.
type Membership interface {
	// Controllers are addresses, HOST:PORT.
	Controllers() []string
	// TLS is for a connection to one of them, made anew for each.
	TLS() (*tls.Config, error)
	// KeepControllers remembers addresses that a controller has sent.
	KeepControllers([]string) error
	// Request asks for the host's next certificate, with the key that it has or another one.
	Request(sameKey bool) (csr []byte, err error)
	// Renewed keeps the answer to the request.
	Renewed(*controllerv1.HostIdentity) error
}

// Options are what a client needs.
type Options struct {
	Host       Host
	Membership Membership
	// Ports may be nil.
	Ports Ports
	// Moves may be nil: the host takes part in none.
	Moves Moves
	// Together may be nil: the host makes no change at an instant.
	Together Together
	// Talks are the conversations of the host's parts beside the one about the definition.
	Talks []Talk
	Log   *slog.Logger
	// Version of this program.
	Version string
	// Connected is called with the address of the controller that answers, and with "" when it is gone. May be nil.
	Connected func(controller string, err error)
	// Dial makes the connections; nil for those from whatever address of the host.
	Dial Dial
	// Kept are warnings about what the host keeps beside the version that is active; nil for none.
	Kept func(context.Context) ([]string, error)
	// ChecksMeant: the host checks which host and whose port a call about a move means.
	ChecksMeant bool
	// Calls answers calls of the agent's contract that others make by way of the controller; nil refuses them.
	Calls http.Handler
	// Begun is higher at each later start of the agent; 0 where that is not known.
	Begun uint64
	// Now is the host's clock, which may be wrong; nil for time.Now.
	Now func() time.Time
}

// Dial makes a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Client speaks with one controller at a time.
type Client struct {
	Options
	start   []byte        // random for this process
	changed chan struct{} // holds one token when something may have to be reported
	session atomic.Pointer[session]
	// unsettled holds one token when ports that are connected may have to be claimed.
	unsettled chan struct{}
	ended     ended
	// connecting are the adapters that are being connected.
	connecting connecting
	denied     string // what a controller said when it sent the host away
	refused    string // what is known of a controller that did not take the host's certificate
	// conversations counts them, over all controllers: the newest counts.
	conversations atomic.Uint64
	made          atomic.Pointer[made]
	// wait waits for a pause between two attempts; false when ctx has ended.
	wait func(ctx context.Context, pause time.Duration) bool
	// first is closed when a controller has answered for the first time, began is when the client began to look for
	// one.
	first     chan struct{}
	firstOnce sync.Once
	began     atomic.Pointer[time.Time]
	// present calls the controller of the conversation that is answered; nil for none.
	present atomic.Pointer[controllerv1connect.HostServiceClient]
	offering
}

// moved ends a conversation with a controller that names another one to go to.
type moved struct{ to string }

func (m moved) Error() string {
	return "the controller sends this host to " + m.to + ", which has fewer"
}

// New makes a client. Run runs it.
func New(o Options) *Client {
	start := make([]byte, 16)
	// Never fails (crypto/rand).
	_, _ = rand.Read(start)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Connected == nil {
		o.Connected = func(string, error) {}
	}
	return &Client{Options: o, start: start, changed: make(chan struct{}, 1), unsettled: make(chan struct{}, 1),
		first: make(chan struct{}), wait: sleep,
		offering: offering{again: make(chan struct{}, 1)}}
}

// Changed says that what the host has may be another. It does not block.
func (c *Client) Changed() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Run keeps a conversation with some controller until ctx ends.
func (c *Client) Run(ctx context.Context) {
	pause, now := newBackoff(), time.Now()
	c.began.Store(&now)
	last := ""
	for n := 0; ctx.Err() == nil; n++ {
		list := c.Membership.Controllers()
		if len(list) == 0 {
			return
		}
		if n == 0 {
			n = random(len(list))
		}
		address := list[n%len(list)]
		heard, err := c.converse(ctx, address)
		if ctx.Err() != nil {
			return
		}
		var away moved
		if errors.As(err, &away) {
			if at := slices.Index(c.Membership.Controllers(), away.to); at >= 0 {
				c.Log.Info("going to another controller", "from", address, "to", away.to)
				n, last = at+len(c.Membership.Controllers())-1, "" // never 0, which is drawn
				continue
			}
		}
		if heard {
			c.denied, c.refused = "", ""
		}
		err = c.explain(ctx, address, err)
		c.Connected("", err)
		if heard {
			pause = newBackoff()
		}
		if text := address + ": " + err.Error(); text != last {
			c.Log.Warn("no controller: the host goes on by what it has", "controller", address, "err", err)
			last = text
		}
		if heard {
			last = ""
		}
		if !c.wait(ctx, pause.next(n%len(list) == 0, random)) {
			return
		}
	}
}

// talk has one conversation.
func (c *Client) talk(ctx context.Context, address string, t *talking) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, hangUp, err := c.dial(address)
	if err != nil {
		return err
	}
	defer hangUp()
	rpc := controllerv1connect.NewHostServiceClient(conn)
	patience := time.AfterFunc(dialTime, func() { cancel(errors.New("no answer")) })
	defer patience.Stop()
	stream, err := rpc.FollowSlice(ctx)
	if err != nil {
		return because(ctx, err)
	}
	// The end of the context alone does not end a Receive while the other direction is open.
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	given, err := c.Host.Given(ctx)
	if err != nil {
		return err
	}
	report, err := c.Host.Report(ctx)
	if err != nil {
		return err
	}
	known, err := reportedBy(report)
	if err != nil {
		return err
	}
	hello := &controllerv1.FollowSliceRequest{Hello: &controllerv1.HostHello{Agent: c.Version, Have: version(given),
		Start: c.start, Report: report, Answers: c.Calls != nil, Fields: fields.Known().Text(), Begun: c.Begun,
		Conversation: c.conversations.Add(1), Now: timestamppb.New(c.Now()), ChecksMeant: c.ChecksMeant,
		Together: c.Together != nil, Connecting: c.connecting.list(time.Now())}, Offers: c.offers.Load()}
	c.tellMade(hello.GetHello(), given)
	offered := hello.GetOffers()
	if err := stream.Send(hello); err != nil {
		return because(ctx, firstError(stream.Receive, err))
	}
	s := &session{Client: c, rpc: rpc, stream: stream, talking: t, received: from(given),
		reported: known, inbox: newInbox(), next: make(chan ready, 1),
		claims: claims{waiting: map[uint64]chan *controllerv1.PortAnswer{}},
		due:    make(chan *controllerv1.RenewCertificate, 1), say: make(chan *controllerv1.FollowSliceRequest, 4),
		answers: make(chan *controllerv1.HostAnswer), prepare: make(chan preparing, 1)}
	first, err := stream.Receive()
	if err == nil {
		err = s.received.older(first.GetCurrent())
	}
	if err != nil {
		return because(ctx, err)
	}
	patience.Stop()
	s.changes = first.GetTakesChanges()
	s.renewsOnly = first.GetRenew() != nil && first.GetCurrent() == nil && !s.changes
	close(t.answered)
	c.present.Store(&rpc)
	defer c.present.CompareAndSwap(&rpc, nil)
	c.Connected(address, nil)
	c.Log.Info("a controller answers", "controller", address, "revision", first.GetCurrent().GetRevision())
	g, gctx := errgroup.WithContext(ctx)
	s.ctx = gctx
	s.calls = &calls{handler: c.Calls, log: c.Log, ctx: gctx, send: s.answer, open: map[uint64]*answering{}}
	defer s.calls.running.Wait()
	c.session.Store(s)
	c.firstOnce.Do(func() { close(c.first) })
	defer c.session.CompareAndSwap(s, nil)
	g.Go(func() error { return s.listen(first) })
	g.Go(func() error { return s.inbox.each(s.take) })
	g.Go(s.activate)
	g.Go(s.prepares)
	g.Go(s.report)
	g.Go(s.settle)
	s.beginTalks(g, conn)
	g.Go(s.speak)
	g.Go(func() error { return s.offer(offered) })
	g.Go(func() error { // so that the others end as well
		<-gctx.Done()
		cancel(nil)
		return nil
	})
	return because(ctx, g.Wait())
}

// said is an error of a controller, in its words alone.
type said struct{ by *connect.Error }

func (s said) Error() string { return s.by.Message() }
func (s said) Unwrap() error { return s.by }

// firstError is what the other side says where a send found the stream ended.
func firstError(receive func() (*controllerv1.FollowSliceResponse, error), sent error) error {
	if _, err := receive(); err != nil {
		return err
	}
	return sent
}

// because is the reason why the context ended, where it is more than that.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	var by *connect.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), connect.CodeOf(err) == connect.CodeCanceled:
		return errors.New("the controller ended the conversation")
	case errors.As(err, &by) && by.Message() != "":
		return said{by}
	}
	return err
}

// dial makes what calls a controller. hangUp ends its connections.
func (c *Client) dial(address string) (to *connect.Client, hangUp func(), err error) {
	transport, err := c.transport()
	if err != nil {
		return nil, nil, err
	}
	return connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: transport}, "https://"+address,
		connecthttp.WithReadMaxBytes(maxMessage), connecthttp.WithCompressors())), transport.CloseIdleConnections, nil
}

func (c *Client) transport() (*http.Transport, error) {
	conf, err := c.Membership.TLS()
	if err != nil {
		return nil, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: reachTime}).DialContext
	}
	return &http.Transport{TLSClientConfig: conf, TLSHandshakeTimeout: dialTime, Protocols: protocols,
		DialContext: c.offering.noting(dial),
		HTTP2:       &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime}}, nil
}

// random is a number from 0 to below n; 0 where n is 0.
func random(n int) int {
	if n <= 0 {
		return 0
	}
	// Never fails (crypto/rand).
	i, _ := rand.Int(rand.Reader, big.NewInt(int64(n)))
	return int(i.Int64())
}

// sleep waits; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
