package rpc

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
	// askTime bounds a call that is answered at once.
	askTime = 3 * time.Second
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
	to   map[string]*link // by id
	dial func(c Controller) (*link, error)
}

// link is the connection to one controller.
type link struct {
	controllerv1connect.ControllerServiceClient
	address   string
	transport *http.Transport
	down      time.Time // when it could not be reached
	why       error
	clock     *otherClock
	silent    time.Time // since when it does not answer; zero while it does
}

// linkTo is the connection to a controller; an error where it was down a moment ago.
func (l *links) linkTo(c Controller) (*link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.to[c.ID]
	if k != nil && k.address == c.Address {
		if time.Since(k.down) < downTime {
			return nil, k.why
		}
		return k, nil
	}
	if k != nil {
		k.transport.CloseIdleConnections()
	}
	k, err := l.dial(c)
	if err != nil {
		return nil, err
	}
	if l.to == nil {
		l.to = map[string]*link{}
	}
	l.to[c.ID] = k
	return k, nil
}

// failed notes that a controller could not be reached.
func (l *links) failed(k *link, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.down, k.why = time.Now(), why
	if k.silent.IsZero() {
		k.silent = k.down
	}
}

// answered notes that a controller has answered.
func (l *links) answered(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.silent = time.Time{}
}

// close ends all connections.
func (l *links) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.to {
		k.transport.CloseIdleConnections()
	}
}

// linker makes the client of another controller: whoever answers there has to be that one.
func linker(own identity.Client) func(c Controller) (*link, error) {
	return func(c Controller) (*link, error) { return dialOther(own, c) }
}

func dialOther(own identity.Client, c Controller) (*link, error) {
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
	return &link{ControllerServiceClient: controllerv1connect.NewControllerServiceClient(rpc), address: c.Address,
		transport: transport, clock: clock}, nil
}

// maxLink bounds what another controller may answer, in bytes: the reports of all its hosts.
const maxLink = 512 << 20

// answer is that of one other controller.
type answer[T any] struct {
	of  Controller
	got T
	err error
}

// askOthers asks all other controllers at the same time, no longer than within.
func askOthers[T any](ctx context.Context, r *roster, within time.Duration,
	do func(context.Context, *link) (T, error)) []answer[T] {
	return askThese(ctx, r, r.others(), within, do)
}

// askThese asks these controllers at the same time, no longer than within.
func askThese[T any](ctx context.Context, r *roster, others []Controller, within time.Duration,
	do func(context.Context, *link) (T, error)) []answer[T] {
	answers := make([]answer[T], len(others))
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var all sync.WaitGroup
	for i, c := range others {
		answers[i].of = c
		all.Go(func() { answers[i].got, answers[i].err = askOne(ctx, r, c, do) })
	}
	all.Wait()
	return answers
}

// askOne asks one other controller. A context may be that of a call that is under way, as where a call of a host turns
// out to be for one that another controller has. What is known of that call is written where the context says, and is
// not
// to be shared with those that are made at the same time.
func askOne[T any](ctx context.Context, r *roster, c Controller, do func(context.Context, *link) (T, error)) (got T,
	err error) {
	k, err := r.links.linkTo(c)
	if err != nil {
		return got, err
	}
	ctx, _ = connect.NewClientContext(ctx)
	got, err = do(ctx, k)
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		r.links.failed(k, err)
	default:
		r.links.answered(k)
	}
	return got, err
}
