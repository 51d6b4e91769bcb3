package dataplane

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/flow"
)

// places are the fast slots of one CPU in one set (struct flow_places), in which a frame finds the flows with most of
// the traffic without a function call. They are read and written as mapped memory.
type places struct {
	*ebpf.Map // nil while there are none: then the tables count all flows
	memory    *ebpf.Memory
}

const (
	placeSize    = int64(unsafe.Sizeof(abi.FlowPlace{}))
	cellSize     = 4
	firstCell    = 64      // after the header of struct flow_places
	usedAt       = 0       // offset of the number of slots taken
	placesPart   = 1 << 8  // slots that are read at once: few enough to stay in a fast cache
	memoryMapped = 1 << 10 // BPF_F_MMAPABLE
)

// placesSize returns the size of n fast slots with their cells, in bytes.
func placesSize(n uint32) int64 { return firstCell + int64(n)*(cellSize+placeSize) }

func placesSpec(n uint32) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "flow_places", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(placesSize(n)),
		MaxEntries: 1, Flags: memoryMapped}
}

// placesIn returns the number of fast slots in a table of this many bytes.
func placesIn(size uint32) int { return int((int64(size) - firstCell) / (cellSize + placeSize)) }

func (p *places) count() int { return placesIn(p.ValueSize()) }

// at returns the offset of the i-th fast slot in memory.
func (p *places) at(i int) int64 { return firstCell + int64(p.count())*cellSize + int64(i)*placeSize }

// makePlaces makes the fast slots of one CPU; all are free.
func makePlaces(n uint32) (p places, err error) {
	if p.Map, err = ebpf.NewMap(placesSpec(n)); err != nil {
		return places{}, err
	}
	if err := p.see(); err != nil {
		return places{}, errors.Join(err, p.close())
	}
	return p, nil
}

// see maps the slots into memory.
func (p *places) see() (err error) {
	if p.memory, err = p.Memory(); err != nil {
		return fmt.Errorf("map the places of flows: %w", err)
	}
	return nil
}

const (
	fewestCells  = 1 << 12
	cellsOfFlow  = 2 // least number of cells per flow: then at least 96 of 100 flows find one in their bucket
	forgetRecent = 8 // a larger number of earlier flows shrinks by this part, 1/8, in each drain
)

// fit computes how flows begin in fast slots (abi.MeterControl): whether they may, and how many cells they use, from
// the largest number of flows that a round had on one CPU. The result may be activated for a set only while no program
// writes that set.
func (t *flowTables) fit(most int) uint64 {
	t.recent = max(most, t.recent-t.recent/forgetRecent)
	shift := 0
	for n := int(t.each); n > fewestCells && n/2 >= t.recent*cellsOfFlow; n /= 2 {
		shift++
	}
	return openPlaces(shift)
}

// openPlaces lets flows begin in fast slots and use 1/2^shift of the cells.
func openPlaces(shift int) uint64 { return abi.PlacesLayout<<abi.PlacesLayoutShift | uint64(shift) }

func areOpen(places uint64) bool { return places>>abi.PlacesLayoutShift == abi.PlacesLayout }

func (p *places) close() error {
	if p.Map == nil {
		return nil
	}
	return p.Map.Close()
}

// makePlaces makes fast slots for those CPUs of the set that have none. This takes one grace period of the kernel.
func (t *flowTables) makePlaces() error {
	var keys, fds []uint32
	var made []places
	for cpu := range t.places {
		if t.places[cpu].Map != nil {
			continue
		}
		p, err := makePlaces(t.each)
		if err != nil {
			return errors.Join(err, closePlaces(made))
		}
		made = append(made, p)
		keys, fds = append(keys, t.index(cpu)), append(fds, uint32(p.FD()))
	}
	if len(keys) == 0 {
		return nil
	}
	n, err := t.maps.FlowPlaces.BatchUpdate(keys, fds, nil)
	if err == nil {
		n = len(keys)
	}
	for i, key := range keys[:n] {
		t.places[int(key)-t.set*len(t.own)] = made[i]
	}
	return errors.Join(err, closePlaces(made[n:]))
}

// adoptPlaces finds the existing fast slots. An earlier agent may not have known them.
func (t *flowTables) adoptPlaces() (err error) {
	for cpu := range t.places {
		p := &t.places[cpu]
		if p.Map, err = innerMap(t.maps.FlowPlaces, t.index(cpu)); err != nil {
			return err
		}
		if p.Map == nil {
			continue
		}
		if err := p.see(); err != nil {
			return err
		}
	}
	return nil
}

func closePlaces(all []places) error {
	var errs []error
	for i := range all {
		errs = append(errs, all[i].close())
	}
	return errors.Join(errs...)
}

// Retire makes flows that begin after the next drain be counted only in tables, where an agent without fast slots finds
// them too. Call it before the last drain of an agent that stops; the next agent with fast slots opens them again.
func (f *Flows) Retire() error {
	f.draining.Lock()
	defer f.draining.Unlock()
	f.inTables = true
	c, err := f.control()
	if err != nil {
		return err
	}
	c.Places = [2]uint64{}
	if err := f.setControl(c); err != nil {
		return fmt.Errorf("close the places of flows: %w", err)
	}
	return nil
}

// openPlaces lets flows begin in the fast slots of all sets that have some, if they don't yet.
func (f *Flows) openPlaces() error {
	c, err := f.control()
	if err != nil {
		return err
	}
	before := c.Places
	for set, t := range f.tables {
		if t != nil && !areOpen(c.Places[set]) {
			c.Places[set] = openPlaces(0)
		}
	}
	if c.Places == before {
		return nil
	}
	return f.setControl(c)
}

// drainPlaces adds the flow of every fast slot that was taken in the round, and frees the slots once all flows have
// been added: no flow may be added again with the number of this batch after a later batch. It returns how many slots
// there were.
func drainPlaces(d *drain, p *places, round uint64) (taken int, err error) {
	if p.Map == nil {
		return 0, nil
	}
	if taken, err = p.taken(round); err != nil || taken == 0 {
		return 0, err
	}
	read := d.read
	for from := 0; from < taken; from += placesPart {
		part := sized(&read.part, placesPart)[:min(placesPart, taken-from)]
		if _, err := p.memory.ReadAt(bytesOf(part), p.at(from)); err != nil {
			return taken, fmt.Errorf("read counted flows: %w", err)
		}
		read.counted = read.counted[:0]
		for i := range part {
			if counts(&part[i], round) {
				read.counted = append(read.counted, i)
			}
		}
		entry := func(i int) (flow.Key, *abi.Flow) {
			at := &part[read.counted[i]]
			return keyAtPlace(at), &at.Flow
		}
		if err := errors.Join(d.add(d.batch(len(read.counted), entry)), d.step("added")); err != nil {
			return taken, err
		}
	}
	if err := put(p.memory, []uint64{0}, usedAt/8); err != nil {
		return taken, fmt.Errorf("free the places of drained flows: %w", err)
	}
	return taken, d.step("removed")
}

// counts reports whether a flow has the slot in this round and has counted something: a flow that took over another's
// slot begins there with zero counts.
func counts(at *abi.FlowPlace, round uint64) bool { return at.Tag>>1 == round && at.Flow.Packets > 0 }

// keyAtPlace reads the key of the flow that has the slot.
func keyAtPlace(at *abi.FlowPlace) flow.Key {
	if at.Tag&1 != 0 {
		return wideKeyOf(&at.Key)
	}
	return keyOf((*abi.FlowKey)(unsafe.Pointer(&at.Key)))
}
