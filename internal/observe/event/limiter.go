package event

import "time"

// mostKept limits how many keys a Limiter remembers; those that have been idle longest are forgotten first.
const mostKept = 8192

// Limiter limits the rate of reports about each of many keys, so that no key can fill a log or displace everything
// else: Burst at once, and then one every Every. It is for one goroutine; the zero value of the map is ready for use.
type Limiter[K comparable] struct {
	Burst int           // at least 1
	Every time.Duration // above 0
	full  map[K]time.Time
}

// Allow reports whether something may be reported about key now, and counts it if so.
func (l *Limiter[K]) Allow(key K, now time.Time) bool {
	if l.full == nil {
		l.full = map[K]time.Time{}
	}
	// full is when the whole burst is available again: each report moves it by Every, to at most Burst of them in
	// the future.
	at := l.full[key]
	if at.Before(now) {
		at = now
	}
	at = at.Add(l.Every)
	if at.Sub(now) > time.Duration(l.Burst)*l.Every {
		return false
	}
	if len(l.full) >= mostKept {
		l.forget(now)
	}
	l.full[key] = at
	return true
}

// forget removes the keys whose whole burst is available again, which changes nothing for them; if there are none, it
// removes all keys.
func (l *Limiter[K]) forget(now time.Time) {
	for k, at := range l.full {
		if !at.After(now) {
			delete(l.full, k)
		}
	}
	if len(l.full) >= mostKept {
		clear(l.full)
	}
}
