package rpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/platform/rpcerrors"
)

// Bounds of the calls that a controller makes at agents itself, for moves.
const (
	// agentTime bounds one call: the agent may ask a controller for a static port meanwhile.
	agentTime = 20 * time.Second
	// agentAnswer bounds an answer, in bytes.
	agentAnswer = 4 << 20
)

// agentWay brings calls of the agent's contract to a host, wherever it is connected. It is for one call.
type agentWay struct {
	*Server
	host string
	// err is why the call did not come to the host.
	err error
}

// askAgent makes one call at a host's agent, one of those that moves need.
func (s *Server) askAgent(ctx context.Context, host string, f func(context.Context, *connect.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, agentTime)
	defer cancel()
	code, text := rpcerrors.CodeAndText(callAgent(ctx, s, host, f))
	if code == 0 {
		return nil
	}
	switch code {
	case connect.CodePermissionDenied, connect.CodeUnimplemented:
		code, text = connect.CodeUnimplemented, "its agent takes no part in moves that a controller makes: update it"
	case connect.CodeDeadlineExceeded, connect.CodeUnavailable:
		code, text = connect.CodeUnavailable, "it does not answer: "+text
	case connect.CodeInvalidArgument: // the request is as it should be: the host can't do it
		code = connect.CodeFailedPrecondition
	}
	return connect.NewError(code, fmt.Sprintf("host %s: %s", host, text))
}

// callAgent makes one call at a host's agent.
func callAgent(ctx context.Context, s *Server, host string,
	f func(context.Context, *connect.Client) error) error {
	way := &agentWay{Server: s, host: host}
	err := f(ctx, connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: way}, "http://agent",
		connecthttp.WithReadMaxBytes(agentAnswer), connecthttp.WithSendMaxBytes(mostRequest),
		connecthttp.WithCompressors())))
	if err != nil && way.err != nil {
		err = way.err
	}
	return err
}

// RoundTrip passes a request on, and returns the whole answer.
func (w *agentWay) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	defer func() { w.err = err }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	begin := &controllerv1.HostCallBegin{Procedure: r.URL.Path, Body: body,
		Headers: map[string]string{api.VersionHeader: strconv.Itoa(api.Version)}}
	for _, name := range api.CallHeaders() {
		if v := r.Header.Get(name); v != "" {
			begin.Headers[name] = v
		}
	}
	q, err := w.fleet.call(w.host, begin)
	switch {
	case connect.CodeOf(err) == connect.CodeUnavailable && err != nil:
		return w.elsewhere(r.Context(), begin, err)
	case err != nil:
		return nil, err
	}
	defer q.close()
	return q.whole(r.Context())
}

// whole is the answer of a host as one of HTTP.
func (q *call) whole(ctx context.Context) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1}
	var data bytes.Buffer
	for {
		a, err := q.receive(ctx)
		switch {
		case err != nil:
			return nil, err
		case a.GetBroken() != "":
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("%v: %s", errBroken, a.GetBroken()))
		case data.Len()+len(a.GetData()) > agentAnswer:
			return nil, connect.NewError(connect.CodeInternal, "the host's answer is too long")
		}
		if b := a.GetBegin(); b != nil {
			resp.StatusCode = int(b.GetStatus())
			for _, name := range api.AnswerHeaders() {
				if v := b.GetHeaders()[name]; v != "" {
					resp.Header.Set(name, v)
				}
			}
		}
		data.Write(a.GetData())
		if a.GetEnd() {
			resp.Body, resp.ContentLength = io.NopCloser(&data), int64(data.Len())
			return resp, nil
		}
	}
}

// elsewhere passes a request on to the controller that the host is connected to.
func (w *agentWay) elsewhere(ctx context.Context, q *controllerv1.HostCallBegin, away error) (*http.Response, error) {
	k, name := (&looks{Server: w.Server}).linkOf(ctx, w.host)
	if k == nil {
		return nil, away
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+k.Address+"/hosts/"+url.PathEscape(w.host)+
		q.GetProcedure(), bytes.NewReader(q.GetBody()))
	if err != nil {
		return nil, err
	}
	for name, value := range q.GetHeaders() {
		r.Header.Set(name, value)
	}
	resp, err := k.Transport.RoundTrip(r)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("controller %s, to which it is connected, "+
			"does not answer: %v", name, err))
	}
	return resp, nil
}
