package rpc

import (
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/controller/health"
	"heddle/internal/controller/peers"
)

// clockIn is what a host's clock shows in its first words; nil where it doesn't say.
func clockIn(hello *controllerv1.HostHello, mine time.Time) *peers.Reading {
	if hello.GetNow() == nil {
		return nil
	}
	return &peers.Reading{Theirs: hello.GetNow().AsTime(), Mine: mine}
}

// timing is the half of a fleet that knows the clocks of the hosts.
type timing struct{ *fleet }

// skews holds this controller's clock against those of the hosts that are connected to it.
func (f timing) skews() []api.HealthFinding {
	if found, off := health.SkewToHosts(f.clocks()); off {
		return []api.HealthFinding{found}
	}
	return nil
}

// clocks is by how much the clocks of the connected hosts were ahead when they came.
func (f timing) clocks() (ahead []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if h.conn != nil && h.conn.clock != nil {
			ahead = append(ahead, h.conn.clock.Theirs.Sub(h.conn.clock.Mine))
		}
	}
	return ahead
}
