package observe

import (
	"maps"

	"heddle/internal/abi"
)

// Plus are the counters with those of before added. How many MACs are held is no count, and stays.
func (c Counters) Plus(before Counters) Counters {
	for _, p := range []struct{ to, of *[abi.Classes]uint64 }{{&c.PacketsIn, &before.PacketsIn},
		{&c.BytesIn, &before.BytesIn}, {&c.PacketsOut, &before.PacketsOut}, {&c.BytesOut, &before.BytesOut}} {
		for i := range p.to {
			p.to[i] += p.of[i]
		}
	}
	c.BytesInFromPnic += before.BytesInFromPnic
	c.BytesOutToPnic += before.BytesOutToPnic
	c.Delivered += before.Delivered
	c.PacketsToHost += before.PacketsToHost
	c.PacketsFromHost += before.PacketsFromHost
	c.PacketsFromHostKept += before.PacketsFromHostKept
	c.PacketsFromHostDropped += before.PacketsFromHostDropped
	c.MACMoves += before.MACMoves
	c.MACNotLearnedAllowed += before.MACNotLearnedAllowed
	c.UnknownNotFlooded += before.UnknownNotFlooded
	c.UnknownFlooded += before.UnknownFlooded
	c.Drops, c.Refused = plus(c.Drops, before.Drops), plus(c.Refused, before.Refused)
	return c
}

func plus(now, before map[abi.Reason]uint64) map[abi.Reason]uint64 {
	if len(before) == 0 {
		return now
	}
	sum := maps.Clone(before)
	for r, n := range now {
		sum[r] += n
	}
	return sum
}
