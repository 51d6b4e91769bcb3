package dataplane

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/flow"
)

// places are one CPU's of one set (struct flow_places): where a frame finds the flows that have most of its traffic without a call. They
// are 132 kB, of any number of flows, and are read and written through memory.
type places struct {
	*ebpf.Map // nil while there are none: the tables take all
	memory    *ebpf.Memory
}

const (
	placeSize    = int64(unsafe.Sizeof(abi.FlowPlace{}))
	openAt       = abi.FlowPlaces * placeSize
	placesSize   = openAt + 64
	memoryMapped = 1 << 10 // BPF_F_MMAPABLE
)

func placesSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "flow_places", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(placesSize), MaxEntries: 1, Flags: memoryMapped}
}

// makePlaces makes those of one CPU; they are free and open.
func makePlaces() (p places, err error) {
	if p.Map, err = ebpf.NewMap(placesSpec()); err != nil {
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
	return put(p.memory, []uint64{to}, openAt/8)
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
		p, err := makePlaces()
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

// drainPlaces adds the flow of every place that was taken in the round, and frees it when all have been added: it must not come again with the
// number of this batch when a later one has been added.
func drainPlaces(d *drain, p *places, round uint64, buffer []abi.FlowPlace) error {
	if p.Map == nil {
		return nil
	}
	if _, err := p.memory.ReadAt(bytesOf(buffer), 0); err != nil {
		return fmt.Errorf("read counted flows: %w", err)
	}
	taken := takenPlaces(buffer, round)
	if len(taken) == 0 {
		return nil
	}
	entry := func(i int) (flow.Key, *abi.Flow) {
		at := &buffer[taken[i]]
		return keyAtPlace(at), &at.Flow
	}
	if err := errors.Join(d.add(d.batch(len(taken), entry)), d.step("added")); err != nil {
		return err
	}
	for _, i := range taken {
		if err := put(p.memory, []uint64{0}, int64(i)*placeSize/8); err != nil {
			return fmt.Errorf("free the place of a drained flow: %w", err)
		}
	}
	return d.step("removed")
}

// takenPlaces are those whose flow has counted something: one that was given the place of another begins there with nothing.
func takenPlaces(all []abi.FlowPlace, round uint64) (taken []int) {
	for i := range all {
		if all[i].Tag>>1 == round && all[i].Flow.Packets > 0 {
			taken = append(taken, i)
		}
	}
	return taken
}

// keyAtPlace reads the key of the flow that has the place.
func keyAtPlace(at *abi.FlowPlace) flow.Key {
	if at.Tag&1 != 0 {
		return wideKeyOf(&at.Key)
	}
	return keyOf((*abi.FlowKey)(unsafe.Pointer(&at.Key)))
}
