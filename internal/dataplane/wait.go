package dataplane

import (
	"fmt"

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

// Awake returns, for every port that ever sent a frame while it waited or was woken, the number of its last wait that
// has ended.
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
	for id, slot := range k.slots.Ports {
		if n, ok := by[slot]; ok {
			out[id] = n
		}
	}
	return out, nil
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
