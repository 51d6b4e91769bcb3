package presence

import (
	"time"

	"heddle/internal/host/guest"
	"heddle/internal/observe"
)

// Wait is a port's wait for a guest that runs elsewhere: one that will arrive by migration, or that has left by
// migration and may come back. The record stays when the wait is over, so that the same migration does not start
// another wait. A nil *Wait is a port that never waited: its guest runs here.
type Wait struct {
	// Number is that of the wait, higher than those of all earlier waits of the host.
	Number uint32 `json:"number"`
	// Left: the guest has left. Otherwise it will arrive.
	Left bool `json:"left,omitzero"`
	// Awake: the wait is over.
	Awake bool `json:"awake,omitzero"`
	// Doubt: it is not known yet whether the guest runs here. Its QEMU is asked. With Awake: the port speaks because
	// of a frame that may have been under way since before the hypervisor stopped the guest.
	Doubt bool `json:"doubt,omitzero"`
	// Down: the device of a port whose guest has left has gone down since. When it comes up again, it belongs to
	// another guest.
	Down bool `json:"down,omitzero"`
	// Why is the evidence with which the wait began.
	Why   observe.WaitEvidence `json:"why"`
	Since time.Time            `json:"since"`
}

// Silent reports whether the port is silent.
func (w *Wait) Silent() bool { return w != nil && !w.Awake }

// Unsure reports whether the port speaks for a guest of which its hypervisor said that it has left: that hypervisor is
// asked anew.
func (w *Wait) Unsure() bool { return w != nil && w.Awake && w.Doubt }

// Do is what is to be done with a port's wait.
type Do uint8

// The steps.
const (
	Nothing Do = iota
	// Begin starts a wait as Step.Next, which gets a number.
	Begin
	// End ends the wait, in the kernel first, because of Step.Why.
	End
	// Over records that the kernel has ended the wait, because of Step.Why. With Step.Next.Doubt, the hypervisor is to
	// be asked anew, and Saw gets its answer even if it is the one of before.
	Over
	// Note replaces the record by Step.Next: nothing changes for the port.
	Note
	// Forget drops the record: the port's device belongs to another guest now.
	Forget
)

// Step is what is to be done, nothing for the zero value.
type Step struct {
	Do   Do
	Next Wait
	Why  string
}

// The texts of Step.Why.
const (
	WhyFrame    = "it has sent a frame"
	WhyOperator = "an operator said so"
	whySilence  = "its QEMU does not say otherwise"
)

const (
	// DoubtAtMost is how long a port waits for its QEMU to say whether the guest runs here.
	DoubtAtMost = 2 * time.Second
	// UnsureAtMost is how long the frame of a guest that was stopped stays in doubt: a QEMU answers nothing while it
	// sends the last part of a migration.
	UnsureAtMost = 10 * time.Second
)

// Saw takes in what the hypervisor reports now about where the guest runs: left is the evidence that it has left, here
// the words for that it runs. Sent has to be asked before, because what the guest itself has sent counts first: one
// migration starts one wait, and a late report that the guest is still to come does not start it again.
func Saw(w *Wait, run guest.Run, left observe.WaitEvidence, here string) Step {
	arrives, gone := Wait{Why: observe.WaitQEMUWaits}, Wait{Left: true, Why: left}
	if run == guest.RunNotYet {
		arrives.Why, run = observe.WaitQEMUStarts, guest.RunWaits
	}
	switch {
	case w.Silent() && w.Doubt && run == guest.RunWaits:
		return w.known(arrives)
	case w.Silent() && w.Doubt && run == guest.RunLeft:
		return w.known(gone)
	case w == nil && run == guest.RunWaits:
		return Step{Do: Begin, Next: arrives}
	case !w.Silent() && run == guest.RunLeft:
		return Step{Do: Begin, Next: gone}
	case w.Unsure() && run != guest.RunUnknown:
		return w.sure()
	case w.Silent() && run == guest.RunHere:
		return Step{Do: End, Why: here}
	}
	return Step{}
}

// known ends a doubt. The wait keeps its number: the program may have ended it meanwhile.
func (w *Wait) known(next Wait) Step {
	next.Number, next.Since = w.Number, w.Since
	return Step{Do: Note, Next: next}
}

// sure ends the doubt about a frame: the port speaks as before.
func (w *Wait) sure() Step {
	next := *w
	next.Doubt = false
	return Step{Do: Note, Next: next}
}

// Sent takes in that the program has ended all waits up to the number over, because the guest sent a frame. now is what
// the hypervisor said last. The last frames of a guest that it has stopped may reach the program after the port was
// silenced: the port speaks, and the hypervisor is asked whether the guest is back.
func Sent(w *Wait, over uint32, now guest.Run) Step {
	if w.Silent() && w.Number <= over {
		return Step{Do: Over, Why: WhyFrame, Next: Wait{Doubt: now == guest.RunLeft}}
	}
	return Step{}
}

// Told takes in that somebody without evidence says that the guest runs here. now is what the hypervisor says: it is
// believed first.
func Told(w *Wait, now guest.Run) (Step, bool) {
	switch {
	case !w.Silent():
		return Step{}, true
	case now == guest.RunWaits || now == guest.RunLeft || now == guest.RunNotYet:
		return Step{}, false
	}
	return Step{Do: End, Why: WhyOperator}, true
}

// Silenced takes in that somebody without evidence says that the guest has left. now is what the hypervisor says: it is
// believed first. A port that waits for its guest to arrive can't be left.
func Silenced(w *Wait, now guest.Run) (Step, bool) {
	switch {
	case w.Silent() && w.Left:
		return Step{}, true
	case w.Silent() || now == guest.RunHere:
		return Step{}, false
	}
	return Step{Do: Begin, Next: Wait{Left: true, Why: observe.WaitSilenced}}, true
}

// Device takes in whether the port's device is up. Its record ends with the guest it was for: when the device goes
// down after the wait was over, or comes up again after the guest had left and its QEMU had ended.
func Device(w *Wait, up bool) Step {
	switch {
	case w == nil:
	case w.Awake && !up, w.Left && w.Down && up:
		return Step{Do: Forget}
	case w.Left && !up && !w.Down:
		next := *w
		next.Down = true
		return Step{Do: Note, Next: next}
	}
	return Step{}
}

// Connected takes in that a port was just connected. One whose QEMU can be asked waits until that says whether the
// guest runs here: what waits for a migration must not be announced before.
func Connected(w *Wait, asks bool, now guest.Run) Step {
	if !asks || w != nil || now == guest.RunHere {
		return Step{}
	}
	return Step{Do: Begin, Next: Wait{Doubt: true, Why: observe.WaitQEMUSilent}}
}

// Resumed takes in that the agent has started while the program of the one before held the port silent by a wait of
// that number. A wait that the record doesn't have was not written in time: the port stays silent until its hypervisor,
// its guest or an operator says that the guest runs here.
func Resumed(w *Wait, waits uint32) Step {
	if waits == 0 || w != nil && w.Number >= waits {
		return Step{}
	}
	return Step{Do: Begin, Next: Wait{Left: true, Why: observe.WaitRecordLost}}
}

// Tick takes in that time has passed: a QEMU that doesn't answer keeps no guest from its network.
func Tick(w *Wait, now time.Time) Step {
	switch {
	case w.Silent() && w.Doubt && now.Sub(w.Since) >= DoubtAtMost:
		return Step{Do: End, Why: whySilence}
	case w.Unsure() && now.Sub(w.Since) >= UnsureAtMost:
		return w.sure()
	}
	return Step{}
}
