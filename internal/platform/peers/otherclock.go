package peers

import (
	"net/http"
	"sync/atomic"
	"time"

	"heddle/internal/api"
	"heddle/internal/platform/health"
)

// otherClock is another controller's clock: each of its answers says what it shows.
type otherClock struct {
	http.RoundTripper
	now  func() time.Time
	last atomic.Pointer[Reading]
}

// Reading is what two clocks showed at one time, how long it took to hear of the other, and when that was by a clock
// that nobody sets.
type Reading struct {
	Theirs, Mine time.Time
	took         time.Duration
	Heard        time.Time
}

// RoundTrip asks the other controller.
func (c *otherClock) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.last.Store(&Reading{at, c.now(), time.Since(began), time.Now()})
	}
	return answer, nil
}

// Skews are the other controllers whose clocks are another than this one's, as far as they answer.
func (r *Roster) Skews() (found []api.HealthFinding) {
	for _, c := range r.Others() {
		if at := r.links.clockOf(c.ID); at != nil {
			if f, off := health.Skew(c.Name, "this one", at.Theirs, at.Mine, at.took); off {
				found = append(found, f)
			}
		}
	}
	return found
}

// ClockOf is what a controller's clock showed last; nil for one that has not answered.
func (r *Roster) ClockOf(id string) *Reading { return r.links.clockOf(id) }

// clockOf is what a controller's clock showed last; nil for one that has not answered.
func (l *links) clockOf(id string) *Reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.to[id]; k != nil && k.clock != nil {
		return k.clock.last.Load()
	}
	return nil
}
