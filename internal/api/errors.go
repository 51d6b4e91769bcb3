package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/api/wire"
)

// ErrorKind says whose fault an error is.
type ErrorKind string

// The kinds of error.
const (
	Internal ErrorKind = "internal" // the agent or the kernel failed
	Invalid  ErrorKind = "invalid"  // the request is wrong; nothing was changed
	NotFound ErrorKind = "notFound" // the requested object does not exist
	Reverted ErrorKind = "reverted" // the change was made, cut the host off, and was undone (S81)
)

// Error is what went wrong, one line per fault.
type Error struct {
	Kind  ErrorKind `json:"kind"`
	Lines []string  `json:"lines"`
	// Trial is the trial of a change that was undone.
	Trial *Trial `json:"trial,omitempty"`
}

func (e *Error) Error() string { return strings.Join(e.Lines, "\n") }

// NewError returns an error with these lines, one per fault.
func NewError(kind ErrorKind, lines ...string) *Error { return &Error{Kind: kind, Lines: lines} }

// asError converts any error to one that can be sent.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return NewError(Internal, strings.Split(err.Error(), "\n")...)
}

// refusal returns an error in the form in which it is sent: a code of Connect, with the error of the contract.
func refusal(err error) error {
	e := asError(err)
	code := map[ErrorKind]connect.Code{Invalid: connect.CodeInvalidArgument, NotFound: connect.CodeNotFound,
		Reverted: connect.CodeAborted}[e.Kind]
	if code == 0 {
		code = connect.CodeInternal
	}
	out := connect.NewError(code, strings.ToValidUTF8(e.Error(), "\uFFFD"))
	m := &agentv1.Error{}
	var c wire.Codec
	if c.Put(e, m) != nil {
		return out
	}
	if d, err := connectproto.NewErrorDetail(m); err == nil {
		out = out.WithDetail(d)
	}
	return out
}

// refused returns the error of the contract that err contains, nil for none.
func refused(err error) *Error {
	var sent *connect.Error
	if !errors.As(err, &sent) {
		return nil
	}
	for _, d := range sent.Details() {
		v, err := connectproto.UnmarshalErrorDetail(d)
		m, ok := v.(*agentv1.Error)
		if err != nil || !ok {
			continue
		}
		e := &Error{}
		var c wire.Codec
		if c.Get(m, e) == nil && len(e.Lines) > 0 {
			return e
		}
	}
	return nil
}

// ErrNoAgent means that no agent of that name is running.
var ErrNoAgent = errors.New("no agent is running")

// ErrEnded means that the agent ended before it answered.
var ErrEnded = errors.New("the agent ended before it answered")

// unanswered is a call of which the answer was not awaited.
type unanswered struct {
	// who was asked, and what a change has become if that was done.
	who, done string
	why       error // of the context
}

func (e *unanswered) Error() string {
	if errors.Is(e.why, context.Canceled) {
		return fmt.Sprintf("interrupted before %s has answered: a change may be %s or not", e.who, e.done)
	}
	return fmt.Sprintf("%s has not answered in time: it is busy or hangs (look at its log); a change may be %s or not",
		e.who, e.done)
}

func (e *unanswered) Unwrap() error { return e.why }

// explain distinguishes the errors that an operator meets: the agent refuses a request, has another version, does not
// run, has ended, or does not permit access.
func (c *Client) explain(ctx context.Context, err error) error {
	if c.remote != nil {
		return c.remote.explain(ctx, err)
	}
	var other *versionError
	switch e := refused(err); {
	case e != nil:
		return e
	case errors.As(err, &other):
		return other
	case ctx.Err() != nil:
		return &unanswered{"the agent at " + c.path, "active", ctx.Err()}
	case connect.CodeOf(err) == connect.CodeDeadlineExceeded:
		return &unanswered{"the agent at " + c.path, "active", context.DeadlineExceeded}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s: start one with \"heddle agent\", or name another with --agent or HEDDLE_AGENT",
			ErrNoAgent, c.path)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w at %s: the change may be active or not; ask again when it runs", ErrEnded, c.path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("no permission for the agent's socket %s: run the command as root", c.path)
	case connect.CodeOf(err) == connect.CodeUnimplemented:
		return fmt.Errorf("the agent at %s does not know this command: it is of another version; restart it with "+
			"this program", c.path)
	}
	return fmt.Errorf("ask the agent at %s: %w", c.path, err)
}
