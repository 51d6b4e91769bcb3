package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
)

// ErrAway says that a host is not connected to a controller, or was not long enough to answer.
var ErrAway = errors.New("the host does not answer")

// AwayError is of one host.
type AwayError struct {
	Host string
	// Why in words.
	Why string
}

func (e *AwayError) Error() string { return fmt.Sprintf("host %s does not answer: %s", e.Host, e.Why) }
func (e *AwayError) Unwrap() error { return ErrAway }

// remote is a host that is asked by way of a controller.
type remote struct {
	fleet *Fleet
	host  string
}

// Host is the agent of a host, asked by way of the controller. Of its calls those pass that look.
func (f *Fleet) Host(name string) *Client {
	base := strings.TrimSuffix(f.base, "/") + "/hosts/" + url.PathEscape(name)
	asking := &http.Client{Transport: awaited{"host " + name, versioned{f.through}}}
	c := newClient(f.path, connect.NewClient(connecthttp.NewTransport(asking, base,
		connecthttp.WithReadMaxBytes(maxAnswer), connecthttp.WithSendMaxBytes(maxBody),
		connecthttp.WithCompressors())))
	c.remote = &remote{f, name}
	return c
}

// ofTheWay reports whether an error says that the call did not come to the host, or its answer not back: no agent
// answers with such a code.
func ofTheWay(c connect.Code) bool {
	return c == connect.CodeUnavailable || c == connect.CodeUnimplemented || c == connect.CodeDeadlineExceeded
}

// explain is an error of a call for people, of a host that is asked by way of a controller.
func (r *remote) explain(ctx context.Context, err error) error {
	var other *versionError
	var own *tokenError
	switch e := refused(err); {
	case errors.As(err, &own):
		return own.err
	case e != nil && !ofTheWay(connect.CodeOf(err)):
		return e
	case errors.As(err, &other):
		return fmt.Errorf("host %s: %w", r.host, other)
	case ctx.Err() != nil:
		return &AwayError{r.host, "gave up waiting for the answer"}
	}
	switch text := connectText(err); connect.CodeOf(err) {
	case connect.CodeDeadlineExceeded:
		return &AwayError{r.host, "gave up waiting for the answer"}
	case connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeResourceExhausted,
		connect.CodeInvalidArgument:
		return NewError(Invalid, text)
	case connect.CodeNotFound:
		return NewError(NotFound, text)
	case connect.CodeUnimplemented:
		return &AwayError{r.host, text}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("host %s: %w: the connection of the host or of the controller was lost, or the answer was "+
			"read too slowly", r.host, ErrEnded)
	case unreachable(err):
		return r.fleet.explain(ctx, err)
	case connect.CodeOf(err) == connect.CodeUnavailable:
		return &AwayError{r.host, connectText(err)}
	}
	return fmt.Errorf("ask host %s by way of the controller: %w", r.host, err)
}
