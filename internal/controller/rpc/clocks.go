package rpc

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"heddle/internal/api"
	"heddle/internal/controller/health"
)

// hostClock is what a host's clock has shown, what this controller's did then, and when that was by a clock that nobody
// sets.
type hostClock struct {
	theirs, mine time.Time
	heard        time.Duration
}

// clockIn is what a host says that its clock shows; nil where it doesn't say.
func (s *Server) clockIn(now *timestamppb.Timestamp) *hostClock {
	if now == nil {
		return nil
	}
	return &hostClock{now.AsTime(), s.TLS.Now(), s.Steady()}
}

// ahead is by how much the host's clock is ahead of this controller's, also where that was set since.
func (c *hostClock) ahead(now *hostClock) time.Duration {
	return c.theirs.Add(now.heard - c.heard).Sub(now.mine)
}

// tells reports whether the clock says more than that it is wrong: it shows a time since the cluster began.
func (c *hostClock) tells(began time.Time) bool { return c.theirs.After(began) }

// skews holds this controller's clock against those of the hosts that are connected to it.
func (s *Server) skews() []api.HealthFinding {
	ahead := s.hostsAhead("", nil)
	if found, off := health.SkewToHosts(ahead); off {
		return []api.HealthFinding{found}
	}
	if found, off := health.NoCertificates(health.Clocks{Hosts: ahead}); off {
		return []api.HealthFinding{found}
	}
	return nil
}

// hostsAhead is by how much the clocks of the connected hosts are ahead of this controller's. Of the host that is named,
// it is what the clock given says.
func (s *Server) hostsAhead(but string, its *hostClock) (ahead []time.Duration) {
	now, began := &hostClock{mine: s.TLS.Now(), heard: s.Steady()}, s.Authority.Trust().Roots[0].NotBefore
	add := func(c *hostClock) {
		if c != nil && c.tells(began) {
			ahead = append(ahead, c.ahead(now))
		}
	}
	add(its)
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	for _, h := range s.fleet.hosts {
		if h.conn != nil && h.id != but {
			add(h.conn.clock)
		}
	}
	return ahead
}
