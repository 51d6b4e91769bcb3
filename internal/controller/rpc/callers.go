package rpc

import (
	"context"

	"connectrpc.com/connect/v2"

	"heddle/internal/identity"
)

// controllerOf is the controller that calls.
func controllerOf(ctx context.Context) (*identity.Peer, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	switch {
	case c.err != nil:
		return nil, connect.NewError(connect.CodePermissionDenied, c.err.Error())
	case c.peer == nil || c.peer.RenewOnly || c.peer.Name.Kind != identity.Controller:
		return nil, connect.NewError(connect.CodePermissionDenied, "this is for the controllers of the cluster")
	}
	return c.peer, nil
}

type callerKey struct{}

// caller is who calls.
type caller struct {
	peer    *identity.Peer // nil without a certificate
	err     error          // why the certificate shown does not count
	address string
}

// peerOf is the host that calls. One with an expired certificate may renew it and nothing else (RenewOnly).
func peerOf(ctx context.Context) (*identity.Peer, error) {
	c, _ := ctx.Value(callerKey{}).(caller)
	switch {
	case c.err != nil:
		return nil, connect.NewError(connect.CodePermissionDenied, c.err.Error())
	case c.peer == nil:
		return nil, connect.NewError(connect.CodeUnauthenticated,
			"a host shows its certificate: join the cluster first "+
				"(heddle host join)")
	case c.peer.Name.Kind != identity.Host:
		return nil, connect.NewError(connect.CodePermissionDenied, "this is for hosts")
	}
	return c.peer, nil
}

func addressOf(ctx context.Context) string {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.address
}
