package dataplane

import (
	"errors"
	"fmt"

	"heddle/internal/plan"
)

// Apply makes the kernel do what is desired. All ports change at one instant; a port whose device and slot stay is never
// detached. On an error before that instant nothing has changed.
func (k *Kernel) Apply(d Desired) error {
	a, err := k.slots.assign(d.Plan)
	if err != nil {
		return err
	}
	img, err := compile(d, k.slots, k.hz)
	if err != nil {
		k.slots.undo(a)
		return err
	}
	if err := k.putInForce(img, a); err != nil {
		k.slots.undo(a)
		return err
	}
	attachErr := k.links.match(k.wantedLinks(d), k.objects.SlotByIfindex, k.objects.SlotByHighIfindex)
	// Runs that began under the old plan end before the sweep, so that they cannot bring back what it removes, and before
	// places that became free can be given away.
	if err := k.tables.awaitGrace(); err != nil {
		return errors.Join(attachErr, err)
	}
	if _, err := k.Sweep(); err != nil {
		return errors.Join(attachErr, err)
	}
	if err := k.forgetNames(a); err != nil {
		return errors.Join(attachErr, err)
	}
	k.slots.release(a)
	return attachErr
}

func (k *Kernel) putInForce(img *image, a *assignment) error {
	if err := k.writeNames(a); err != nil {
		return err
	}
	next, err := k.tables.write(img)
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return k.tables.flip(next)
}

// wantedLinks lists the devices that shall run the program, with the slot of their port.
func (k *Kernel) wantedLinks(d Desired) map[uint32]uint32 {
	want := map[uint32]uint32{}
	add := func(id plan.PortID) {
		_, known := d.Facts[id]
		if at, ok := d.Attachments[id]; ok && known {
			want[at.Ifindex] = k.slots.ports[id]
		}
	}
	for _, sw := range d.Plan.Switches {
		for _, id := range membersOf(sw) {
			add(id)
		}
	}
	return want
}
