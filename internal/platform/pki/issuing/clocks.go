package issuing

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"heddle/internal/api"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
)

// Clock is what a host's clock has shown, what this controller's did then, and when that was by a clock that nobody
// sets.
type Clock struct {
	theirs, mine time.Time
	heard        time.Duration
}

// Clocks knows what the clocks of the hosts show that are connected to this controller.
type Clocks struct {
	Authority *pki.Current
	Now       func() time.Time
	// Steady is a clock that nobody sets.
	Steady func() time.Duration
	// Connected are the clocks of the connected hosts, but that of the host with an id; nil for one that is not known.
	Connected func(but string) []*Clock
}

// In is what a host says that its clock shows; nil where it doesn't say.
func (c Clocks) In(now *timestamppb.Timestamp) *Clock {
	if now == nil {
		return nil
	}
	return &Clock{now.AsTime(), c.Now(), c.Steady()}
}

// ahead is by how much the host's clock is ahead of this controller's, also where that was set since.
func (c Clock) ahead(now Clock) time.Duration {
	return c.theirs.Add(now.heard - c.heard).Sub(now.mine)
}

// tells reports whether the clock says more than that it is wrong: it shows a time since the cluster began.
func (c Clock) tells(began time.Time) bool { return c.theirs.After(began) }

// Skews holds this controller's clock against those of the hosts that are connected to it, where other controllers have
// shown theirs of late beside those.
func (c Clocks) Skews(others []time.Duration) []api.HealthFinding {
	ahead := c.Ahead("", nil)
	if found, off := health.SkewToHosts(ahead); off {
		return []api.HealthFinding{found}
	}
	if found, off := health.NoCertificates(health.Clocks{Controllers: others, Hosts: ahead}); off {
		return []api.HealthFinding{found}
	}
	return nil
}

// Ahead is by how much the clocks of the connected hosts are ahead of this controller's. Of the host that is
// named, it is what the clock given says.
func (c Clocks) Ahead(but string, its *Clock) (ahead []time.Duration) {
	now, began := &Clock{mine: c.Now(), heard: c.Steady()}, c.Authority.Trust().Roots[0].NotBefore
	add := func(clock *Clock) {
		if clock != nil && clock.tells(began) {
			ahead = append(ahead, clock.ahead(*now))
		}
	}
	add(its)
	for _, clock := range c.Connected(but) {
		add(clock)
	}
	return ahead
}
