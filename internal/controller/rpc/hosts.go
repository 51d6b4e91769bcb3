package rpc

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
)

// everywhere is the fleet as all controllers together know it.
func (s *Server) everywhere() *everywhere { return &everywhere{s.fleet, s.Roster, s.Log} }

// askHosts asks the other controllers about hosts.
func (s *Server) askHosts(ctx context.Context, q *controllerv1.GetHostsHereRequest) *fanout.Answers {
	return s.everywhere().askHosts(ctx, q)
}

// hostsHere is what this controller has heard of hosts.
func (s *Server) hostsHere(names []string, reports bool) []*controllerv1.HostHere {
	return s.everywhere().hostsHere(names, reports)
}

// shown is a host as people see it, wherever it is connected. The caller holds the lock of the fleet.
func (s *Server) shown(h *host, e *fanout.Answers) *controllerv1.Host {
	return s.everywhere().shown(h, e)
}

// await waits until the hosts have that revision active, or cannot, for as long as patience, and says who has not.
func (s *Server) await(ctx context.Context, revision int64, names []string, patience time.Duration) (
	[]*controllerv1.HostProblem, error) {
	return s.everywhere().await(ctx, revision, names, patience)
}

// catchUp returns when this controller has all that was written before the call, by whichever controller.
func (s *Server) catchUp(ctx context.Context) error { return s.everywhere().catchUp(ctx) }

// fresh is catchUp for those who read: it returns why what they read may be old, "" where it is not.
func (s *Server) fresh(ctx context.Context) string { return s.everywhere().fresh(ctx) }
