package presence_test

import (
	"testing"
	"time"

	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
	"heddle/internal/observe"
)

// Who is believed when the sources disagree: the guest's own frame, then its hypervisor, then who connected the port,
// then an operator.
func TestS99_S100_WhoIsBelieved(t *testing.T) {
	silent := func(left bool) *presence.Wait {
		return &presence.Wait{Number: 7, Left: left, Why: observe.WaitAnnounced, Since: time.Unix(100, 0)}
	}
	saw := func(run guest.Run) func(*presence.Wait) presence.Step {
		return func(w *presence.Wait) presence.Step {
			return presence.Saw(w, run, observe.WaitQEMUStopped, "its QEMU runs it")
		}
	}
	told := func(now guest.Run) func(*presence.Wait) presence.Step {
		return func(w *presence.Wait) presence.Step { s, _ := presence.Told(w, now); return s }
	}
	sent := func(over uint32, now guest.Run) func(*presence.Wait) presence.Step {
		return func(w *presence.Wait) presence.Step { return presence.Sent(w, over, now) }
	}
	connected := func(now guest.Run) func(*presence.Wait) presence.Step {
		return func(w *presence.Wait) presence.Step { return presence.Connected(w, true, now) }
	}
	passed := func(after time.Duration) func(*presence.Wait) presence.Step {
		return func(w *presence.Wait) presence.Step { return presence.Tick(w, time.Unix(100, 0).Add(after)) }
	}
	awake, doubt := silent(false), silent(false)
	awake.Awake, doubt.Doubt = true, true
	gone := silent(true)
	gone.Awake = true
	unsure := silent(true)
	unsure.Awake, unsure.Doubt = true, true
	for _, c := range []struct {
		what string
		was  *presence.Wait
		says func(*presence.Wait) presence.Step
		do   presence.Do
		left bool // of the wait that begins
	}{
		{"a frame, and the hypervisor says that it is to come", silent(false), sent(7, guest.RunWaits), presence.Over,
			false},
		{"a frame, and the hypervisor said that it has left", silent(true), sent(7, guest.RunLeft), presence.Over,
			false},
		{"a frame that ended an earlier wait", silent(true), sent(6, guest.RunLeft), presence.Nothing, false},
		{"a late frame: the hypervisor is asked, and stopped it", unsure, saw(guest.RunLeft), presence.Begin, true},
		{"a late frame: the hypervisor is asked, and runs it", unsure, saw(guest.RunHere), presence.Note, true},
		{"a late frame: the hypervisor does not answer", unsure, saw(guest.RunUnknown), presence.Nothing, false},
		{"a late frame: time", unsure, passed(presence.UnsureAtMost - 1), presence.Nothing, false},
		{"a late frame: a long time", unsure, passed(presence.UnsureAtMost), presence.Note, true},
		{"after a frame: the hypervisor is late", awake, saw(guest.RunWaits), presence.Nothing, false},
		{"after a frame: the hypervisor stops the guest", awake, saw(guest.RunLeft), presence.Begin, true},
		{"after a frame: the guest left and came back", gone, saw(guest.RunWaits), presence.Nothing, false},
		{"after a frame: an operator", awake, told(guest.RunLeft), presence.Nothing, false},

		{"the hypervisor runs what the hook announced", silent(false), saw(guest.RunHere), presence.End, false},
		{"the hypervisor runs what had left", silent(true), saw(guest.RunHere), presence.End, false},
		{"the hypervisor waits as the hook announced", silent(false), saw(guest.RunWaits), presence.Nothing, false},
		{"a paused source of a target that waits", silent(false), saw(guest.RunLeft), presence.Nothing, false},
		{"the hypervisor waits, and nobody announced it", nil, saw(guest.RunWaits), presence.Begin, false},
		{"the hypervisor stopped it, and nobody said so", nil, saw(guest.RunLeft), presence.Begin, true},
		{"the hypervisor does not answer", silent(false), saw(guest.RunUnknown), presence.Nothing, false},
		{"the hypervisor clears a doubt: it has left", doubt, saw(guest.RunLeft), presence.Note, true},
		{"the hypervisor clears a doubt: it is to come", doubt, saw(guest.RunWaits), presence.Note, false},

		{"the hypervisor has not started it", nil, saw(guest.RunNotYet), presence.Begin, false},
		{"the hypervisor clears a doubt: it is not started", doubt, saw(guest.RunNotYet), presence.Note, false},
		{"the hypervisor has not started what the hook announced", silent(false), saw(guest.RunNotYet),
			presence.Nothing, false},
		{"an operator, against the hypervisor: not started", silent(false), told(guest.RunNotYet), presence.Nothing,
			false},

		{"the hook, of a guest that the hypervisor runs", nil, connected(guest.RunHere), presence.Nothing, false},
		{"the hook, while the hypervisor has not answered", nil, connected(guest.RunUnknown), presence.Begin, false},
		{"the hook, again", silent(false), connected(guest.RunUnknown), presence.Nothing, false},

		{"an operator, against the hypervisor: to come", silent(false), told(guest.RunWaits), presence.Nothing, false},
		{"an operator, against the hypervisor: left", silent(true), told(guest.RunLeft), presence.Nothing, false},
		{"an operator, as the hypervisor says", silent(false), told(guest.RunHere), presence.End, false},
		{"an operator, when the hypervisor is silent", silent(true), told(guest.RunUnknown), presence.End, false},
		{"an operator, of a port that speaks", nil, told(guest.RunLeft), presence.Nothing, false},

		{"time, of a guest that is to come", silent(false), passed(1000 * time.Hour), presence.Nothing, false},
		{"time, of a guest that has left", silent(true), passed(1000 * time.Hour), presence.Nothing, false},
		{"time, of a port that speaks", awake, passed(1000 * time.Hour), presence.Nothing, false},
		{"time, of a doubt", doubt, passed(presence.DoubtAtMost), presence.End, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := c.says(c.was); got.Do != c.do || got.Next.Left != c.left {
				t.Errorf("%+v, want step %d, left %v", got, c.do, c.left)
			}
		})
	}
	for _, now := range []guest.Run{guest.RunUnknown, guest.RunWaits, guest.RunHere, guest.RunLeft, guest.RunNotYet} {
		if s := presence.Sent(silent(true), 7, now); s.Next.Doubt != (now == guest.RunLeft) {
			t.Errorf("a frame while the hypervisor says %d: asked anew %v", now, s.Next.Doubt)
		}
	}
	if _, believed := presence.Told(silent(true), guest.RunLeft); believed {
		t.Error("an operator is believed against the hypervisor")
	}
}
