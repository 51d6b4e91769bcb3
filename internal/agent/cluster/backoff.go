package cluster

import "time"

// Pauses between attempts to reach a controller: the first and the longest.
const (
	firstPause = 500 * time.Millisecond
	longPause  = 6 * time.Second
)

// backoff is how long a host waits between attempts to reach a controller: longer after each round in which it has
// tried all of them in vain. Each pause is drawn at random between half of it and all, so that the hosts of a cluster
// do not come all at once.
type backoff struct{ pause time.Duration }

// newBackoff begins with the first pause.
func newBackoff() backoff { return backoff{firstPause} }

// next is the next pause. round says that all controllers have been tried since the pause became longer; draw is a
// number at random from 0 to below its argument.
func (b *backoff) next(round bool, draw func(below int) int) time.Duration {
	d := jitter(b.pause, draw)
	if round {
		b.pause = min(2*b.pause, longPause)
	}
	return d
}

// jitter is a time at random between half of that one and all.
func jitter(d time.Duration, draw func(below int) int) time.Duration {
	return d/2 + time.Duration(draw(int(d/2)))
}
