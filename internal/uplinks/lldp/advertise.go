package lldp

import "time"

// Times of our advertisements (802.1AB 9.2.5).
const (
	Interval = 30 * time.Second
	// TTL is how long an advertisement is valid, in seconds: four intervals, so that three frames may get lost.
	TTL       = 120
	fastEvery = time.Second
	fastCount = 4
)

// Advertiser decides when one port sends. The zero Advertiser is due at once.
type Advertiser struct {
	next time.Time
	fast int // PDUs sent so far in the quick series
}

// Restart starts a quick series, as after a start, when the link comes up, or when a new neighbour is found. A series
// that is running continues.
func (a *Advertiser) Restart(now time.Time) {
	if a.fast < fastCount {
		return
	}
	a.fast = 0
	if soon := now.Add(fastEvery); a.next.After(soon) {
		a.next = soon
	}
}

// Due reports whether to send now; afterwards Next returns when to ask again.
func (a *Advertiser) Due(now time.Time) bool {
	if now.Before(a.next) {
		return false
	}
	a.fast = min(a.fast+1, fastCount)
	if a.next = now.Add(Interval); a.fast < fastCount {
		a.next = now.Add(fastEvery)
	}
	return true
}

// Next returns when the next PDU is due.
func (a *Advertiser) Next() time.Time { return a.next }
