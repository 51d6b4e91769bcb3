package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Wake ends the wait of that number of a port: its guest runs here (S99). The next frame finds it so, without a change of plan.
func (k *Kernel) Wake(id plan.PortID, wait uint32) error {
	slot, ok := k.slots.ports[id]
	if !ok {
		return nil // it is not in the plan: there is nothing to wake
	}
	var over uint64
	err := k.objects.Awake.Lookup(slot, &over)
	if err == nil && over < uint64(wait) {
		err = k.objects.Awake.Put(slot, uint64(wait))
	}
	if err != nil {
		return fmt.Errorf("end the wait of port %s: %w", id, err)
	}
	return nil
}

// Awake gives, for every port that ever sent a frame while it waited or was woken, the number of the last wait that is over.
func (k *Kernel) Awake() (map[plan.PortID]uint32, error) {
	var all contents[uint32, uint64]
	if err := all.read(k.objects.Awake); err != nil {
		return nil, fmt.Errorf("read which ports' waits are over: %w", err)
	}
	by := make(map[uint32]uint32, len(all.keys))
	for i, slot := range all.keys {
		if n := all.values[i]; n != 0 {
			by[slot] = uint32(n)
		}
	}
	out := make(map[plan.PortID]uint32, len(by))
	for id, slot := range k.slots.ports {
		if n, ok := by[slot]; ok {
			out[id] = n
		}
	}
	return out, nil
}

// Succeed lets one port take the place of another: the successor is called what the other was, with what that has counted, and the other
// gets the name left. Neither changes what it does. The next Change has the plan with these names.
func (k *Kernel) Succeed(port, successor, left plan.PortID) error {
	to, ok := k.slots.ports[successor]
	if !ok {
		return fmt.Errorf("no port %s is in the plan in force", successor)
	}
	from, had := k.slots.ports[port]
	if had {
		if err := k.moveCounters(from, to); err != nil {
			return fmt.Errorf("take over the counters of port %s: %w", port, err)
		}
	}
	if err := rename(k.objects.PortNames, to, port); err != nil {
		return err
	}
	delete(k.slots.ports, successor)
	k.slots.ports[port] = to
	if !had {
		return nil
	}
	k.slots.ports[left] = from
	return rename(k.objects.PortNames, from, left)
}

// rename notes in the kernel what the port at a slot is called.
func rename(names *ebpf.Map, slot uint32, id plan.PortID) error {
	var n abi.PortName
	err := names.Lookup(slot, &n)
	if err == nil {
		n.SwitchName, err = fixed(id.Switch)
	}
	if err == nil {
		n.Name, err = fixed(id.Name)
	}
	if err == nil {
		err = names.Put(slot, &n)
	}
	if err != nil {
		return fmt.Errorf("note port %s: %w", id, err)
	}
	return nil
}

// moveCounters adds what was counted at one slot to what was counted before at another, and begins anew there.
func (k *Kernel) moveCounters(from, to uint32) error {
	for _, t := range []struct{ now, before *ebpf.Map }{
		{k.objects.Counts, k.objects.CountsBefore}, {k.objects.RareCounts, k.objects.RareCountsBefore},
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

// addSlot adds what a table of counters, which are numbers of 8 bytes, has at a slot.
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
