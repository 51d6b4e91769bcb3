package dataplane

import (
	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Counters reads the counters of every port and uplink of the plan.
func (k *Kernel) Counters() (map[plan.PortID]Counters, error) {
	return readCounters(&k.objects.vswitchMaps, k.slots)
}

func readCounters(m *vswitchMaps, s *slots) (map[plan.PortID]Counters, error) {
	r := newCounterReader(m, s)
	out := make(map[plan.PortID]Counters, len(r.slots))
	for id := range r.slots {
		c, err := r.Read(id)
		if err != nil {
			return nil, err
		}
		out[id] = c
	}
	return out, nil
}

func sum(perCPU []abi.Counters) Counters {
	c := Counters{Drops: map[abi.Reason]uint64{}, Refused: map[abi.Reason]uint64{}}
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
		addReasons(c.Drops, 0, p.Drops[:])
		addReasons(c.Refused, 0, p.Refused[:])
	}
	return c
}

// addReasons adds counts of the reasons from first on. Reasons that were not met stay out of the map.
func addReasons(to map[abi.Reason]uint64, first abi.Reason, counts []uint64) {
	for i, n := range counts {
		if n != 0 {
			to[first+abi.Reason(i)] += n
		}
	}
}

// Received is the number of frames received from the port. Received = Delivered + every drop (S94).
func (c *Counters) Received() uint64 { return total(c.PacketsIn) }

// Dropped is the number of frames received from the port that went nowhere.
func (c *Counters) Dropped() uint64 { return all(c.Drops) }

// PacketsInException is the malformed part of Dropped.
func (c *Counters) PacketsInException() uint64 { return c.Drops[abi.ReasonMalformed] }

// PacketsInDropped is Dropped without PacketsInException.
func (c *Counters) PacketsInDropped() uint64 { return c.Dropped() - c.PacketsInException() }

// PacketsOutException counts copies the device itself would not take.
func (c *Counters) PacketsOutException() uint64 { return c.Refused[abi.ReasonDeviceRefused] }

// PacketsOutDropped counts the other copies refused for this receiver.
func (c *Counters) PacketsOutDropped() uint64 { return all(c.Refused) - c.PacketsOutException() }

func total(classes [abi.Classes]uint64) uint64 {
	return classes[abi.ClassUnicast] + classes[abi.ClassMulticast] + classes[abi.ClassBroadcast]
}

func all(m map[abi.Reason]uint64) uint64 {
	var n uint64
	for _, v := range m {
		n += v
	}
	return n
}
