package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"heddle/internal/api/wire"
)

// versionHeader carries the protocol version in both directions.
const versionHeader = "Heddle-Api"

// Limits that keep callers that are slow, many or too large from filling the agent's memory.
const (
	// patience is how long the transfer of a request's body, or of an answer, may take.
	patience = 30 * time.Second
	// maxBody bounds a request, in bytes: the largest configuration file and the other fields.
	maxBody = 40 << 20
	// smallBody is the size that every request may have, in bytes; larger ones are read one at a time. No request that
	// is answered by a stream is larger.
	smallBody = 1 << 20
)

// SocketPath returns the path of the socket of the agent of that name.
func SocketPath(runDir, name string) string { return filepath.Join(runDir, name+".sock") }

// Listen makes the agent's socket, readable and writable by its owner alone. The caller holds the agent's instance
// lock, so an existing socket was left by a dead agent.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket a dead agent left: %w", err)
	}
	// The mode must be set before anyone can connect: a socket is created with the permissions that the mask leaves.
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return l, nil
}

// Serve answers on l until the context ends; requests in progress are finished.
func Serve(ctx context.Context, l net.Listener, s Service, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           handler(ctx, s),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// handler answers the calls of the contract; streams end with ctx.
func handler(ctx context.Context, s Service) http.Handler {
	rpc := connect.NewServer(admit)
	a := &adapter{service: s, codec: wire.Codec{Lenient: true}, ending: ctx}
	a.register(rpc)
	mux := http.NewServeMux()
	// Nothing is compressed: both ends are on one machine, and a small compressed message could be large in memory.
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxBody), connecthttp.WithCompressors(), StrictCodecs())
	streams := map[string]bool{}
	for spec := range rpc.Specs() {
		streams[spec.Procedure] = spec.StreamType != connect.StreamTypeUnary
	}
	one := make(large, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, strconv.Itoa(Version))
		if OtherVersion(w, r, "this agent speaks version %d of the protocol, the command version %q: use the heddle "+
			"program the agent was started with") {
			return
		}
		c := http.NewResponseController(w)
		if c.SetReadDeadline(time.Now().Add(patience)) != nil {
			return
		}
		switch {
		case streams[r.URL.Path]:
			r.Body = http.MaxBytesReader(w, r.Body, smallBody)
		default:
			release, err := one.hold(r)
			if err != nil { // the caller has disconnected
				return
			}
			defer release()
		}
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connectionKey{}, c)))
	})
}

// large is held by the request with a large body that is being answered.
type large chan struct{}

// hold waits until no other large request is being answered, if the request's body is large or may be; release lets the
// next one continue.
func (l large) hold(r *http.Request) (release func(), err error) {
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		return func() {}, nil
	}
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// connectionKey is the key in a call's context of the function that sets the deadlines of its connection.
type connectionKey struct{}

// deadlines sets until when a call's request must have been received, and its answer sent; zero is never.
func deadlines(ctx context.Context, read, write time.Time) error {
	c, ok := ctx.Value(connectionKey{}).(*http.ResponseController)
	if !ok {
		return nil
	}
	return errors.Join(c.SetReadDeadline(read), c.SetWriteDeadline(write))
}

// admit refuses requests that this agent does not understand as a whole: the caller could rely on a field that the
// agent would ignore. Afterwards it removes the deadline for reading, since the server continues to read, to notice a
// caller that disconnects.
func admit(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		return next(ctx, spec, &admitted{stream, ctx})
	}
}

// admitted is a call's stream whose requests are checked.
type admitted struct {
	connect.ServerStream
	ctx context.Context
}

// Receive reads a request.
func (a *admitted) Receive(m any) error {
	if err := a.ServerStream.Receive(m); err != nil {
		return err
	}
	if err := understood(m); err != nil {
		return refusal(err)
	}
	return deadlines(a.ctx, time.Time{}, time.Time{})
}

// Send sends an answer, within patience.
func (a *admitted) Send(m any) error {
	return errors.Join(deadlines(a.ctx, time.Time{}, time.Now().Add(patience)), a.ServerStream.Send(m))
}
