package dataplane

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

func text(b [abi.NameLen]uint8) string {
	s, _, _ := bytes.Cut(b[:], []byte{0})
	return string(s)
}

func fixed(s string) (b [abi.NameLen]uint8, err error) {
	if len(s) >= abi.NameLen {
		return b, fmt.Errorf("name %q is longer than %d bytes", s, abi.NameLen-1)
	}
	copy(b[:], s)
	return b, nil
}

func portID(n abi.PortName) plan.PortID {
	return plan.PortID{Switch: text(n.SwitchName), Name: text(n.Name)}
}

// register records which port each slot of the tables belongs to, in the process and in the kernel.
type register struct {
	*compile.Slots
	maps  *vswitchMaps
	flows *Flows // a slot may be needed for a while after its port is gone
}

// adopt reads which port and switch each slot belongs to.
func (r *register) adopt() error {
	var name abi.PortName
	for slot := uint32(1); slot < abi.MaxPorts; slot++ {
		if err := r.maps.PortNames.Lookup(slot, &name); err != nil {
			return fmt.Errorf("read name of slot %d: %w", slot, err)
		}
		id := portID(name)
		if name.Epoch == 0 && id.Name != "" {
			// its tables come from those of a program without epochs
			name.Epoch = 1
			if err := r.maps.PortNames.Put(slot, &name); err != nil {
				return fmt.Errorf("note the epoch of slot %d: %w", slot, err)
			}
		}
		if name.Epoch != 0 {
			r.Epochs[slot] = name.Epoch
		}
		switch {
		case id.Name == "":
		case name.Left != 0:
			r.Leaving[slot] = true
			r.flows.keep(uint16(slot), flow.Point{ID: id, Number: name.Number})
		default:
			r.Ports[id] = slot
		}
	}
	var sw abi.SwitchName
	for id := uint32(0); id < abi.MaxSwitches; id++ {
		if err := r.maps.SwitchNames.Lookup(id, &sw); err != nil {
			return fmt.Errorf("read name of switch %d: %w", id, err)
		}
		if s := text(sw.Name); s != "" {
			r.Switches[s] = uint8(id)
		}
	}
	return nil
}

// write records new ports and switches in the kernel and sets their counters to zero.
func (r *register) write(a *compile.Assignment, p map[plan.PortID]flow.Point) error {
	zero := make([]abi.Counters, ebpf.MustPossibleCPU())
	for id, slot := range a.NewPorts {
		var n abi.PortName
		var err error
		if n.SwitchName, err = fixed(id.Switch); err != nil {
			return err
		}
		if n.Name, err = fixed(id.Name); err != nil {
			return err
		}
		if err := r.maps.Counts.Put(slot, zero); err != nil {
			return fmt.Errorf("reset counters of %s: %w", id, err)
		}
		if err := r.maps.CountsBefore.Put(slot, &zero[0]); err != nil {
			return fmt.Errorf("reset earlier counters of %s: %w", id, err)
		}
		for _, rare := range []*ebpf.Map{r.maps.RareCounts, r.maps.RareCountsBefore} {
			if err := rare.Put(slot, &abi.RareCounters{}); err != nil {
				return fmt.Errorf("reset counters of %s: %w", id, err)
			}
		}
		if err := r.maps.StormBuckets.Put(slot, &abi.StormBucket{}); err != nil {
			return fmt.Errorf("reset storm control of %s: %w", id, err)
		}
		if err := r.maps.MeterPoints.Put(slot, make([]abi.MeterPoint, len(zero))); err != nil {
			return fmt.Errorf("reset what was metered at %s: %w", id, err)
		}
		n.Number, n.Epoch = p[id].Number, r.Epochs[slot]
		if err := r.maps.PortNames.Put(slot, &n); err != nil {
			return fmt.Errorf("note port %s: %w", id, err)
		}
	}
	for name, id := range a.NewSwitches {
		var n abi.SwitchName
		var err error
		if n.Name, err = fixed(name); err != nil {
			return err
		}
		if err := r.maps.SwitchNames.Put(uint32(id), &n); err != nil {
			return fmt.Errorf("note switch %s: %w", name, err)
		}
	}
	return nil
}

// forget removes ports that left. A port at which flows may have been counted keeps its slot until those are drained.
func (r *register) forget(a *compile.Assignment) error {
	for id, slot := range a.GoneSlots {
		if r.flows.leave(uint16(slot)) {
			if err := r.leaves(id, slot); err != nil {
				return err
			}
			continue
		}
		if err := r.free(slot); err != nil {
			return fmt.Errorf("forget port %s: %w", id, err)
		}
	}
	for name, id := range a.GoneIDs {
		if err := r.maps.SwitchNames.Put(uint32(id), &abi.SwitchName{}); err != nil {
			return fmt.Errorf("forget switch %s: %w", name, err)
		}
	}
	return nil
}

// free records that no port has the slot.
func (r *register) free(slot uint32) error {
	return r.maps.PortNames.Put(slot, &abi.PortName{Epoch: r.Epochs[slot]})
}

// leaves records that the port is gone but its slot is not free yet.
func (r *register) leaves(id plan.PortID, slot uint32) error {
	var n abi.PortName
	if err := r.maps.PortNames.Lookup(slot, &n); err != nil {
		return fmt.Errorf("read name of %s: %w", id, err)
	}
	n.Left = 1
	if err := r.maps.PortNames.Put(slot, &n); err != nil {
		return fmt.Errorf("note that %s is gone: %w", id, err)
	}
	r.Leaving[slot] = true
	return nil
}

// freeDrained frees the slots of ports that are gone and whose flows are drained.
func (r *register) freeDrained() error {
	for slot := range r.Leaving {
		if r.flows.keeps(uint16(slot)) {
			continue
		}
		if err := r.free(slot); err != nil {
			return fmt.Errorf("forget the port at slot %d: %w", slot, err)
		}
		delete(r.Leaving, slot)
	}
	return nil
}

// rename records in the kernel the name of the port at a slot.
func (r *register) rename(slot uint32, id plan.PortID) error {
	var n abi.PortName
	err := r.maps.PortNames.Lookup(slot, &n)
	if err == nil {
		n.SwitchName, err = fixed(id.Switch)
	}
	if err == nil {
		n.Name, err = fixed(id.Name)
	}
	if err == nil {
		err = r.maps.PortNames.Put(slot, &n)
	}
	if err != nil {
		return fmt.Errorf("note port %s: %w", id, err)
	}
	return nil
}

// moveCounters adds the counts of one slot to the earlier counts of another, and sets the first to zero.
func (r *register) moveCounters(from, to uint32) error {
	for _, t := range []struct{ now, before *ebpf.Map }{
		{r.maps.Counts, r.maps.CountsBefore}, {r.maps.RareCounts, r.maps.RareCountsBefore},
	} {
		sum := make([]uint64, t.before.ValueSize()/8)
		zero := make([]byte, t.before.ValueSize())
		for _, x := range []struct {
			table *ebpf.Map
			slot  uint32
		}{{t.before, to}, {t.before, from}, {t.now, from}} {
			if err := addSlot(sum, x.table, x.slot); err != nil {
				return err
			}
		}
		err := t.before.Put(to, bytesOf(sum))
		if err == nil {
			err = errors.Join(t.before.Put(from, zero), clearSlot(t.now, from, zero))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addSlot adds the counters, numbers of 8 bytes, that a table has at a slot.
func addSlot(sum []uint64, table *ebpf.Map, slot uint32) error {
	if table.Type() == ebpf.PerCPUArray {
		var perCPU [][]byte
		if err := table.Lookup(slot, &perCPU); err != nil {
			return err
		}
		for _, b := range perCPU {
			add(sum, b)
		}
		return nil
	}
	var b []byte
	if err := table.Lookup(slot, &b); err != nil {
		return err
	}
	add(sum, b)
	return nil
}

func clearSlot(table *ebpf.Map, slot uint32, zero []byte) error {
	if table.Type() != ebpf.PerCPUArray {
		return table.Put(slot, zero)
	}
	all := make([][]byte, ebpf.MustPossibleCPU())
	for i := range all {
		all[i] = zero
	}
	return table.Put(slot, all)
}
