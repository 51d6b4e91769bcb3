package rpc

import (
	"net/http"
	"sync/atomic"
	"time"

	"heddle/internal/api"
	"heddle/internal/controller/health"
)

// otherClock is another controller's clock: each of its answers says what it shows.
type otherClock struct {
	http.RoundTripper
	now  func() time.Time
	last atomic.Pointer[reading]
}

// reading is what two clocks showed at one time, and how long it took to hear of the other.
type reading struct {
	theirs, mine time.Time
	took         time.Duration
}

// RoundTrip asks the other controller.
func (c *otherClock) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.last.Store(&reading{at, c.now(), time.Since(began)})
	}
	return answer, nil
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
