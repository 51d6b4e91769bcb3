package dataplane

import (
	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Counters reads the counters of every port and uplink of the plan.
func (k *Kernel) Counters() (map[plan.PortID]observe.Counters, error) {
	return readCounters(&k.objects.vswitchMaps, k.slots)
}

func readCounters(m *vswitchMaps, s *compile.Slots) (map[plan.PortID]observe.Counters, error) {
	r := newCounterReader(m, s)
	out := make(map[plan.PortID]observe.Counters, len(r.slots))
	for id := range r.slots {
		c, err := r.Read(id)
		if err != nil {
			return nil, err
		}
		out[id] = c
	}
	return out, nil
}

func sum(perCPU []abi.Counters) observe.Counters {
	c := observe.Counters{Drops: map[abi.Reason]uint64{}, Refused: map[abi.Reason]uint64{}}
	for i := range perCPU {
		p := &perCPU[i]
		for class := range abi.Classes {
			c.PacketsIn[class] += p.PacketsIn[class]
			c.BytesIn[class] += p.BytesIn[class]
			c.PacketsOut[class] += p.PacketsOut[class]
			c.BytesOut[class] += p.BytesOut[class]
		}
		c.BytesInFromPnic += p.BytesInFromPnic
		c.BytesOutToPnic += p.BytesOutToPnic
		c.Delivered += p.Delivered
		c.PacketsToHost += p.PacketsToHost
		c.PacketsFromHost += p.PacketsFromHost
		c.PacketsFromHostKept += p.PacketsFromHostKept
		c.PacketsFromHostDropped += p.PacketsFromHostDropped
		c.MACMoves += p.MACMoves
		c.MACNotLearnedAllowed += p.MACNotLearnedAllowed
		c.UnknownNotFlooded += p.UnknownNotFlooded
		c.UnknownFlooded += p.UnknownFlooded
		addReasons(c.Drops, 0, p.Drops[:])
		addReasons(c.Refused, 0, p.Refused[:])
	}
	return c
}

// addReasons adds counts of the reasons from first on. Reasons with a count of zero are not in the map.
func addReasons(to map[abi.Reason]uint64, first abi.Reason, counts []uint64) {
	for i, n := range counts {
		if n != 0 {
			to[first+abi.Reason(i)] += n
		}
	}
}
