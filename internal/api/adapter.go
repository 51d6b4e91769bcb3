package api

import (
	"context"
	"errors"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/api/wire"
)

// adapter answers the calls of the contract with the answers of a Service.
type adapter struct {
	service Service
	codec   wire.Codec
	ending  context.Context // ends with the server: streams end then
}

func (a *adapter) register(s *connect.Server) {
	agentv1connect.RegisterStateServiceHandler(s, a)
	agentv1connect.RegisterStatsServiceHandler(s, a)
	agentv1connect.RegisterChangeServiceHandler(s, a)
	agentv1connect.RegisterPortServiceHandler(s, a)
	agentv1connect.RegisterUplinkServiceHandler(s, a)
	agentv1connect.RegisterClusterServiceHandler(s, clusterAdapter{a})
	agentv1connect.RegisterBenchmarkServiceHandler(s, clusterAdapter{a})
	agentv1connect.RegisterHostPortServiceHandler(s, a)
	agentv1connect.RegisterEventServiceHandler(s, a)
	agentv1connect.RegisterFlowServiceHandler(s, a)
	agentv1connect.RegisterCaptureServiceHandler(s, a)
	agentv1connect.RegisterTraceServiceHandler(s, a)
	agentv1connect.RegisterAdviseServiceHandler(s, a)
	agentv1connect.RegisterConfigServiceHandler(s, a)
	agentv1connect.RegisterMoveServiceHandler(s, moveAdapter{a})
	agentv1connect.RegisterNeighbourServiceHandler(s, neighbourAdapter{a})
}

// none is the empty request or answer of a call.
type none struct{}

// answer calls f with a request, and writes f's answer.
func answer[R, Q, T any, PR message[R]](ctx context.Context, a *adapter, m proto.Message,
	f func(context.Context, Q) (T, error)) (PR, error) {
	var q Q
	if err := a.codec.Get(m, &q); err != nil {
		return nil, refusal(NewError(Invalid, err.Error()))
	}
	v, err := f(ctx, q)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // the caller's deadline, sent with the call
		return nil, connect.NewError(connect.CodeDeadlineExceeded, "the caller's time is over")
	}
	if err != nil {
		return nil, refusal(err)
	}
	r := PR(new(R))
	if err := a.codec.PutAnswer(v, r); err != nil {
		return nil, refusal(err)
	}
	return r, nil
}

// bare adapts f for a call without a request.
func bare[T any](f func(context.Context) (T, error)) func(context.Context, none) (T, error) {
	return func(ctx context.Context, _ none) (T, error) { return f(ctx) }
}

// done adapts f for a call without an answer.
func done[Q any](f func(context.Context, Q) error) func(context.Context, Q) (none, error) {
	return func(ctx context.Context, q Q) (none, error) { return none{}, f(ctx, q) }
}

// answers receives the answers of a call, one after the other.
type answers[R any] interface{ Send(*R) error }

// each calls f with a request, and sends what it emits until the caller or the server ends.
func each[R, Q, T any, PR message[R]](ctx context.Context, a *adapter, m proto.Message, out answers[R],
	f func(context.Context, Q, func(T) error) error) error {
	var q Q
	if err := a.codec.Get(m, &q); err != nil {
		return refusal(NewError(Invalid, err.Error()))
	}
	ctx, cancel := a.following(ctx)
	defer cancel()
	err := f(ctx, q, func(v T) error {
		r := PR(new(R))
		if err := a.codec.PutAnswer(v, r); err != nil {
			return err
		}
		return out.Send((*R)(r))
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return refusal(err)
}

// following returns ctx for a call that follows something: it also ends with the server.
func (a *adapter) following(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.ending, cancel)
	return ctx, func() { stop(); cancel() }
}
