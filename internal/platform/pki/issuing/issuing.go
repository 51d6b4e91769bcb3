package issuing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers"
)

// ReadingTime is for how long it counts what another controller's clock has shown.
const ReadingTime = 10 * time.Second

// Guard says whether certificates of hosts may be made.
type Guard struct {
	Clocks
	Roster *peers.Roster
	Log    *slog.Logger
}

// May refuses to make a certificate where this controller's clock is so far from those of most other controllers, or
// of most hosts, that one of them is wrong (health.Clocks.Against): the certificate would begin too late, or end too
// early. What cannot be taken back, such as a new root, or the removal of what has expired by this clock, is refused
// also where a single host says so (health.Clocks.Doubted).
func (g Guard) May(ctx context.Context, wrongBy func(health.Clocks) (health.Off, bool)) error {
	return g.refused(g.unless(ctx, g.Ahead("", nil), wrongBy))
}

// Fits reports whether May would allow it, for what is left out otherwise: nothing is refused, and nothing is logged.
func (g Guard) Fits(ctx context.Context, wrongBy func(health.Clocks) (health.Off, bool)) bool {
	return g.unless(ctx, g.Ahead("", nil), wrongBy) == nil
}

// MayRenew is May for a host, which says what its clock shows. A certificate that begins later than now was made by a
// controller whose clock was ahead, or this clock is behind: the host's has to say which.
func (g Guard) MayRenew(ctx context.Context, p *identity.Peer, now *timestamppb.Timestamp) error {
	its := g.In(now)
	all := g.Ahead(p.Name.ID, its)
	err := g.unless(ctx, all, health.Clocks.Against)
	if err == nil && its != nil && len(all) == 1 { // nobody but the host itself says anything
		err = g.unless(ctx, all, health.Clocks.Doubted)
	}
	if err != nil || !p.Early {
		return g.refused(err)
	}
	if its != nil && its.theirs.Sub(its.mine).Abs() <= identity.Backdate {
		return nil
	}
	shows := "does not say what it shows"
	if its != nil {
		shows = "shows " + its.theirs.UTC().Format(time.DateTime) + " UTC"
	}
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("the certificate of this host begins on %s "+
		"UTC, which is later than the clock of controller %s shows, %s UTC, and the host's clock %s: correct the "+
		"clock that is wrong, and the certificate is renewed by itself",
		p.Certificate.NotBefore.UTC().Format(time.DateTime),
		peers.NameOf(g.Roster.This), g.Now().UTC().Format(time.DateTime), shows))
}

// unless refuses where the clocks of the other controllers, or of hosts, say that this controller's is wrong.
func (g Guard) unless(ctx context.Context, hosts []time.Duration,
	wrongBy func(health.Clocks) (health.Off, bool)) error {
	off, wrong := wrongBy(health.Clocks{Controllers: g.othersAhead(ctx), Hosts: hosts})
	if !wrong {
		return nil
	}
	what, remedy := "no certificates", "correct the clock there, or ask another controller"
	if off.Hosts {
		remedy = "correct the clock that is wrong, the controller's or those of the hosts"
	}
	if off.Alone {
		what, remedy = "no certificates in this case", "correct the clock that is wrong, the controller's or the host's"
	}
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("controller %s makes %s: its clock is %s; %s",
		peers.NameOf(g.Roster.This), what, off, remedy))
}

// refused logs why a certificate is not made, where it is not.
func (g Guard) refused(err error) error {
	if err != nil {
		g.Log.Error("no certificate is made: this controller's clock is too far from others", "why", err)
	}
	return err
}

// othersAhead is by how much the clocks of the other controllers that answer are ahead of this one's. A clock from
// before the cluster began says nothing but that it is wrong.
func (g Guard) othersAhead(ctx context.Context) (ahead []time.Duration) {
	var old []peers.Controller
	for _, c := range g.Roster.Others() {
		if at := g.Roster.ClockOf(c.ID); at == nil || time.Since(at.Heard) > ReadingTime {
			old = append(old, c)
		}
	}
	peers.AskThese(ctx, g.Roster, old, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.GetControllerResponse,
		error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{})
	})
	return g.HeardAhead()
}

// HeardAhead is the same of those whose clocks were heard of late.
func (g Guard) HeardAhead() (ahead []time.Duration) {
	began := g.Authority.Trust().Roots[0].NotBefore
	for _, c := range g.Roster.Others() {
		at := g.Roster.ClockOf(c.ID)
		if at != nil && time.Since(at.Heard) <= ReadingTime && at.Theirs.After(began) {
			ahead = append(ahead, at.Theirs.Sub(at.Mine))
		}
	}
	return ahead
}
