package rpc

import (
	"net/http"
	"sync/atomic"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/controller/health"
)

// otherClock is another controller's clock: each of its answers says what it shows.
type otherClock struct {
	http.RoundTripper
	now  func() time.Time
	last atomic.Pointer[reading]
}

// reading is what two clocks showed at one time, how long it took to hear of the other, and when that was by a clock
// that nobody sets.
type reading struct {
	theirs, mine time.Time
	took         time.Duration
	heard        time.Time
}

// RoundTrip asks the other controller.
func (c *otherClock) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.last.Store(&reading{at, c.now(), time.Since(began), time.Now()})
	}
	return answer, nil
}

// clockIn is what a host's clock shows in its first words; nil where it doesn't say.
func clockIn(hello *controllerv1.HostHello, mine time.Time) *reading {
	if hello.GetNow() == nil {
		return nil
	}
	return &reading{theirs: hello.GetNow().AsTime(), mine: mine}
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
			ahead = append(ahead, h.conn.clock.theirs.Sub(h.conn.clock.mine))
		}
	}
	return ahead
}

// skews are the other controllers whose clocks are another than this one's, as far as they answer.
func (r *roster) skews() (found []api.HealthFinding) {
	for _, c := range r.others() {
		if at := r.links.clockOf(c.ID); at != nil {
			if f, off := health.Skew(c.Name, "this one", at.theirs, at.mine, at.took); off {
				found = append(found, f)
			}
		}
	}
	return found
}

// clockOf is what a controller's clock showed last; nil for one that has not answered.
func (l *links) clockOf(id string) *reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.to[id]; k != nil && k.clock != nil {
		return k.clock.last.Load()
	}
	return nil
}
