package dataplane

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/flow"
)

// places are one CPU's of one set (struct flow_places): where a frame finds the flows that have most of its traffic without a call. They are
// read and written through memory.
type places struct {
	*ebpf.Map // nil while there are none: the tables take all
	memory    *ebpf.Memory
}

const (
	placeSize    = int64(unsafe.Sizeof(abi.FlowPlace{}))
	firstPlace   = 64      // behind whether they are open
	placesPart   = 1 << 10 // places that are read at once
	memoryMapped = 1 << 10 // BPF_F_MMAPABLE
)

// placesSize is how many bytes so many places take.
func placesSize(n uint32) int64 { return firstPlace + int64(n)*placeSize }

func placesSpec(n uint32) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "flow_places", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(placesSize(n)), MaxEntries: 1, Flags: memoryMapped}
}

// count is how many there are.
func (p *places) count() int { return int((int64(p.ValueSize()) - firstPlace) / placeSize) }

// makePlaces makes so many for one CPU; they are free and open.
func makePlaces(n uint32) (p places, err error) {
	if p.Map, err = ebpf.NewMap(placesSpec(n)); err != nil {
		return places{}, err
	}
	if err := p.open(); err != nil {
		return places{}, errors.Join(err, p.close())
	}
	return p, nil
}

// open has flows begin there.
func (p *places) open() (err error) {
	if p.memory, err = p.Memory(); err != nil {
		return fmt.Errorf("map the places of flows: %w", err)
	}
	return p.setOpen(1)
}

func (p *places) setOpen(to uint64) error {
	return put(p.memory, []uint64{to}, 0)
}

func (p *places) close() error {
	if p.Map == nil {
		return nil
	}
	return p.Map.Close()
}

// makePlaces gives those CPUs of the set places that have none: that takes one grace period of the kernel.
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

// adoptPlaces finds those there are. An agent before this one may have closed them, or not have known of any.
func (t *flowTables) adoptPlaces() (err error) {
	for cpu := range t.places {
		p := &t.places[cpu]
		if p.Map, err = innerMap(t.maps.FlowPlaces, t.index(cpu)); err != nil {
			return err
		}
		if p.Map == nil {
			continue
		}
		if err := p.open(); err != nil {
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

// Retire has flows that begin after the next drain be counted in tables alone, where also an agent that knows of no places finds them. It is
// for before the last drain of an agent that stops; the next one that knows of places opens them again.
func (f *Flows) Retire() error {
	f.draining.Lock()
	defer f.draining.Unlock()
	for _, t := range f.tables {
		if t == nil {
			continue
		}
		for cpu := range t.places {
			if t.places[cpu].Map == nil {
				continue
			}
			if err := t.places[cpu].setOpen(0); err != nil {
				return fmt.Errorf("close the places of flows: %w", err)
			}
		}
	}
	return nil
}

// drainPlaces adds the flow of every place that was taken in the round, and frees those when all have been added: none must come again with
// the number of this batch when a later one has been added.
func drainPlaces(d *drain, p *places, round uint64, read *placesRead) error {
	if p.Map == nil {
		return nil
	}
	read.taken = read.taken[:0]
	for from := 0; from < p.count(); from += len(read.part) {
		part := read.part[:min(len(read.part), p.count()-from)]
		if _, err := p.memory.ReadAt(bytesOf(part), firstPlace+int64(from)*placeSize); err != nil {
			return fmt.Errorf("read counted flows: %w", err)
		}
		before := len(read.taken)
		for i := range part {
			if counts(&part[i], round) {
				read.taken = append(read.taken, uint32(from+i))
			}
		}
		taken := read.taken[before:]
		if len(taken) == 0 {
			continue
		}
		entry := func(i int) (flow.Key, *abi.Flow) {
			at := &part[int(taken[i])-from]
			return keyAtPlace(at), &at.Flow
		}
		if err := errors.Join(d.add(d.batch(len(taken), entry)), d.step("added")); err != nil {
			return err
		}
	}
	if len(read.taken) == 0 {
		return nil
	}
	for _, i := range read.taken {
		if err := put(p.memory, []uint64{0}, (firstPlace+int64(i)*placeSize)/8); err != nil {
			return fmt.Errorf("free the place of a drained flow: %w", err)
		}
	}
	return d.step("removed")
}

// placesRead is what reading places needs, kept for the next time.
type placesRead struct {
	part  []abi.FlowPlace
	taken []uint32
}

// counts says whether a flow has the place in the round and has counted something: one that was given the place of another begins there with
// nothing.
func counts(at *abi.FlowPlace, round uint64) bool { return at.Tag>>1 == round && at.Flow.Packets > 0 }

// keyAtPlace reads the key of the flow that has the place.
func keyAtPlace(at *abi.FlowPlace) flow.Key {
	if at.Tag&1 != 0 {
		return wideKeyOf(&at.Key)
	}
	return keyOf((*abi.FlowKey)(unsafe.Pointer(&at.Key)))
}
