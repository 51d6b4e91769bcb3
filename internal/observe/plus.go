package observe

import (
	"maps"
	"math"

	"heddle/internal/abi"
)

// Plus are the counters with those of before added. How many MACs are held is no count, and stays. A sum that is too
// large is the largest number.
func (c Counters) Plus(before Counters) Counters {
	for _, p := range []struct{ to, of *[abi.Classes]uint64 }{{&c.PacketsIn, &before.PacketsIn},
		{&c.BytesIn, &before.BytesIn}, {&c.PacketsOut, &before.PacketsOut}, {&c.BytesOut, &before.BytesOut}} {
		for i := range p.to {
			p.to[i] = add(p.to[i], p.of[i])
		}
	}
	c.BytesInFromPnic = add(c.BytesInFromPnic, before.BytesInFromPnic)
	c.BytesOutToPnic = add(c.BytesOutToPnic, before.BytesOutToPnic)
	c.Delivered = add(c.Delivered, before.Delivered)
	c.PacketsToHost = add(c.PacketsToHost, before.PacketsToHost)
	c.PacketsFromHost = add(c.PacketsFromHost, before.PacketsFromHost)
	c.PacketsFromHostKept = add(c.PacketsFromHostKept, before.PacketsFromHostKept)
	c.PacketsFromHostDropped = add(c.PacketsFromHostDropped, before.PacketsFromHostDropped)
	c.MACMoves = add(c.MACMoves, before.MACMoves)
	c.MACNotLearnedAllowed = add(c.MACNotLearnedAllowed, before.MACNotLearnedAllowed)
	c.UnknownNotFlooded = add(c.UnknownNotFlooded, before.UnknownNotFlooded)
	c.UnknownFlooded = add(c.UnknownFlooded, before.UnknownFlooded)
	c.Drops, c.Refused = plus(c.Drops, before.Drops), plus(c.Refused, before.Refused)
	return c
}

func plus(now, before map[abi.Reason]uint64) map[abi.Reason]uint64 {
	if len(before) == 0 {
		return now
	}
	sum := maps.Clone(before)
	for r, n := range now {
		sum[r] = add(sum[r], n)
	}
	return sum
}

// minus are the counters without those of less; none is below 0.
func (c Counters) minus(less Counters) Counters {
	of := less.named()
	for i, n := range c.named() {
		*n.value -= min(*n.value, *of[i].value)
	}
	c.Drops, c.Refused = minus(c.Drops, less.Drops), minus(c.Refused, less.Refused)
	return c
}

func minus(now, less map[abi.Reason]uint64) map[abi.Reason]uint64 {
	if len(less) == 0 {
		return now
	}
	rest := maps.Clone(now)
	for r, n := range less {
		if rest[r] <= n {
			delete(rest, r)
		} else {
			rest[r] -= n
		}
	}
	return rest
}

// zero reports whether nothing was counted.
func (c *Counters) zero() bool {
	return c.PacketsIn == [abi.Classes]uint64{} && c.BytesIn == [abi.Classes]uint64{} &&
		c.PacketsOut == [abi.Classes]uint64{} && c.BytesOut == [abi.Classes]uint64{} &&
		c.BytesInFromPnic|c.BytesOutToPnic|c.Delivered|c.PacketsToHost|c.PacketsFromHost|c.PacketsFromHostKept|
			c.PacketsFromHostDropped|c.MACMoves|c.MACNotLearnedAllowed|c.UnknownNotFlooded|c.UnknownFlooded == 0 &&
		len(c.Drops) == 0 && len(c.Refused) == 0
}

func add(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}
