package rpc

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers/members"
	"heddle/internal/spec"
)

// memberCalls are what people call about controllers, and to confirm what a snapshot had.
type memberCalls struct {
	members.Service
	restored people
}

// ConfirmRestored confirms what a snapshot had of hosts and tokens.
func (c memberCalls) ConfirmRestored(ctx context.Context, q *controllerv1.ConfirmRestoredRequest) (
	*controllerv1.ConfirmRestoredResponse, error) {
	return c.restored.ConfirmRestored(ctx, q)
}

// membersOf is what answers people and controllers about the controllers of a server's cluster.
func membersOf(s *Server) members.Service {
	return members.Service{Store: s.Store, Etcd: s.Members, Log: s.Log, Authority: s.Authority, Roster: s.Roster,
		Guard: s.guard, Now: s.TLS.Now, Epoch: s.Epoch, Secret: s.Secret, Caller: controllerOf, From: addressOf,
		Standing: func(ctx context.Context) *controllerv1.GetControllerResponse { return s.standing(ctx, false) },
		Objects: func() int {
			set, _ := definition.Stored(s.Store)
			return set.Len()
		},
		ValidName: spec.ValidName, KeepToken: people{s}.keepToken, Redeem: s.redeem,
		Revoking:  oldListOf(s).revoking,
		ClockFits: func(ctx context.Context) bool { return s.issuing.Fits(ctx, health.Clocks.Doubted) },
		Join:      s.JoinCluster}
}

// JoinController makes the caller a controller of the cluster.
func (o others) JoinController(ctx context.Context, q *controllerv1.JoinControllerRequest) (
	*controllerv1.JoinControllerResponse, error) {
	return membersOf(o.Server).JoinController(ctx, q)
}

// AddMember makes the controller that calls a member of etcd.
func (o others) AddMember(ctx context.Context, q *controllerv1.AddMemberRequest) (*controllerv1.AddMemberResponse,
	error) {
	return membersOf(o.Server).AddMember(ctx, q)
}
