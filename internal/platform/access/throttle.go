package access

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Bounds of refusals for want of a token. A token that counts is never held up by them: its secret can't be guessed,
// and somebody at the same address may have a wrong one.
const (
	// failBurst is how many an address has at once, failEvery after what time it has one more.
	failBurst = 10
	failEvery = 6 * time.Second
	// allBurst and allEvery are the same for all addresses together.
	allBurst = 100
	allEvery = time.Second
	// mostAddresses is how many addresses, or callers, are remembered.
	mostAddresses = 4096
)

// bucket gives out so many, and one more each time that has passed.
type bucket struct {
	left float64
	at   time.Time
	// passed over since the last one that was given out.
	over int
}

func (b *bucket) take(now time.Time, burst int, every time.Duration) bool {
	b.left = min(float64(burst), b.left+float64(max(0, now.Sub(b.at)))/float64(every))
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// throttle bounds how often callers are refused with a word of their own, or a line in the audit log.
type throttle struct {
	mu  sync.Mutex
	all bucket
	by  map[string]*bucket
}

func newThrottle(now time.Time) *throttle {
	return &throttle{all: bucket{left: allBurst, at: now}, by: map[string]*bucket{}}
}

// failed takes in a refusal of somebody at an address. Where it is within the bounds, times is how many it stands for.
func (t *throttle) failed(from string, now time.Time) (within bool, times int) {
	return t.of(NetworkOf(from).String(), now)
}

// of takes in a refusal of that key. Where it is within the bounds, times is how many it stands for: itself, and those
// before that were not.
func (t *throttle) of(key string, now time.Time) (within bool, times int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.by[key]
	if b == nil {
		if len(t.by) >= mostAddresses {
			t.forget(now)
		}
		b = &bucket{left: failBurst, at: now}
		t.by[key] = b
	}
	if !b.take(now, failBurst, failEvery) || !t.all.take(now, allBurst, allEvery) {
		b.over++
		t.all.over++
		return false, 0
	}
	times, b.over = b.over+1, 0
	return true, times
}

// forget makes room: those that have all they may have go first, and then whichever.
func (t *throttle) forget(now time.Time) {
	for key, b := range t.by {
		if now.Sub(b.at) > failBurst*failEvery {
			delete(t.by, key)
		}
	}
	for key := range t.by {
		if len(t.by) < mostAddresses {
			return
		}
		delete(t.by, key)
	}
}

// NetworkOf is what is counted as one: an address, and of IPv6 the network of 64 bits, of which one machine can have
// all.
func NetworkOf(from string) netip.Addr {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
