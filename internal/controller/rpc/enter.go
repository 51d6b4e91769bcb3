package rpc

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/identity"
)

// hostStream is a stream of a host, by what the host says in it.
type hostStream[M any] interface{ Receive() (*M, error) }

// entry is a host that was let in to one of its streams.
type entry struct {
	peer *identity.Peer
	// end ends the stream with a reason, which its context then has.
	end context.CancelCauseFunc
}

// enter lets a host in to one of its streams, and follows it until it ends: its context ends when the host loses its
// right to be there.
func enter(ctx context.Context, s *Server, follow func(context.Context, entry) error) error {
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
	return follow(ctx, entry{peer, cancel})
}

// hear is what a host says first in a stream. may is the error where this controller can't answer now.
func hear[M any](ctx context.Context, s *Server, e entry, stream hostStream[M], may func() error) (*M, error) {
	first, err := firstMessage(ctx, stream, s.HelloTime)
	if err == nil {
		err = may()
	}
	if err == nil {
		err = s.present(ctx, e.peer.Name.ID)
	}
	return first, err
}

// besideSlice lets a host in to a stream that it has beside that of its slice, and follows it until it ends. may is as
// of hear. A host whose certificate has to be renewed first is refused. follow gets the host's id and name, and what it
// said first.
func besideSlice[M any](ctx context.Context, s spanning, stream hostStream[M], may func() error,
	follow func(ctx context.Context, id, name string, first *M) error) error {
	return enter(ctx, s.Server, func(ctx context.Context, e entry) error {
		if e.peer.RenewOnly {
			return connect.NewError(connect.CodePermissionDenied,
				"the host's certificate does not count now: it is renewed first, by FollowSlice and RenewHost")
		}
		first, err := hear(ctx, s.Server, e, stream, may)
		if err != nil {
			return err
		}
		id := e.peer.Name.ID
		err = follow(ctx, id, segmenting{s.fleet}.nameOf(id), first)
		switch {
		case ctx.Err() != nil:
			return ended(ctx)
		case connect.CodeOf(err) == connect.CodeUnknown && err != nil:
			return connect.NewError(connect.CodeInvalidArgument, err.Error())
		}
		return err
	})
}

// firstMessage is the first message of a host's stream. A host that does not say it in time is no longer listened to.
func firstMessage[M any](ctx context.Context, stream hostStream[M], within time.Duration) (*M, error) {
	type message struct {
		m   *M
		err error
	}
	got := make(chan message, 1)
	go func() { // ends with the stream
		m, err := stream.Receive()
		got <- message{m, err}
	}()
	select {
	case first := <-got:
		return first.m, first.err
	case <-time.After(within):
		return nil, connect.NewError(connect.CodeDeadlineExceeded, "the host did not say hello")
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}
