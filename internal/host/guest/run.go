package guest

import (
	"context"
	"sync"

	"heddle/internal/host/qmp"
)

// Run says where a guest runs, as far as its QEMU reports it.
type Run uint8

// What a QEMU reports about its guest.
const (
	RunUnknown Run = iota
	// RunWaits: this QEMU waits for a guest that still runs elsewhere, or nowhere yet.
	RunWaits
	// RunHere: the guest runs here, or is paused here and runs nowhere else.
	RunHere
	// RunLeft: the guest was stopped here by a migration: it runs elsewhere from now on, unless the migration fails.
	RunLeft
	// RunNotYet: this QEMU has not started its guest, as one that was started with -S: the same guest may run
	// elsewhere, as when a backup of a VM that is off is read by a QEMU of its own.
	RunNotYet
)

// runOf interprets QEMU's status. A guest that was paused without being moved (paused, suspended, a disk error) stays
// here.
func runOf(status string) Run {
	switch status {
	case "":
		return RunUnknown
	case "inmigrate":
		return RunWaits
	case "prelaunch":
		return RunNotYet
	case "finish-migrate", "postmigrate":
		return RunLeft
	}
	return RunHere
}

// underWay reports whether a migration with that status may still stop the guest.
func underWay(step string) bool {
	switch step {
	case "setup", "wait-unplug", "active", "pre-switchover", "device",
		"postcopy-active", "postcopy-paused", "postcopy-recover", "postcopy-recover-setup":
		return true
	}
	return false
}

// askAgain is how many times a status is requested if events come in between.
const askAgain = 3

// runs tracks where the guest of one monitor runs. QEMU's main loop answers no request while the last part of a
// migration is sent; so if a migration is known to be in progress, its STOP event counts without a request.
type runs struct {
	tell func(now Run, asked bool) // called with mu held

	mu        sync.Mutex
	now       Run
	migrating bool
	doubted   bool // the next answer is told even if it is as before
	events    int  // number of events so far: an answer from before the last one is not used
}

// event processes an event, in the goroutine that reads the connection; it returns whether to ask QEMU about it.
func (r *runs) event(e qmp.Event) (ask bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Name {
	case qmp.Stop:
		if r.migrating {
			r.set(RunLeft)
		}
	case qmp.Resume:
		r.set(RunHere)
	case qmp.Migration:
		r.migrating = underWay(e.MigrationStep())
	default:
		return false
	}
	r.events++
	return true
}

func (r *runs) set(now Run) {
	if r.now != now {
		r.now = now
		r.tell(now, false)
	}
}

// doubt has the next answer told in any case.
func (r *runs) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubted = true
}

// ask finds out where the guest runs now.
func (r *runs) ask(ctx context.Context, c *qmp.Client) error {
	for range askAgain {
		before := r.count()
		step, err := c.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if r.answered(before, status, step) {
			return nil
		}
	}
	return nil // the state keeps changing, and every event makes us ask again
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

func (r *runs) answered(before int, status, step string) (used bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events != before {
		return false
	}
	r.migrating = underWay(step)
	if r.doubted {
		r.doubted, r.now = false, runOf(status)
		r.tell(r.now, true)
		return true
	}
	r.set(runOf(status))
	return true
}

// moving reports whether the guest may start or stop running here without an event from QEMU.
func (r *runs) moving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.migrating || r.now == RunWaits || r.now == RunLeft || r.now == RunNotYet
}
