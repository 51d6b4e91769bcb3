package dataplane

import (
	"errors"
	"maps"
	"time"
)

// Attach attaches and detaches devices as the last Change requires, and returns how many are left. It stops when the
// budget is used up, after the device at hand: each device takes some 10 ms (a grace period of the kernel), so that a
// thousand would block the caller for 10 s. Devices that are to be detached come first. A device that fails is in the
// error, unless the device is gone; it is not counted as left, and is tried again after the next Change or RetryAttach.
func (k *Kernel) Attach(budget time.Duration) (left int, err error) {
	until := time.Now().Add(budget)
	left, err = k.links.step(until)
	for _, l := range append([]*links{k.egress}, k.overlays.links()...) {
		more, errMore := l.step(until)
		left, err = left+more, errors.Join(err, errMore)
	}
	return left, err
}

// Unattached returns the devices, by ifindex, that must run the program but do not yet: with the error of the last
// attempt, or nil before the first.
func (k *Kernel) Unattached() map[uint32]error {
	all := map[uint32]error{}
	maps.Copy(all, k.egress.wanted)
	for _, l := range append(k.overlays.links(), k.links) {
		maps.Copy(all, l.wanted)
	}
	return all
}

// RetryAttach makes Attach try again the devices that failed.
func (k *Kernel) RetryAttach() {
	for _, l := range append(k.overlays.links(), k.links, k.egress) {
		for index := range l.wanted {
			l.wanted[index] = nil
		}
	}
}

// Adopted reports whether the device was already attached when this process began.
func (k *Kernel) Adopted(ifindex uint32) bool { return k.links.adopted[ifindex] }
