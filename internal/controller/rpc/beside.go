package rpc

import (
	"context"

	"connectrpc.com/connect/v2"
)

// besideSlice lets a host in to a stream that it has beside that of its slice, and follows it until it ends. may is the
// error where this controller can't answer now. A host whose certificate has expired is refused. follow gets the
// host's id and name, and what it said first.
func besideSlice[M any](ctx context.Context, s spanning, stream interface{ Receive() (*M, error) }, may func() error,
	follow func(ctx context.Context, id, name string, first *M) error) error {
	peer, err := peerOf(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := s.gate.Enter(peer, cancel)
	if err != nil {
		return connect.NewError(connect.CodePermissionDenied, err.Error())
	}
	defer leave()
	if peer.RenewOnly {
		return connect.NewError(connect.CodePermissionDenied, "the host's certificate has expired")
	}
	first, err := firstMessage(ctx, stream, s.HelloTime)
	if err == nil {
		err = may()
	}
	if err == nil {
		err = s.present(ctx, peer.Name.ID)
	}
	if err != nil {
		return err
	}
	err = follow(ctx, peer.Name.ID, segmenting{s.fleet}.nameOf(peer.Name.ID), first)
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case connect.CodeOf(err) == connect.CodeUnknown && err != nil:
		return connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	return err
}
