package fabric

import "time"

// near is how exact the longest packet that passes is found, in bytes.
const near = 1

// repairEvery is how often a long probe is sent on a path that does not pass those.
const repairEvery = 10 * time.Second

// searches reports whether the longest packet that passes is not found yet.
func (s *search) searches() bool { return s.high-s.low > near }

// long returns the length of the long probe that is due, 0 for none.
func (k *track) long(now time.Time) int {
	switch {
	case k.State != Passes || k.MTU <= Shortest:
		return 0
	case k.Full == Unknown, k.full.misses > 0 && k.Full == Passes:
		return k.MTU
	case k.Full == Passes:
		if k.rounds%FullEvery == 0 {
			return k.MTU
		}
		return 0
	case now.Before(k.full.repair):
		if k.full.searches() {
			return (k.full.high + k.full.low) / 2
		}
		return 0
	}
	k.full.repair = now.Add(repairEvery)
	return k.MTU
}

// longPassed takes in the echo of a long probe.
func (k *track) longPassed(size int) {
	if size >= k.MTU {
		k.full.misses, k.full.hits = 0, k.full.hits+1
		if k.Full != Lost || k.full.hits >= Hits {
			k.Full, k.Fits, k.full = Passes, 0, search{}
		} else {
			k.full.repair = time.Time{} // the second one follows at once
		}
		return
	}
	k.full.misses, k.full.hits = 0, 0
	if size > k.full.low {
		k.full.low = size
	}
	k.found()
}

// longLost takes in that no echo of a long probe came.
func (k *track) longLost(size int) {
	if k.State != Passes || k.misses > 0 { // short ones are lost as well
		return
	}
	k.full.hits = 0
	switch {
	case k.Full == Lost && size < k.MTU:
		k.full.high = min(k.full.high, size)
		k.found()
	case k.Full == Lost:
	default:
		if k.full.misses++; k.full.misses >= Misses {
			k.Full = Lost
			k.full = search{low: Shortest, high: k.MTU, repair: time.Time{}}
		}
	}
}

func (k *track) found() {
	if k.full.high > 0 && !k.full.searches() {
		k.Fits = k.full.low
	}
}
