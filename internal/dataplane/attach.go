package dataplane

import (
	"maps"
	"time"
)

// Attach attaches and detaches devices as the last Change asked for, and returns how many are left. It stops after the budget,
// at the first device beyond it: each costs some 10 ms (a grace period of the kernel), and a thousand would keep the caller
// from everything else for as many. Devices that are gone go first. One that fails is in the error, is not counted as left, and
// is tried again after the next Change or RetryAttach.
func (k *Kernel) Attach(budget time.Duration) (left int, err error) {
	return k.links.step(time.Now().Add(budget))
}

// Unattached are the devices, by ifindex, that shall run the program and do not yet: nil, or why not where that was tried.
func (k *Kernel) Unattached() map[uint32]error { return maps.Clone(k.links.wanted) }

// RetryAttach has Attach try again what failed.
func (k *Kernel) RetryAttach() {
	for index := range k.links.wanted {
		k.links.wanted[index] = nil
	}
}

// Adopted says whether the device was attached already when this process began.
func (k *Kernel) Adopted(ifindex uint32) bool { return k.links.adopted[ifindex] }
