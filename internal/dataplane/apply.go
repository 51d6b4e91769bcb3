package dataplane

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// Instant is the time at which a plan became active for all ports: it lies between the two readings of
// CLOCK_MONOTONIC, in nanoseconds, before and after the one system call that activates the plan. The zero Instant
// means none.
type Instant struct{ Before, After int64 }

// Monotonic reads CLOCK_MONOTONIC, in nanoseconds: the clock of Instant and of bpf_ktime_get_ns.
func Monotonic() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return ts.Nano(), nil
}

// Apply makes the desired state active in the kernel, and returns when every device is attached.
func (k *Kernel) Apply(d binding.Desired) error {
	if _, err := k.Change(d, nil); err != nil {
		return err
	}
	for {
		left, err := k.Attach(time.Second)
		if left == 0 || err != nil {
			return err
		}
	}
}

// Change activates the desired state: all ports change at one instant, and a port whose device and slot stay is never
// detached. ready, unless nil, is called when everything is written and checked but not active yet. On an error before
// that instant, including one of ready, nothing has changed. Afterwards Attach attaches new devices and detaches old
// ones.
func (k *Kernel) Change(d binding.Desired, ready func() error) (Instant, error) {
	if err := k.register.freeDrained(); err != nil {
		return Instant{}, err
	}
	d, err := k.overlays.attachTrunks(d)
	if err != nil {
		return Instant{}, err
	}
	a, err := k.slots.Assign(d.Plan)
	if err != nil {
		return Instant{}, err
	}
	points := sync.OnceValue(func() map[plan.PortID]flow.Point { return compile.Points(d, k.slots) })
	k.bare = false
	at, err := k.activate(d, a, points, ready)
	if err != nil {
		k.slots.Undo(a)
		return Instant{}, errors.Join(err, k.overlays.undoTrunks())
	}
	k.flows.note(points(), k.slots)
	errMatch := errors.Join(k.captures.follow(k.slots), k.links.match(k.wantedLinks(d), k.objects.SlotByIfindex,
		k.objects.SlotByHighIfindex))
	k.egress.note(k.wantedEgress(d))
	k.overlays.note(d)
	// The new program finds the plan and the slots of its devices as soon as a device runs it.
	if err := errors.Join(errMatch, k.exchange()); err != nil {
		return at, err
	}
	if k.from != nil {
		if at.After, err = Monotonic(); err != nil {
			return at, err
		}
	}
	// Wait until runs that began with the old plan have ended: before the sweep, so that they cannot add back what it
	// removes, and before free slots can be reused.
	if err := k.tables.awaitGrace(); err != nil {
		return at, err
	}
	if err := k.finishUpgrade(); err != nil {
		return at, err
	}
	if err := k.sweepBehind(d.Plan); err != nil {
		return at, err
	}
	if err := k.register.forget(a); err != nil {
		return at, err
	}
	k.slots.Release(a)
	k.flows.settle(d.Plan)
	return at, errors.Join(k.overlays.settle(d), k.captures.follow(k.slots), k.standIn.forget(k.slots))
}

func (k *Kernel) activate(d binding.Desired, a *compile.Assignment, points func() map[plan.PortID]flow.Point,
	ready func() error) (Instant, error) {
	img, err := compile.Tables(d, k.slots, k.hz)
	if err != nil {
		return Instant{}, err
	}
	var fresh map[plan.PortID]flow.Point
	if len(a.NewPorts) > 0 { // observation points that exist stay the same until the plan is active
		fresh = points()
	}
	if err := errors.Join(k.register.write(a, fresh), k.flows.prepare(d.Plan, k.slots),
		k.overlays.prepare(d), k.standIn.know(k.slots)); err != nil {
		return Instant{}, err
	}
	k.flows.note(fresh, k.slots)
	next, err := k.tables.write(img)
	if err != nil {
		return Instant{}, fmt.Errorf("write plan: %w", err)
	}
	if ready != nil {
		if err := ready(); err != nil {
			return Instant{}, err
		}
	}
	return k.tables.flip(next)
}

// wantedEgress lists the devices on which the switch looks up the host's own frames before they leave.
func (k *Kernel) wantedEgress(d binding.Desired) map[uint32]uint32 {
	want := map[uint32]uint32{}
	for _, sw := range d.Plan.Switches {
		for _, u := range sw.Uplinks {
			if at, ok := d.Attachments[u.ID]; ok && d.Facts[u.ID].HostTraffic {
				want[at.Ifindex] = k.slots.Ports[u.ID]
			}
		}
	}
	return want
}

// wantedLinks lists the devices that must run the program, with the slot of their port.
func (k *Kernel) wantedLinks(d binding.Desired) map[uint32]uint32 {
	want := map[uint32]uint32{}
	add := func(id plan.PortID) {
		_, known := d.Facts[id]
		if at, ok := d.Attachments[id]; ok && known {
			want[at.Ifindex] = k.slots.Ports[id]
		}
	}
	for _, sw := range d.Plan.Switches {
		for id := range compile.MembersOf(sw) {
			add(id)
		}
	}
	return want
}
