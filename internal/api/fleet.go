package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api/wire"
)

// Fleet talks to a controller.
type Fleet struct {
	path    string
	base    string            // of URLs
	through http.RoundTripper // the transport of its connections
	codec   wire.Codec
	rpc     controllerv1connect.FleetServiceClient
	members controllerv1connect.MemberServiceClient
	accessCalls
	statusCalls
	fleetMoveCalls
	rootCalls
	historyCalls
	backupCalls
	rolloutCalls
	segmentCalls
	healthCalls
	// static is for static ports.
	static controllerv1connect.StaticPortServiceClient
	// moves is for ports that move from host to host.
	moves controllerv1connect.MoveServiceClient
}

// NewFleet makes a client of the controller behind a socket. It does not connect yet; each call does.
func NewFleet(socket string) *Fleet {
	return newFleet(socket, "http://controller", dialer(socket))
}

// newFleet makes a client of the controller at path, whose calls have URLs that begin with base.
func newFleet(path, base string, through http.RoundTripper) *Fleet {
	f := &Fleet{path: path, base: base, through: through}
	asking := &http.Client{Transport: awaited{"the controller at " + path, through}}
	rpc := connect.NewClient(connecthttp.NewTransport(asking, base,
		connecthttp.WithReadMaxBytes(maxAnswer), connecthttp.WithSendMaxBytes(maxBody), connecthttp.WithCompressors()))
	f.rpc = controllerv1connect.NewFleetServiceClient(rpc)
	f.members = controllerv1connect.NewMemberServiceClient(rpc)
	f.accessCalls = accessCalls{f, controllerv1connect.NewAccessServiceClient(rpc)}
	f.rootCalls = rootCalls{f, controllerv1connect.NewRootServiceClient(rpc)}
	f.historyCalls = historyCalls{f, controllerv1connect.NewHistoryServiceClient(rpc)}
	f.backupCalls = backupCalls{f, controllerv1connect.NewBackupServiceClient(rpc)}
	f.rolloutCalls = rolloutCalls{f, controllerv1connect.NewRolloutServiceClient(rpc)}
	f.healthCalls = healthCalls{f, controllerv1connect.NewHealthServiceClient(rpc)}
	f.segmentCalls = segmentCalls{f, controllerv1connect.NewSegmentServiceClient(rpc)}
	f.statusCalls = statusCalls{f, controllerv1connect.NewStatusServiceClient(rpc)}
	f.fleetMoveCalls = fleetMoveCalls{f, controllerv1connect.NewMoveServiceClient(rpc)}
	f.static = controllerv1connect.NewStaticPortServiceClient(rpc)
	f.moves = controllerv1connect.NewMoveServiceClient(rpc)
	return f
}

// call sends the request q to a controller, nil for an empty one, and reads the answer.
func call[T, Q, R any, PQ message[Q], PR message[R]](ctx context.Context, f *Fleet,
	do func(context.Context, PQ) (PR, error), q any) (answer T, err error) {
	m := PQ(new(Q))
	if err := f.codec.Put(q, m); err != nil {
		return answer, NewError(Invalid, err.Error())
	}
	r, err := do(ctx, m)
	if err != nil {
		return answer, f.explain(ctx, err)
	}
	if err := f.codec.Get(r, &answer); err != nil {
		return answer, fmt.Errorf("read the controller's answer: %w", err)
	}
	return answer, nil
}

// ErrNoController means that no controller is running there.
var ErrNoController = errors.New("no controller answers")

// unreachable reports whether an error means that the other side could not be reached.
func unreachable(err error) bool {
	var network *net.OpError
	return errors.As(err, &network)
}

// explain converts the error of a call for people.
func (f *Fleet) explain(ctx context.Context, err error) error {
	var own *tokenError
	switch {
	case errors.As(err, &own):
		return own.err
	case ctx.Err() != nil:
		return &unanswered{"the controller at " + f.path, "made", ctx.Err()}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w at %s: start heddle-controller there, or name another with --controller or "+
			"HEDDLE_CONTROLLER", ErrNoController, f.path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("no permission for the controller's socket %s: run the command as root", f.path)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("the controller at %s ended during the call: a change may be made or not (heddle "+
			"definition history); ask again, or another controller", f.path)
	case unreachable(err):
		return fmt.Errorf("ask the controller at %s: %w", f.path, err)
	}
	switch text := connectText(err); connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeAlreadyExists:
		return NewError(Invalid, text)
	case connect.CodeNotFound:
		return NewError(NotFound, text)
	default:
		return fmt.Errorf("the controller at %s: %s", f.path, text)
	}
}

// connectText returns the other side's text of an error.
func connectText(err error) string {
	var e *connect.Error
	if errors.As(err, &e) {
		return e.Message()
	}
	return err.Error()
}

// JoinTerms are the terms of a token by which a host joins.
type JoinTerms struct {
	// Labels are the labels of the host.
	Labels map[string]string `json:"labels"`
	// Lasts is how long the token is valid; 0 for an hour.
	Lasts time.Duration `json:"lasts"`
	// Replaces is the host whose place is taken; "" for a host beside those that there are.
	Replaces string `json:"replaces"`
}

// JoinToken lets one host join.
type JoinToken struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// JoinToken makes a token by which one host may join.
func (f *Fleet) JoinToken(ctx context.Context, q JoinTerms) (*JoinToken, error) {
	out, err := call[JoinToken, controllerv1.CreateJoinTokenRequest, controllerv1.CreateJoinTokenResponse](ctx, f,
		f.rpc.CreateJoinToken, q)
	return &out, err
}
