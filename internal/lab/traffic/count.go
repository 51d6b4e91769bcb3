package traffic

import "time"

// window is up to how many packets later a late or repeated number is recognized.
const window = 1 << 20

// Received is what happened to numbered packets.
type Received struct {
	Sent     uint64 `json:"sent"`     // as the end mark says; without one, the highest number seen + 1
	Complete bool   `json:"complete"` // an end mark arrived
	Received uint64 `json:"received"` // different packets
	Lost     uint64 `json:"lost"`     // of Sent
	// Overflowed are the part of Lost that reached the sink's socket but found its buffer full: a loss of this
	// machine and not of the path.
	Overflowed uint64 `json:"overflowed"`
	Duplicated uint64 `json:"duplicated"` // copies beyond the first
	Reordered  uint64 `json:"reordered"`  // arrived after one with a higher number
	// LongestLoss is the longest run of consecutive numbers that never came, LongestGap the longest time without a
	// packet.
	LongestLoss uint64  `json:"longest_loss"`
	LongestGap  float64 `json:"longest_gap_s"`
	// FirstAt is when the first packet came that is counted, LongestGapAt when the longest gap began: nanoseconds since
	// 1970, 0 for never.
	FirstAt      int64 `json:"first_at_ns"`
	LongestGapAt int64 `json:"longest_gap_at_ns"`
	// TooLate are packets more than 2²⁰ behind the newest: it is unknown whether they are late or repeated. No
	// other count includes them.
	TooLate uint64 `json:"too_late"`
}

// counter counts one run of numbered packets. It needs constant memory.
type counter struct {
	seen   [window / 64]uint64 // by number modulo window, for numbers in [base, next)
	base   uint64              // numbers below are settled: received or lost
	next   uint64              // highest number seen + 1
	run    uint64              // length of the current run of lost numbers at base
	last   time.Time           // newest arrival of any mark
	gap    time.Duration
	gapAt  time.Time // when it began
	result Received
}

func (c *counter) bit(n uint64) (word *uint64, mask uint64) {
	return &c.seen[n%window/64], 1 << (n % 64)
}

// warm notes a packet of the warm-up: from here on a pause counts as a gap.
func (c *counter) warm(now time.Time) { c.last = now }

// add counts the arrival of a measured packet.
func (c *counter) add(n uint64, now time.Time) {
	c.silence(now)
	if c.result.FirstAt == 0 {
		c.result.FirstAt = now.UnixNano()
	}
	switch {
	case n < c.base:
		c.result.TooLate++
		return
	case n >= c.next:
		c.settle(n)
		c.next = n + 1
	default:
		if word, mask := c.bit(n); *word&mask != 0 {
			c.result.Duplicated++
			return
		}
		c.result.Reordered++
	}
	word, mask := c.bit(n)
	*word |= mask
	c.result.Received++
}

// silence updates the longest gap.
func (c *counter) silence(now time.Time) {
	if length := now.Sub(c.last); !c.last.IsZero() && length > c.gap {
		c.gap, c.gapAt = length, c.last
	}
	c.last = now
}

// settle decides the numbers that leave the window when its end moves to n.
func (c *counter) settle(n uint64) {
	if n < window {
		return
	}
	c.settleTo(n - window + 1)
}

// settleTo decides all numbers below the limit: those that have not come by now are lost.
func (c *counter) settleTo(limit uint64) {
	if far := max(c.next, c.base); limit > far {
		// Numbers from next on were never seen; there may be very many, so they are not checked one by one.
		c.settleTo(far)
		c.lose(limit - far)
		c.base = limit
		return
	}
	for ; c.base < limit; c.base++ {
		word, mask := c.bit(c.base)
		if *word&mask != 0 {
			*word &^= mask
			c.run = 0
			continue
		}
		c.lose(1)
	}
}

func (c *counter) lose(n uint64) {
	c.result.Lost += n
	c.run += n
	c.result.LongestLoss = max(c.result.LongestLoss, c.run)
}

// finish processes the end mark, which says how many packets were sent. A packet that the mark has overtaken still
// counts.
func (c *counter) finish(sent uint64, now time.Time) {
	if c.result.Complete {
		return
	}
	c.silence(now)
	c.result.Complete, c.result.Sent = true, sent
}

// total settles everything and returns the result. The counter must not be used afterwards.
func (c *counter) total() Received {
	if !c.result.Complete {
		c.result.Sent = c.next
	}
	c.settleTo(max(c.result.Sent, c.next))
	c.result.LongestGap = c.gap.Seconds()
	if !c.gapAt.IsZero() {
		c.result.LongestGapAt = c.gapAt.UnixNano()
	}
	return c.result
}
