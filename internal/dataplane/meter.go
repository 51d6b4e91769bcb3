package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// Flows are the tables in which the switch program counts flows; it implements flow.Source and flow.Locator. One
// goroutine may use it in parallel with the one that uses the Kernel, until the Kernel is closed.
//
// The kernel's tables exist in two sets. A round is the time in which one of them is written; the lowest bit of the
// round's number selects the set. A drain begins the next round, waits until no run of the program writes the set of
// the previous round (K9, K34), and removes everything from that set. The number of a round outlives the process. When
// a round has been drained, that is recorded: if a process dies before, the next one drains the same round first, in
// batches with the same numbers.
type Flows struct {
	maps *vswitchMaps
	whereabouts
	// clock returns a function that converts a number of ticks to milliseconds since 1970.
	clock func() (func(uint32) int64, error)
	// grace returns when no run of the program that began before the call is still executing.
	grace func() error
	// step is called with the progress of a drain; if it returns an error, the drain ends.
	step  func(string) error
	rooms *ebpf.Memory

	draining sync.Mutex // held while tables are drained, made and exchanged
	tables   [2]*flowTables
	demand   []demand // by CPU
	each     uint32   // fast slots of a CPU
	inTables bool     // flows may begin in tables, too, although there are fast slots
	read     reading

	mu     sync.Mutex // guards what follows
	points flow.Points
	shown  flow.Points // a copy, until the points change
	// leaving are the points whose port is gone, each with the round after whose drain none of its flows is left.
	leaving map[uint16]uint64
	limit   uint32 // flows between two drains; 0 = nothing is metered
	made    bool   // tables exist, and no drain is about to discard them
	unsure  bool   // an earlier program, which did not treat the fast slots as open, may have run until now
	// fixed, unless 0, is the size of tables that exist whether or not anything is metered.
	fixed uint32
}

// Flows returns the tables in which flows are counted.
func (k *Kernel) Flows() *Flows { return k.flows }

// openFlows adopts the existing tables; each CPU has the given number of fast slots.
func openFlows(m *vswitchMaps, places uint32, clock func() (func(uint32) int64, error), grace func() error) (*Flows,
	error) {
	f := &Flows{maps: m, clock: clock, grace: grace, step: func(string) error { return nil }, points: flow.Points{},
		leaving: map[uint16]uint64{},
		demand:  make([]demand, m.Flows.MaxEntries()/2), each: places}
	var err error
	if f.rooms, err = m.FlowRooms.Memory(); err != nil {
		return nil, fmt.Errorf("map table %s: %w", m.FlowRooms, err)
	}
	c, err := f.control()
	if err != nil {
		return nil, err
	}
	if c.Round == 0 {
		// If tables were discarded, rounds continue with a number that the earlier rounds cannot have reached, because
		// no round is as short as a millisecond.
		c.Round = uint64(time.Now().UnixMilli())
		c.Drained = c.Round - 1
		if err := f.setControl(c); err != nil {
			return nil, err
		}
	}
	for set := range f.tables {
		if f.tables[set], err = adoptFlowTables(m, set, places); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	f.made = f.tables[0] != nil && f.tables[1] != nil
	for _, t := range f.tables {
		if t != nil {
			if err := t.makePlaces(); err != nil { // the tables are those of an agent without fast slots
				return nil, errors.Join(fmt.Errorf("make places for flows: %w", err), f.close())
			}
			f.limit = max(f.limit, t.shared.MaxEntries())
			t.measure(f.demand)
		}
	}
	if err := f.openPlaces(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *Flows) close() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.tables[0].close(), f.tables[1].close())
}

func (f *Flows) control() (c abi.MeterControl, err error) {
	if err = f.maps.MeterControl.Lookup(uint32(0), &c); err != nil {
		err = fmt.Errorf("read the round of metering: %w", err)
	}
	return c, err
}

func (f *Flows) setControl(c abi.MeterControl) error {
	if err := f.maps.MeterControl.Put(uint32(0), &c); err != nil {
		return fmt.Errorf("begin round %d of metering: %w", c.Round, err)
	}
	return nil
}

// prepare makes the tables large enough for the flows of a plan that is about to become active.
func (f *Flows) prepare(p *plan.Plan, s *compile.Slots) error {
	for _, sw := range p.Switches {
		r, pool := compile.RoomOf(sw), abi.FlowPools+uint32(s.Switches[sw.Name])
		if err := f.setRoom(pool, r.Shared, 0); err != nil {
			return err
		}
		for id := range compile.MembersOf(sw) {
			if err := f.setRoom(s.Ports[id], r.Own, pool); err != nil {
				return err
			}
		}
	}
	if compile.FlowsOf(p) == 0 {
		return nil
	}
	limit := f.limitOf(p)
	f.mu.Lock()
	made := f.made
	f.limit = max(f.limit, limit) // settle lowers it
	f.mu.Unlock()
	if made {
		return nil // the next drain makes them as large as needed
	}
	f.draining.Lock()
	defer f.draining.Unlock()
	return f.make(limit)
}

// make creates the tables that are missing in either set.
func (f *Flows) make(limit uint32) error {
	for set, t := range f.tables {
		if t != nil {
			continue
		}
		t, err := makeFlowTables(f.maps, set, f.each, f.demand, limit)
		if err != nil {
			return fmt.Errorf("make tables for flows: %w", err)
		}
		f.tables[set] = t
	}
	if err := f.openPlaces(); err != nil {
		return err
	}
	f.mu.Lock()
	f.made = true
	f.mu.Unlock()
	return nil
}

// settle is called when a plan is active and no run of the program uses the previous one.
func (f *Flows) settle(p *plan.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit, f.unsure = f.limitOf(p), true
}

func (f *Flows) limitOf(p *plan.Plan) uint32 {
	if f.fixed > 0 {
		return f.fixed
	}
	return compile.FlowsOf(p)
}

// setRoom writes a quota's limit, which is beside the word in which the program counts.
func (f *Flows) setRoom(i, limit, pool uint32) error {
	const at = 8 // of the limit
	_, err := f.rooms.WriteAt(bytesOf([]uint32{limit, pool}), int64(i)*int64(f.maps.FlowRooms.ValueSize())+at)
	return err
}

// note records the observation points of slots.
func (f *Flows) note(points map[plan.PortID]flow.Point, s *compile.Slots) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, slot := range s.Ports {
		if p, ok := points[id]; ok {
			f.points[uint16(slot)] = p
		}
	}
	f.shown = nil
}

// keep records a point whose port is gone but whose flows have yet to be drained.
func (f *Flows) keep(slot uint16, p flow.Point) {
	f.mu.Lock()
	f.points[slot], f.shown = p, nil
	f.mu.Unlock()
	f.leave(slot)
}

// leave records that no more frames are counted at a point, and returns whether flows of it may still have to be
// drained. If not, the point is removed.
func (f *Flows) leave(slot uint16) bool {
	c, err := f.control()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.tables == [2]*flowTables{} && c.Drained+1 == c.Round {
		delete(f.points, slot)
		f.shown = nil
		return false
	}
	f.leaving[slot] = c.Round
	return true
}

// keeps reports whether flows of a point whose port is gone still have to be drained.
func (f *Flows) keeps(slot uint16) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.leaving[slot]
	return ok
}

// drained removes points of which no flows are left now that the round is drained.
func (f *Flows) drained(round uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for slot, last := range f.leaving {
		if last <= round {
			delete(f.leaving, slot)
			delete(f.points, slot)
			f.shown = nil
		}
	}
}

// Points returns the observation points by slot: every port and uplink of the plan, and those that left it but still
// have flows to be drained. For the latter, a process that has started since knows only name and number. The caller
// must not change the result.
func (f *Flows) Points() flow.Points {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shown == nil {
		f.shown = maps.Clone(f.points)
	}
	return f.shown
}

// Losses returns, for every point that has losses, how many packets and flows could not be recorded.
func (f *Flows) Losses() ([]flow.Loss, error) {
	var losses []flow.Loss
	err := f.eachPoint(func(slot uint16, p *abi.MeterPoint) {
		if p.LostFlows > 0 {
			losses = append(losses, flow.Loss{Point: slot, Packets: p.LostPackets, Bytes: p.LostBytes,
				FrameBytes: p.LostFrameBytes, Flows: p.LostFlows})
		}
	})
	return losses, err
}

// Observed counts the packets seen at a point while it samples, by flow.Direction: metered, lost and skipped ones.
type Observed [2]uint64

// Observed returns these counts for every point that has observed any.
func (f *Flows) Observed() (map[uint16]Observed, error) {
	all := map[uint16]Observed{}
	err := f.eachPoint(func(slot uint16, p *abi.MeterPoint) {
		if p.Observed != [2]uint64{} {
			all[slot] = p.Observed
		}
	})
	return all, err
}

// eachPoint reads the counters of every point, summed over CPUs.
func (f *Flows) eachPoint(each func(slot uint16, p *abi.MeterPoint)) error {
	perCPU := make([]abi.MeterPoint, ebpf.MustPossibleCPU())
	for slot := range f.Points() {
		if err := f.maps.MeterPoints.Lookup(uint32(slot), &perCPU); err != nil {
			return fmt.Errorf("read what was metered at slot %d: %w", slot, err)
		}
		var sum abi.MeterPoint
		for i := range perCPU {
			p := &perCPU[i]
			sum.Observed[0] += p.Observed[0]
			sum.Observed[1] += p.Observed[1]
			sum.LostPackets += p.LostPackets
			sum.LostBytes += p.LostBytes
			sum.LostFrameBytes += p.LostFrameBytes
			sum.LostFlows += p.LostFlows
		}
		each(slot, &sum)
	}
	return nil
}
