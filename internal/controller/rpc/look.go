package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/controller/proxy"
)

// lookPath is where people look at hosts: below it is the host's name, and then the path of a call of the agent's
// contract.
const lookPath = "/hosts/{host}/{service}/{method}"

const (
	// mostRequest bounds a request that is passed on, in bytes.
	mostRequest = 1 << 20
	// readerTime is how long somebody who asked may take to read a part of the answer, or to send the request.
	readerTime = 30 * time.Second
	// answerTime bounds how long a host may take for an answer that is no stream.
	answerTime = 10 * time.Minute
)

// looks passes calls that look on to hosts.
type looks struct {
	*Server
	slots  chan struct{} // one for each call under way
	errors *connecthttp.ErrorWriter
	// others: the callers are other controllers, which look for the host themselves.
	others bool
	// captures are those that people have begun by way of this controller.
	captures *proxy.Captures
}

// newLooks answers people or, where others says so, other controllers about hosts that are connected here.
func newLooks(s *Server, others bool) *looks {
	return &looks{s, make(chan struct{}, mostCalls), connecthttp.NewErrorWriter(), others, &proxy.Captures{}}
}

// ServeHTTP passes a call on, and the answer back.
func (l *looks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began, err := l.pass(w, r)
	switch {
	case err == nil, r.Context().Err() != nil:
	case began:
		l.Log.Info("an answer of a host was cut off", "host", r.PathValue("host"), "call", procedureOf(r), "err", err)
		panic(http.ErrAbortHandler) // so that nobody takes it for complete
	default:
		w.Header().Set(api.VersionHeader, strconv.Itoa(api.Version))
		_ = l.errors.Write(w, r, api.Detailed(err)) // a caller that has left needs no answer
	}
}

// procedureOf is the call of the agent's contract that is asked for.
func procedureOf(r *http.Request) string {
	return "/" + r.PathValue("service") + "/" + r.PathValue("method")
}

// pass passes a call on; began says that the answer has begun.
func (l *looks) pass(w http.ResponseWriter, r *http.Request) (began bool, err error) {
	if l.others {
		if _, err := controllerOf(r.Context()); err != nil {
			return false, err
		}
	}
	procedure := procedureOf(r)
	if api.LookOf(procedure) == api.LooksNot && !(l.others && (api.OfMove(procedure) || api.OfBenchmark(procedure))) {
		return false, connect.NewError(connect.CodePermissionDenied,
			fmt.Sprintf("a controller passes on only calls that look, which %s does not: run the command on the host",
				procedure))
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return false, connect.NewError(connect.CodeResourceExhausted,
			"too many calls at the same time: ask again later")
	}
	times := http.NewResponseController(w)
	if err := times.SetReadDeadline(time.Now().Add(readerTime)); err != nil {
		return false, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostRequest))
	if err != nil {
		return false, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("read the request, which has at most "+
			"%d bytes: %v", mostRequest, err))
	}
	if err := times.SetReadDeadline(time.Time{}); err != nil {
		return false, err
	}
	begin := proxy.Begin(r, procedure, body, api.CallHeaders(), l.others)
	ctx := r.Context()
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/connect+") { // no stream
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, answerTime)
		defer cancel()
	}
	if !l.others { // the other controller has its guard
		to, done, refused := l.mayLook(ctx, w, r.PathValue("host"), begin)
		if refused != nil {
			return false, refused
		}
		w = to
		defer func() { done(failure(r.Context(), err)) }()
	}
	q, err := l.fleet.call(r.PathValue("host"), begin)
	if connect.CodeOf(err) == connect.CodeUnavailable && !l.others {
		return l.elsewhere(ctx, w, r.PathValue("host"), begin, err)
	}
	if err != nil {
		return false, err
	}
	defer q.close()
	return q.copy(ctx, w, times)
}

// failure is why a call counts as failed in the audit log. A caller that leaves has seen what they wanted, as with a
// capture that they end; one whose access has ended meanwhile did not leave.
func failure(caller context.Context, err error) error {
	if errors.Is(context.Cause(caller), context.Canceled) {
		return nil
	}
	return err
}

// copy copies the answer.
func (q *call) copy(ctx context.Context, w http.ResponseWriter, times *http.ResponseController) (began bool,
	err error) {
	for {
		a, err := q.receive(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return began, connect.NewError(connect.CodeDeadlineExceeded, "the host did not answer in time")
		case err != nil:
			return began, err
		case a.GetBroken() != "":
			return began, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("%v: %s", errBroken, a.GetBroken()))
		}
		b := a.GetBegin()
		if began == (b != nil) || b != nil && (b.GetStatus() < 200 || b.GetStatus() > 599) {
			return began, connect.NewError(connect.CodeInternal, "the host's answer makes no sense")
		}
		if b != nil {
			began = true
			for _, name := range api.AnswerHeaders() {
				if v := b.GetHeaders()[name]; v != "" {
					w.Header().Set(name, v)
				}
			}
			w.WriteHeader(int(b.GetStatus()))
		}
		if _, err := w.Write(a.GetData()); err != nil {
			return began, fmt.Errorf("it was read too slowly: %w", err)
		}
		if a.GetEnd() {
			return began, nil
		}
		if err := times.Flush(); err != nil {
			return began, fmt.Errorf("it was read too slowly: %w", err)
		}
	}
}

// call begins a call to the host of that name.
func (f *fleet) call(name string, begin *controllerv1.HostCallBegin) (*call, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.names[name]
	switch {
	case h == nil:
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("the cluster has no host %q: see heddle host list", name))
	case h.conn == nil:
		return nil, connect.NewError(connect.CodeUnavailable, "it is not connected to a controller")
	case !h.conn.answers:
		return nil, connect.NewError(connect.CodeUnimplemented, fmt.Sprintf("its agent (version %s) answers no calls "+
			"that come by way of a controller", h.agent))
	}
	q, err := h.conn.call(begin)
	if err == nil {
		q.expect(f)
	}
	return q, err
}
