package dataplane

import (
	"fmt"
	"unsafe"

	"heddle/internal/abi"
	"heddle/internal/dataplane/entries"
	"heddle/internal/plan"
)

// Waits are the waits of ports by their numbers (S99).
type Waits interface {
	// Begun are those of the active plan, ended by the program or not. After an upgrade that changes the layout of
	// plans there are none until the next Change. It reads the records of all ports.
	Begun() (map[plan.PortID]uint32, error)
	// Over are, for every port that ever sent a frame while it waited or was woken, the last wait that has ended.
	Over() (map[plan.PortID]uint32, error)
	// End ends the wait with that number at a port: its guest runs here. This applies from the next frame on, without a
	// change of plan.
	End(id plan.PortID, wait uint32) error
}

// Waits returns the waits of the kernel's ports.
func (k *Kernel) Waits() Waits { return waits{k} }

type waits struct{ *Kernel }

func (k waits) Begun() (map[plan.PortID]uint32, error) {
	control, err := k.tables.inForce()
	if err != nil {
		return nil, err
	}
	const size = int64(unsafe.Sizeof(abi.Port{}))
	records := make([]abi.Port, abi.MaxPorts)
	half := int64(control.Generation & 1)
	if err := readAt(k.objects.Ports, bytesOf(records), half*abi.MaxPorts*size); err != nil {
		return nil, fmt.Errorf("read which ports wait: %w", err)
	}
	out := map[plan.PortID]uint32{}
	for id, slot := range k.slots.Ports {
		if r := &records[slot]; r.Rules&abi.RuleWaits != 0 {
			out[id] = r.Wait
		}
	}
	return out, nil
}

func (k waits) Over() (map[plan.PortID]uint32, error) {
	var all entries.Of[uint32, uint64]
	if err := all.Read(k.objects.Awake); err != nil {
		return nil, fmt.Errorf("read which ports' waits are over: %w", err)
	}
	by := make(map[uint32]uint32, len(all.Keys))
	for i, slot := range all.Keys {
		if n := all.Values[i]; n != 0 {
			by[slot] = uint32(n)
		}
	}
	out := make(map[plan.PortID]uint32, len(by))
	for id, slot := range k.slots.Ports {
		if n, ok := by[slot]; ok {
			out[id] = n
		}
	}
	return out, nil
}

func (k waits) End(id plan.PortID, wait uint32) error {
	slot, ok := k.slots.Ports[id]
	if !ok {
		return nil // the port is not in the plan: there is nothing to wake
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

// Succeed replaces one port by another: the successor gets the name and the counters of the other port, and the other
// port gets the name left. Forwarding does not change. The next Change has the plan with these names.
func (k *Kernel) Succeed(port, successor, left plan.PortID) error {
	to, ok := k.slots.Ports[successor]
	if !ok {
		return fmt.Errorf("no port %s is in the active plan", successor)
	}
	from, had := k.slots.Ports[port]
	if had {
		if err := k.register.moveCounters(from, to); err != nil {
			return fmt.Errorf("take over the counters of port %s: %w", port, err)
		}
	}
	if err := k.register.rename(to, port); err != nil {
		return err
	}
	delete(k.slots.Ports, successor)
	k.slots.Ports[port] = to
	if !had {
		return nil
	}
	k.slots.Ports[left] = from
	return k.register.rename(from, left)
}
