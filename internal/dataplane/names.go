package dataplane

import (
	"bytes"
	"fmt"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
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

// writeNames notes new ports and switches in the kernel and gives their counters a fresh start.
func (k *Kernel) writeNames(a *assignment, p map[plan.PortID]flow.Point) error {
	zero := make([]abi.Counters, ebpf.MustPossibleCPU())
	for id, slot := range a.newPorts {
		var n abi.PortName
		var err error
		if n.SwitchName, err = fixed(id.Switch); err != nil {
			return err
		}
		if n.Name, err = fixed(id.Name); err != nil {
			return err
		}
		if err := k.objects.Counts.Put(slot, zero); err != nil {
			return fmt.Errorf("reset counters of %s: %w", id, err)
		}
		if err := k.objects.CountsBefore.Put(slot, &zero[0]); err != nil {
			return fmt.Errorf("reset earlier counters of %s: %w", id, err)
		}
		for _, rare := range []*ebpf.Map{k.objects.RareCounts, k.objects.RareCountsBefore} {
			if err := rare.Put(slot, &abi.RareCounters{}); err != nil {
				return fmt.Errorf("reset counters of %s: %w", id, err)
			}
		}
		if err := k.objects.StormBuckets.Put(slot, &abi.StormBucket{}); err != nil {
			return fmt.Errorf("reset storm control of %s: %w", id, err)
		}
		if err := k.objects.MeterPoints.Put(slot, make([]abi.MeterPoint, len(zero))); err != nil {
			return fmt.Errorf("reset what was metered at %s: %w", id, err)
		}
		n.Number = p[id].Number
		if err := k.objects.PortNames.Put(slot, &n); err != nil {
			return fmt.Errorf("note port %s: %w", id, err)
		}
	}
	for name, id := range a.newSwitches {
		var n abi.SwitchName
		var err error
		if n.Name, err = fixed(name); err != nil {
			return err
		}
		if err := k.objects.SwitchNames.Put(uint32(id), &n); err != nil {
			return fmt.Errorf("note switch %s: %w", name, err)
		}
	}
	return nil
}

// forgetNames removes what left. A port at which flows may have been counted keeps its place until those are drained.
func (k *Kernel) forgetNames(a *assignment) error {
	for id, slot := range a.goneSlots {
		if k.flows.leave(uint16(slot)) {
			if err := k.leaves(id, slot); err != nil {
				return err
			}
			continue
		}
		if err := k.objects.PortNames.Put(slot, &abi.PortName{}); err != nil {
			return fmt.Errorf("forget port %s: %w", id, err)
		}
	}
	for name, id := range a.goneIDs {
		if err := k.objects.SwitchNames.Put(uint32(id), &abi.SwitchName{}); err != nil {
			return fmt.Errorf("forget switch %s: %w", name, err)
		}
	}
	return nil
}

// leaves notes that the port is gone and its place is not free yet.
func (k *Kernel) leaves(id plan.PortID, slot uint32) error {
	var n abi.PortName
	if err := k.objects.PortNames.Lookup(slot, &n); err != nil {
		return fmt.Errorf("read name of %s: %w", id, err)
	}
	n.Left = 1
	if err := k.objects.PortNames.Put(slot, &n); err != nil {
		return fmt.Errorf("note that %s is gone: %w", id, err)
	}
	k.slots.leaving[slot] = true
	return nil
}

// freeDrained frees the places of ports that are gone whose flows are drained.
func (k *Kernel) freeDrained() error {
	for slot := range k.slots.leaving {
		if k.flows.keeps(uint16(slot)) {
			continue
		}
		if err := k.objects.PortNames.Put(slot, &abi.PortName{}); err != nil {
			return fmt.Errorf("forget the port at slot %d: %w", slot, err)
		}
		delete(k.slots.leaving, slot)
	}
	return nil
}
