package rpc

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/health"
	"heddle/internal/controller/peers"
)

// readingTime is for how long it counts what another controller's clock has shown.
const readingTime = 10 * time.Second

// issuing is the half of a server that makes certificates of hosts.
type issuing struct{ *Server }

// may refuses to make a certificate where this controller's clock is so far ahead of those of most other
// controllers that they would refuse it.
func (s issuing) may(ctx context.Context) error {
	by, wrong := health.TooFarAhead(s.othersAhead(ctx))
	if !wrong {
		return nil
	}
	s.Log.Error("no certificate is made: this controller's clock is too far ahead of those of the other controllers",
		"ahead", by.Round(time.Minute))
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("controller %s makes no certificates: its "+
		"clock is %s ahead of those of most other controllers, which would refuse them; correct the clock there, or "+
		"ask another controller", peers.NameOf(s.This), by.Round(time.Minute)))
}

// othersAhead is by how much the clocks of the other controllers that answer are ahead of this one's. A clock from
// before the cluster began says nothing but that it is wrong.
func (s issuing) othersAhead(ctx context.Context) (ahead []time.Duration) {
	var old []peers.Controller
	for _, c := range s.Others() {
		if at := s.ClockOf(c.ID); at == nil || time.Since(at.Heard) > readingTime {
			old = append(old, c)
		}
	}
	peers.AskThese(ctx, s.Roster, old, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.GetControllerResponse,
		error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{})
	})
	began := s.Authority.Trust().Roots[0].NotBefore
	for _, c := range s.Others() {
		at := s.ClockOf(c.ID)
		if at != nil && time.Since(at.Heard) <= readingTime && at.Theirs.After(began) {
			ahead = append(ahead, at.Theirs.Sub(at.Mine))
		}
	}
	return ahead
}
