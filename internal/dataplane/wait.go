package dataplane

import (
	"errors"
	"fmt"
	"unsafe"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Wake ends the wait with that number at a port: its guest runs here (S99). This applies from the next frame on,
// without a change of plan.
func (k *Kernel) Wake(id plan.PortID, wait uint32) error {
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

// Waits are the waits of ports by their numbers.
type Waits struct {
	// Begun are those of the active plan, ended by the program or not.
	Begun map[plan.PortID]uint32
	// Over are, for every port that ever sent a frame while it waited or was woken, the last wait that has ended.
	Over map[plan.PortID]uint32
}

// Waits reads which ports wait. After an upgrade that changes the layout of plans nothing is Begun until the next
// Change.
func (k *Kernel) Waits() (Waits, error) {
	control, err := k.tables.inForce()
	if err != nil {
		return Waits{}, err
	}
	const size = int64(unsafe.Sizeof(abi.Port{}))
	records := make([]abi.Port, abi.MaxPorts)
	half := int64(control.Generation & 1)
	var over contents[uint32, uint64]
	err = errors.Join(readAt(k.objects.Ports, bytesOf(records), half*abi.MaxPorts*size), over.read(k.objects.Awake))
	if err != nil {
		return Waits{}, fmt.Errorf("read which ports wait: %w", err)
	}
	ended := make(map[uint32]uint32, len(over.keys))
	for i, slot := range over.keys {
		ended[slot] = uint32(over.values[i])
	}
	w := Waits{map[plan.PortID]uint32{}, map[plan.PortID]uint32{}}
	for id, slot := range k.slots.Ports {
		if r := &records[slot]; r.Rules&abi.RuleWaits != 0 {
			w.Begun[id] = r.Wait
		}
		if n := ended[slot]; n != 0 {
			w.Over[id] = n
		}
	}
	return w, nil
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
