package peers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
)

// Times of calls between controllers.
const (
	// AskTime bounds a call that is answered at once.
	AskTime = 3 * time.Second
	// reachTime bounds the connection to another controller.
	reachTime = 2 * time.Second
	// downTime is how long a controller that could not be reached is not asked again.
	downTime = 3 * time.Second
	// Pings on connections between controllers, which are kept.
	linkPing = 5 * time.Second
)

// links are the connections to other controllers.
type links struct {
	mu   sync.Mutex
	to   map[string]*Link // by id
	dial func(c Controller) (*Link, error)
}

// Link is the connection to one controller.
type Link struct {
	controllerv1connect.ControllerServiceClient
	Address   string
	Transport *http.Transport
	down      time.Time // when it could not be reached
	why       error
	clock     *otherClock
	silent    time.Time // since when it does not answer; zero while it does
}

// linkTo is the connection to a controller; an error where it was down a moment ago.
func (l *links) linkTo(c Controller) (*Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.to[c.ID]
	if k != nil && k.Address == c.Address {
		if time.Since(k.down) < downTime {
			return nil, k.why
		}
		return k, nil
	}
	if k != nil {
		k.Transport.CloseIdleConnections()
	}
	k, err := l.dial(c)
	if err != nil {
		return nil, err
	}
	if l.to == nil {
		l.to = map[string]*Link{}
	}
	l.to[c.ID] = k
	return k, nil
}

// failed notes that a controller could not be reached.
func (l *links) failed(k *Link, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.down, k.why = time.Now(), why
	if k.silent.IsZero() {
		k.silent = k.down
	}
}

// answered notes that a controller has answered.
func (l *links) answered(k *Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.silent = time.Time{}
}

// close ends all connections.
func (l *links) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.to {
		k.Transport.CloseIdleConnections()
	}
}

// ReachBy has the others reached with these credentials.
func (r *Roster) ReachBy(own identity.Client) { r.links.dial = linker(own) }

// End ends the connections to the others.
func (r *Roster) End() { r.links.close() }

// LinkTo is the connection to a controller; an error where it was down a moment ago.
func (r *Roster) LinkTo(c Controller) (*Link, error) { return r.links.linkTo(c) }

// linker makes the client of another controller: whoever answers there has to be that one.
func linker(own identity.Client) func(c Controller) (*Link, error) {
	return func(c Controller) (*Link, error) { return dialOther(own, c) }
}

func dialOther(own identity.Client, c Controller) (*Link, error) {
	conf := own.TLS()
	known := conf.VerifyConnection
	conf.VerifyConnection = func(st tls.ConnectionState) error {
		if err := known(st); err != nil {
			return err
		}
		if name, err := identity.NameOf(st.PeerCertificates[0]); err != nil || name.ID != c.ID {
			return fmt.Errorf("the controller that answers is %s, and not %s", name, c.ID)
		}
		return nil
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: conf, TLSHandshakeTimeout: reachTime, Protocols: protocols,
		DialContext:     (&net.Dialer{Timeout: reachTime}).DialContext,
		IdleConnTimeout: 5 * time.Minute,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: linkPing, PingTimeout: linkPing}}
	clock := &otherClock{RoundTripper: transport, now: own.Clock.Now}
	rpc := connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: clock}, "https://"+c.Address,
		connecthttp.WithReadMaxBytes(maxLink), connecthttp.WithCompressors()))
	return &Link{ControllerServiceClient: controllerv1connect.NewControllerServiceClient(rpc), Address: c.Address,
		Transport: transport, clock: clock}, nil
}

// maxLink bounds what another controller may answer, in bytes: the reports of all its hosts.
const maxLink = 512 << 20

// Answer is that of one other controller.
type Answer[T any] struct {
	Of  Controller
	Got T
	Err error
}

// AskOthers asks all other controllers at the same time, no longer than within.
func AskOthers[T any](ctx context.Context, r *Roster, within time.Duration,
	do func(context.Context, *Link) (T, error)) []Answer[T] {
	return AskThese(ctx, r, r.Others(), within, do)
}

// AskThese asks these controllers at the same time, no longer than within.
func AskThese[T any](ctx context.Context, r *Roster, others []Controller, within time.Duration,
	do func(context.Context, *Link) (T, error)) []Answer[T] {
	answers := make([]Answer[T], len(others))
	var all sync.WaitGroup
	for i, c := range others {
		answers[i].Of = c
		all.Go(func() { answers[i].Got, answers[i].Err = AskOne(ctx, r, c, within, do) })
	}
	all.Wait()
	return answers
}

// AskOne asks one other controller, no longer than within. A controller that does not answer in that time is not asked
// for a while; one that had less time, since the caller's own was over, is: callers say how long they wait, and those
// of the lowest role would have this controller believe that the others are away.
//
// A context may be that of a call that is under way, as where a call of a host turns out to be for one that another
// controller has. What is known of that call is written where the context says, and is not to be shared with those
// that are made at the same time.
func AskOne[T any](caller context.Context, r *Roster, c Controller, within time.Duration,
	do func(context.Context, *Link) (T, error)) (got T, err error) {
	k, err := r.links.linkTo(c)
	if err != nil {
		return got, err
	}
	until := time.Now().Add(within)
	ends, has := caller.Deadline()
	sooner := has && ends.Before(until) // the other one hears of it, and may say so before it is over here
	ctx, cancel := context.WithDeadline(caller, until)
	defer cancel()
	ctx, _ = connect.NewClientContext(ctx)
	got, err = do(ctx, k)
	switch code := connect.CodeOf(err); {
	case caller.Err() != nil || sooner && code == connect.CodeDeadlineExceeded:
	case code == connect.CodeUnavailable, code == connect.CodeDeadlineExceeded, code == connect.CodeCanceled:
		r.links.failed(k, err)
	default:
		r.links.answered(k)
	}
	return got, err
}
