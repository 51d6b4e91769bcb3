package dataplane

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// ErrNoCounters is wrapped if a port has no counters, because it was not in the plan when the reader was made.
var ErrNoCounters = errors.New("no counters are kept of it")

// CounterReader reads the counters of the ports and uplinks that existed when it was made. One goroutine may use it, in
// parallel with the one that uses the Kernel, until the Kernel is closed. If another port has got a port's slot
// meanwhile, it reads that port's counters: see Unmoved.
type CounterReader struct {
	slots map[plan.PortID]uint32
	read  func(id plan.PortID, slot uint32) (observe.Counters, error)
}

// CounterReader returns a reader for the present ports.
func (k *Kernel) CounterReader() *CounterReader {
	return newCounterReader(&k.objects.vswitchMaps, k.slots)
}

// FixedCounters returns a reader of given counters, for substitutes of a Kernel.
func FixedCounters(of map[plan.PortID]observe.Counters) *CounterReader {
	r := &CounterReader{slots: make(map[plan.PortID]uint32, len(of))}
	for id := range of {
		r.slots[id] = uint32(len(r.slots))
	}
	r.read = func(id plan.PortID, _ uint32) (observe.Counters, error) { return of[id], nil }
	return r
}

func newCounterReader(m *vswitchMaps, s *compile.Slots) *CounterReader {
	// The last element is for the counts from before the tables' layout changed.
	perCPU := make([]abi.Counters, ebpf.MustPossibleCPU(), ebpf.MustPossibleCPU()+1)
	var before abi.Counters
	var rare abi.RareCounters
	var held uint64
	return &CounterReader{slots: maps.Clone(s.Ports), read: func(id plan.PortID, slot uint32) (observe.Counters,
		error) {
		if err := m.Counts.Lookup(slot, &perCPU); err != nil {
			return observe.Counters{}, fmt.Errorf("read counters of %s: %w", id, err)
		}
		if err := m.CountsBefore.Lookup(slot, &before); err != nil {
			return observe.Counters{}, fmt.Errorf("read earlier counters of %s: %w", id, err)
		}
		if err := m.Held.Lookup(slot, &held); err != nil {
			return observe.Counters{}, fmt.Errorf("read learned MACs of %s: %w", id, err)
		}
		c := sum(append(perCPU, before))
		for _, table := range []*ebpf.Map{m.RareCounts, m.RareCountsBefore} {
			if err := table.Lookup(slot, &rare); err != nil {
				return observe.Counters{}, fmt.Errorf("read counters of %s: %w", id, err)
			}
			addReasons(c.Drops, abi.ReasonsPerCPU, rare.Drops[:])
			addReasons(c.Refused, abi.ReasonsPerCPU, rare.Refused[:])
		}
		c.MACsHeld = held
		return c, nil
	}}
}

// Read reads the counters of one port or uplink. They do not all belong to one instant: while frames pass, a frame may
// be in one counter and not yet in another. The error is ErrNoCounters if the port has none.
func (r *CounterReader) Read(id plan.PortID) (observe.Counters, error) {
	slot, ok := r.slots[id]
	if !ok {
		return observe.Counters{}, fmt.Errorf("port %s: %w", id, ErrNoCounters)
	}
	return r.read(id, slot)
}

// Has reports whether the port has counters.
func (r *CounterReader) Has(id plan.PortID) bool {
	_, ok := r.slots[id]
	return ok
}

// Unmoved reports whether the port has the same slot in the later reader; if so, the counts between the two readings
// are the port's own.
func (r *CounterReader) Unmoved(id plan.PortID, later *CounterReader) bool {
	slot, ok := r.slots[id]
	now, still := later.slots[id]
	return ok && still && slot == now
}
