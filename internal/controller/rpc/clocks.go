package rpc

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"heddle/internal/api"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
)

// hostClock is what a host's clock has shown, what this controller's did then, and when that was by a clock that nobody
// sets.
type hostClock struct {
	theirs, mine time.Time
	heard        time.Duration
}

// hostClocks knows what the clocks of the hosts show that are connected to this controller.
type hostClocks struct {
	fleet     *fleet
	authority *pki.Current
	now       func() time.Time
	steady    func() time.Duration
}

// in is what a host says that its clock shows; nil where it doesn't say.
func (c *hostClocks) in(now *timestamppb.Timestamp) *hostClock {
	if now == nil {
		return nil
	}
	return &hostClock{now.AsTime(), c.now(), c.steady()}
}

// ahead is by how much the host's clock is ahead of this controller's, also where that was set since.
func (c *hostClock) ahead(now *hostClock) time.Duration {
	return c.theirs.Add(now.heard - c.heard).Sub(now.mine)
}

// tells reports whether the clock says more than that it is wrong: it shows a time since the cluster began.
func (c *hostClock) tells(began time.Time) bool { return c.theirs.After(began) }

// skews holds this controller's clock against those of the hosts that are connected to it, where other controllers have
// shown theirs of late beside those.
func (c *hostClocks) skews(others []time.Duration) []api.HealthFinding {
	ahead := c.ahead("", nil)
	if found, off := health.SkewToHosts(ahead); off {
		return []api.HealthFinding{found}
	}
	if found, off := health.NoCertificates(health.Clocks{Controllers: others, Hosts: ahead}); off {
		return []api.HealthFinding{found}
	}
	return nil
}

// ahead is by how much the clocks of the connected hosts are ahead of this controller's. Of the host that is
// named, it is what the clock given says.
func (c *hostClocks) ahead(but string, its *hostClock) (ahead []time.Duration) {
	now, began := &hostClock{mine: c.now(), heard: c.steady()}, c.authority.Trust().Roots[0].NotBefore
	add := func(clock *hostClock) {
		if clock != nil && clock.tells(began) {
			ahead = append(ahead, clock.ahead(now))
		}
	}
	add(its)
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	for _, h := range c.fleet.hosts {
		if h.conn != nil && h.id != but {
			add(h.conn.clock)
		}
	}
	return ahead
}
