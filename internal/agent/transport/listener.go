package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/api/heddle/host/v1/hostv1connect"
)

// Bounds of the listener.
const (
	// mostCalls is how many calls are read and answered at a time; further ones wait.
	mostCalls = 32
	// mostStreams is how many calls one connection has under way.
	mostStreams = 64
	// callTime bounds a call from its first byte to its answer.
	callTime = 30 * time.Second
	// idleTime is how long a connection without a call stays.
	idleTime = 2 * time.Minute
)

// Options are what a listener needs.
type Options struct {
	// Listen is the address, HOST:PORT; "" or None for a listener that never opens.
	Listen   string
	Identity Identity
	// Expect is the id of the host that a controller has named for a move; false for a move that is none of this
	// host's. It is called from any goroutine and does not block.
	Expect func(move string) (host string, ok bool)
	// Take takes in a copy, and returns when it is on disk. It is called from any goroutine.
	Take func(context.Context, *hostv1.CopyPortRequest) (*hostv1.CopyPortResponse, error)
	// First are addresses of this host to be offered first, such as the one it talks to its controller from. May be
	// nil.
	First func() []netip.Addr
	Log   *slog.Logger
}

// Listener is where a host takes calls of the hosts from which its ports come. It is closed until Open.
type Listener struct {
	Options
	refused *refusals

	mu     sync.Mutex
	open   *opened
	failed bool // the log says that it cannot be opened
}

// opened is an open listener.
type opened struct {
	listener    net.Listener
	tlsListener *tlsListener
	server      *http.Server
	done        chan struct{}
}

// New makes a listener that is closed.
func New(o Options) *Listener { return &Listener{Options: o, refused: newRefusals(o.Log)} }

// ErrDisabled is returned by a listener that is to stay closed.
var ErrDisabled = errors.New("this host takes no calls of other hosts (--move-listen none): what ports had where " +
	"they come from stays behind")

// Open opens the listener where it is not open, and returns the addresses, HOST:PORT, at which other hosts may reach
// it: 8 at most, the likeliest first.
func (d *Listener) Open() (addresses []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Listen == "" || d.Listen == None {
		return nil, ErrDisabled
	}
	if d.open == nil {
		if err := d.listen(); err != nil {
			err = fmt.Errorf("take calls of other hosts about ports that come here: %w (--move-listen names another "+
				"address)", err)
			if !d.failed {
				d.failed = true
				d.Log.Error("no door for moves is open", "err", err)
			}
			return nil, err
		}
		d.failed = false
	}
	var first []netip.Addr
	if d.First != nil {
		first = d.First()
	}
	return addressesOf(d.open.listener.Addr(), first)
}

// Close closes the listener and ends all connections. Open opens it again. It waits for no peer: TLS would take 5 s to
// say goodbye to one that does not read.
func (d *Listener) Close() {
	d.mu.Lock()
	o := d.open
	d.open = nil
	d.mu.Unlock()
	if o == nil {
		return
	}
	o.tlsListener.end()
	// What fails to close is closed by the end of the process.
	_ = o.server.Close()
	<-o.done
}

// listen opens it. The caller holds the lock.
func (d *Listener) listen() error {
	l, err := net.Listen("tcp", d.Listen)
	if err != nil {
		return err
	}
	d.serve(l)
	return nil
}

// serve answers on a listener. The caller holds the lock.
func (d *Listener) serve(l net.Listener) {
	rpc := connect.NewServer()
	hostv1connect.RegisterMoveServiceHandler(rpc, taker{d})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxMessage), connecthttp.WithCompressors())
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	o := &opened{listener: l, tlsListener: newTLSListener(l, d.Identity.between(), d.refused),
		done: make(chan struct{})}
	o.server = &http.Server{Handler: d.bounded(mux), Protocols: protocols, ReadHeaderTimeout: handshakeTime,
		ReadTimeout: callTime, WriteTimeout: callTime, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(d.Log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostStreams, MaxReadFrameSize: 64 << 10,
			SendPingTimeout: 3 * pingAfter, PingTimeout: pingTime, WriteByteTimeout: callTime}}
	go func() {
		defer close(o.done)
		if err := o.server.Serve(o.tlsListener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			d.Log.Error("the door for moves has closed", "err", err)
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.open == o {
				d.open = nil // Open opens it again
			}
		}
	}()
	d.open = o
}

// bounded answers so many calls at a time, each in so much time.
func (d *Listener) bounded(h http.Handler) http.Handler {
	slots := make(chan struct{}, mostCalls)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callTime)
		defer cancel()
		p, err := d.Identity.between().Peer(r.TLS.PeerCertificates)
		if err != nil { // as when its certificate has expired since it connected
			d.refused.note(r.RemoteAddr, err)
			http.Error(w, "", http.StatusForbidden)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			http.Error(w, "", http.StatusTooManyRequests)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callerKey{}, caller{p.Name.ID, r.RemoteAddr})))
	})
}

type callerKey struct{}

// caller is the host that calls.
type caller struct{ host, address string }

// taker is the half of a listener that is called.
type taker struct{ *Listener }

// CopyPort takes in a copy of the host that a controller has named for the move.
func (t taker) CopyPort(ctx context.Context, q *hostv1.CopyPortRequest) (*hostv1.CopyPortResponse, error) {
	by, _ := ctx.Value(callerKey{}).(caller)
	host, ok := t.Expect(q.GetMove())
	switch {
	case !ok:
		return nil, connect.NewError(connect.CodeNotFound, "this host has no such move: it was taken back, or is over")
	case host == "":
		return nil, connect.NewError(connect.CodeUnavailable,
			"no controller has told this host yet which host the port comes from")
	case host != by.host:
		err := fmt.Errorf("host %s calls for a move that is host %s's", by.host, host)
		t.refused.note(by.address, err)
		return nil, connect.NewError(connect.CodePermissionDenied, "this move is another host's")
	}
	return t.Take(ctx, q)
}
