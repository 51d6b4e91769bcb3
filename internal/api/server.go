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
	"strings"
	"syscall"
	"time"
)

// versionHeader carries the protocol version in both directions.
const versionHeader = "Heddle-Api"

// maxBody bounds a request, in bytes: the largest configuration file and its JSON quoting.
const maxBody = 40 << 20

// What keeps callers that are slow, many or too large from filling the agent's memory.
const (
	// patience is how long a request's body, or an answer, may be under way.
	patience = 30 * time.Second
	// smallBody is what every request may have; one that is larger is read when no other such is, in bytes.
	smallBody = 1 << 20
)

// SocketPath is where the agent of that name listens.
func SocketPath(runDir, name string) string { return filepath.Join(runDir, name+".sock") }

// Listen makes the agent's socket, readable and writable by its owner alone. The caller holds the agent's instance lock, so a
// socket that is there was left by a dead one.
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

// none is the body of requests and answers that have nothing to say.
type none struct{}

// handler answers requests; those that follow something end with ctx.
func handler(ctx context.Context, s Service) http.Handler {
	mux := http.NewServeMux()
	get(mux, "/state", s.State)
	get(mux, "/stats", s.Stats)
	get(mux, "/accounts", s.Accounts)
	get(mux, "/macs", s.MACs)
	get(mux, "/metrics", s.Metrics)
	post(mux, "/trace", s.Trace)
	post(mux, "/advise", s.Advise)
	mux.HandleFunc("POST /events", func(w http.ResponseWriter, r *http.Request) { serveEvents(ctx, w, r, s) })
	mux.HandleFunc("POST /capture", func(w http.ResponseWriter, r *http.Request) { serveCapture(ctx, w, r, s) })
	act(mux, "/capture/end", s.EndCapture)
	post(mux, "/apply", s.Apply)
	post(mux, "/ports/connect", s.Connect)
	post(mux, "/ports/reconnect", s.Reconnect)
	post(mux, "/ports/connect-incoming", s.ConnectIncoming)
	act(mux, "/ports/activate", s.Activate)
	act(mux, "/ports/expect", s.Expect)
	act(mux, "/ports/disconnect", s.Disconnect)
	post(mux, "/ports/block", s.Block)
	post(mux, "/ports/move", s.Move)
	get(mux, "/progress", s.Progress)
	handleHostPorts(mux, s)
	handleTrials(mux, s)
	handleFlows(ctx, mux, s)
	act(mux, "/stop", func(ctx context.Context, _ none) error { return s.Stop(ctx) })
	one := make(large, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), largeKey{}, one))
		w.Header().Set(versionHeader, strconv.Itoa(Version))
		if got := r.Header.Get(versionHeader); got != strconv.Itoa(Version) {
			answer(w, nil, NewError(Invalid, fmt.Sprintf(
				"this agent speaks version %d of the protocol, the command version %q: use the heddle program the agent was started with", Version, got)))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func get[T any](mux *http.ServeMux, path string, f func(context.Context) (T, error)) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r.Context())
		answer(w, v, err)
	})
}

func post[Q, T any](mux *http.ServeMux, path string, f func(context.Context, Q) (T, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		release, err := hold(r)
		if err != nil { // the caller has left
			return
		}
		defer release()
		q, err := request[Q](w, r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		v, err := f(r.Context(), q)
		answer(w, v, err)
	})
}

// large is held by the request with a large body that is being answered.
type large chan struct{}

// largeKey is where a request's context has its server's large.
type largeKey struct{}

// hold waits for the place of a request whose body is large, or may be; release gives it back.
func hold(r *http.Request) (release func(), err error) {
	l, ok := r.Context().Value(largeKey{}).(large)
	if !ok || r.ContentLength >= 0 && r.ContentLength <= smallBody {
		return func() {}, nil
	}
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// request reads a request's body, within patience.
func request[Q any](w http.ResponseWriter, r *http.Request) (Q, error) {
	var q Q
	c := http.NewResponseController(w)
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return q, err
	}
	body := http.MaxBytesReader(w, r.Body, maxBody)
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(&q)
	if t, ok := any(&q).(interface{ takeBehind(string) }); ok && err == nil {
		err = readBehind(d, body, t.takeBehind)
	}
	if err != nil {
		_, _ = io.Copy(io.Discard, body) // a caller that is still writing would see a broken pipe in place of the answer
		return q, NewError(Invalid, "unreadable request: "+err.Error())
	}
	// The server goes on reading, to notice a caller that leaves.
	return q, c.SetReadDeadline(time.Time{})
}

// readBehind reads what comes behind the JSON value that d has read, and a newline.
func readBehind(d *json.Decoder, body io.Reader, take func(string)) error {
	var b strings.Builder
	if _, err := io.Copy(&b, io.MultiReader(d.Buffered(), body)); err != nil {
		return err
	}
	content, ok := strings.CutPrefix(b.String(), "\n")
	if !ok && content != "" {
		return errors.New("a newline ends the JSON")
	}
	take(content)
	return nil
}

func act[Q any](mux *http.ServeMux, path string, f func(context.Context, Q) error) {
	post(mux, path, func(ctx context.Context, q Q) (none, error) { return none{}, f(ctx, q) })
}

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		e := asError(err)
		w.WriteHeader(map[ErrorKind]int{Invalid: http.StatusUnprocessableEntity, NotFound: http.StatusNotFound, Internal: http.StatusInternalServerError, Reverted: http.StatusConflict}[e.Kind])
		v = e
	}
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"kind":"internal","lines":["the answer could not be written as JSON"]}`)
	}
	// A client that went away, or does not read, needs no answer.
	if http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) == nil {
		_, _ = io.WriteString(w, string(b)+"\n")
	}
}
