package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"connectrpc.com/connect/v2/connectproto"

	"heddle/internal/api/wire"
)

// versionHeader carries the protocol version in both directions.
const versionHeader = "Heddle-Api"

// What keeps callers that are slow, many or too large from filling the agent's memory.
const (
	// patience is how long a request's body, or an answer, may be under way.
	patience = 30 * time.Second
	// maxBody bounds a request, in bytes: the largest configuration file and what goes with it.
	maxBody = 40 << 20
	// smallBody is what every request may have; one that is larger is read when no other such is, in bytes. No request
	// that is answered by a stream is larger.
	smallBody = 1 << 20
)

// SocketPath returns where the agent of that name listens.
func SocketPath(runDir, name string) string { return filepath.Join(runDir, name+".sock") }

// Listen makes the agent's socket, readable and writable by its owner alone. The caller holds the agent's instance
// lock, so a socket that is there was left by a dead one.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket a dead agent left: %w", err)
	}
	// The mode is set before anyone can connect: a socket appears with the permissions the mask leaves.
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return l, nil
}

// Serve answers on l until the context ends; requests under way are finished.
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

// handler answers the calls of the contract; those that follow something end with ctx.
func handler(ctx context.Context, s Service) http.Handler {
	rpc := connect.NewServer(admit)
	a := &adapter{service: s, codec: wire.Codec{Lenient: true}, ending: ctx}
	a.register(rpc)
	mux := http.NewServeMux()
	// Nothing is compressed: both ends are on one machine, and what is small on the way could be large in memory.
	strict := connectproto.NewJSONCodec()
	strict.UnmarshalOptions.DiscardUnknown = false
	connecthttp.Mount(mux, rpc, connecthttp.WithReadMaxBytes(maxBody), connecthttp.WithCompressors(),
		connecthttp.WithCodecs(connectproto.NewBinaryCodec(), strict))
	streams := map[string]bool{}
	for spec := range rpc.Specs() {
		streams[spec.Procedure] = spec.StreamType != connect.StreamTypeUnary
	}
	one := make(large, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(versionHeader, strconv.Itoa(Version))
		if got := r.Header.Get(versionHeader); got != "" && got != strconv.Itoa(Version) {
			refuseVersion(w, got)
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
			if err != nil { // the caller has left
				return
			}
			defer release()
		}
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), connectionKey{}, c)))
	})
}

// refuseVersion answers a program of another version. Those of version 2 and before, which do not speak the contract,
// read the body; later ones see the version in the header.
func refuseVersion(w http.ResponseWriter, got string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	b, err := json.Marshal(NewError(Invalid, fmt.Sprintf(
		"this agent speaks version %d of the protocol, the command version %q: use the heddle program the agent was "+
			"started with", Version, got)))
	if err == nil {
		_, _ = io.WriteString(w, string(b)+"\n") // a caller that has left needs no answer
	}
}

// large is held by the request with a large body that is being answered.
type large chan struct{}

// hold waits for the place of a request whose body is large, or may be; release gives it back.
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

// connectionKey is the key of a call's context for what sets the deadlines of its connection.
type connectionKey struct{}

// deadlines sets when a call's request has to be there, and its answer gone; zero is never.
func deadlines(ctx context.Context, read, write time.Time) error {
	c, ok := ctx.Value(connectionKey{}).(*http.ResponseController)
	if !ok {
		return nil
	}
	return errors.Join(c.SetReadDeadline(read), c.SetWriteDeadline(write))
}

// admit refuses requests that this agent does not understand as a whole: what it would ignore could be what the caller
// relies on. Then it has the request be read without haste, since the server goes on reading, to notice a caller that
// leaves.
func admit(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		return next(ctx, spec, &admitted{stream, ctx})
	}
}

// admitted is a call's stream whose requests are looked through.
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
