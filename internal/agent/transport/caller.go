package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/api/heddle/host/v1/hostv1connect"
)

// Times of a caller.
const (
	// reachTime is how long one address may take to take the connection.
	reachTime = 3 * time.Second
	// nextTime is after what time the next address is tried beside those before.
	nextTime = 250 * time.Millisecond
	// keepTime is how long a connection without a call is kept.
	keepTime = time.Minute
)

// Dial makes a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// CallerOptions are what a caller needs.
type CallerOptions struct {
	Identity Identity
	// Dial makes connections; nil for those from whatever address of the host.
	Dial Dial
}

// Caller calls the hosts that ports of this one move to.
type Caller struct {
	CallerOptions

	mu      sync.Mutex
	targets map[string]*target // by the host's id
}

// target is the connection to one host.
type target struct {
	rpc       hostv1connect.MoveServiceClient
	transport *http.Transport
	used      time.Time

	mu        sync.Mutex
	addresses []string // of the newest order
	answered  string   // the one that took the connection last
}

// NewCaller makes a caller without connections.
func NewCaller(o CallerOptions) *Caller {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: reachTime}).DialContext
	}
	return &Caller{CallerOptions: o, targets: map[string]*target{}}
}

// Call gives the target of an order a copy. An error of code NotFound is of a target that has no such move;
// PermissionDenied is of one that was told of another source. After Unavailable it is worth another try.
func (c *Caller) Call(ctx context.Context, order *controllerv1.MoveOrder, q *hostv1.CopyPortRequest) (
	*hostv1.CopyPortResponse, error) {
	list, err := CheckAddresses(order.GetAddresses())
	if err != nil {
		return nil, fmt.Errorf("host %s, which takes over the port: %w", order.GetHostName(), err)
	}
	t := c.target(order.GetHost())
	t.mu.Lock()
	t.addresses = list
	t.mu.Unlock()
	a, err := t.rpc.CopyPort(ctx, q)
	if connect.CodeOf(err) == connect.CodeCanceled && ctx.Err() == nil { // the connection has ended meanwhile
		err = connect.NewError(connect.CodeUnavailable, err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("host %s, which takes over the port: %w", order.GetHostName(), err)
	}
	return a, nil
}

// Close ends all connections.
func (c *Caller) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.targets {
		t.transport.CloseIdleConnections()
	}
	clear(c.targets)
}

// target is the connection to a host. Those that were not used for long are forgotten.
func (c *Caller) target(host string) *target {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for id, t := range c.targets {
		if id != host && now.Sub(t.used) > 2*keepTime {
			t.transport.CloseIdleConnections()
			delete(c.targets, id)
		}
	}
	t := c.targets[host]
	if t == nil {
		t = c.dialer(host)
		c.targets[host] = t
	}
	t.used = now
	return t
}

// dialer makes what calls a host. Its name in URLs is its id, which is looked up nowhere.
func (c *Caller) dialer(host string) *target {
	t := &target{}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	t.transport = &http.Transport{TLSClientConfig: c.Identity.between().To(host), TLSHandshakeTimeout: handshakeTime,
		Protocols: protocols, IdleConnTimeout: keepTime,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dial(ctx, c.Dial) },
		HTTP2:       &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime}}
	t.rpc = hostv1connect.NewMoveServiceClient(connect.NewClient(connecthttp.NewTransport(
		&http.Client{Transport: t.transport}, "https://"+host, connecthttp.WithReadMaxBytes(maxMessage),
		connecthttp.WithCompressors())))
	return t
}

// dial tries the addresses, the one that answered last first; each begins a moment after the one before, and the first
// that takes the connection counts.
func (t *target) dial(ctx context.Context, dial Dial) (net.Conn, error) {
	t.mu.Lock()
	list := slices.Clone(t.addresses)
	if i := slices.Index(list, t.answered); i > 0 {
		list = slices.Concat([]string{t.answered}, list[:i], list[i+1:])
	}
	t.mu.Unlock()
	type reached struct {
		conn net.Conn
		at   string
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan reached, len(list))
	try := func(at string) {
		c, err := dial(ctx, "tcp", at)
		answers <- reached{c, at, err}
	}
	var errs []error
	begun, ended := 0, 0
	next := time.NewTimer(0)
	defer next.Stop()
	for ended < len(list) {
		select {
		case <-next.C:
			if begun < len(list) {
				go try(list[begun])
				begun++
				next.Reset(nextTime)
			}
		case r := <-answers:
			ended++
			if r.err != nil {
				errs = append(errs, r.err)
				next.Reset(0)
				continue
			}
			cancel()
			go func() { // those that come too late
				for ; ended < begun; ended++ {
					if late := <-answers; late.conn != nil {
						_ = late.conn.Close()
					}
				}
			}()
			t.mu.Lock()
			t.answered = r.at
			t.mu.Unlock()
			return r.conn, nil
		}
	}
	cancel()
	return nil, errors.Join(errs...)
}

// CheckAddresses are the addresses of a list that may be called: 8 at most, each an IP address with a port. Names are
// none, since they would have a host look up whatever another one says.
func CheckAddresses(all []string) (list []string, err error) {
	for _, text := range all {
		at, err := netip.ParseAddrPort(text)
		if err != nil || at.Port() == 0 || at.Addr().IsUnspecified() || at.Addr().IsMulticast() {
			continue
		}
		if list = append(list, text); len(list) == mostAddresses {
			break
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it has told no address to call it at: look at heddle host show there")
	}
	return list, nil
}
