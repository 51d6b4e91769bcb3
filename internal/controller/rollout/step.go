package rollout

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// State is how a rollout stands.
type State string

// The states. Running and TakingBack are those in which a driver goes on by itself; from Done on they are final.
const (
	Running    State = "running"
	Paused     State = "paused"      // by a person
	Halted     State = "halted"      // by itself, since something was found
	TakingBack State = "taking-back" // by itself: the change is about to be taken back
	Done       State = "done"        // all hosts have the change, or get it when they are back
	TakenBack  State = "taken-back"  // by itself, since something was found
	Aborted    State = "aborted"     // taken back by a person
	Superseded State = "superseded"  // another change took its place
)

// Halt is what a rollout does by itself when something is found.
type Halt string

// The ways to halt.
const (
	Stop     Halt = "stop"
	Rollback Halt = "rollback" // take the change back from all hosts
)

// Rollout is one as it is kept. A driver replaces it as a whole, if it is still as the driver read it: of two drivers
// one is told, and one that dies leaves nothing half done.
type Rollout struct {
	ID    string `json:"id"`
	Order Order  `json:"order"`
	// Base is the revision of the definition before the change.
	Base int64 `json:"base"`
	// Epoch is that of the controllers' data when it began: it does not go on by itself on data that were restored.
	Epoch int64 `json:"epoch"`
	// Counts are how many hosts each stage adds, as it began.
	Counts []int `json:"counts,omitempty"`
	// Parts is how many parts there are of what undoes the change, Switches what it concerns ("*" for all).
	Parts    int      `json:"parts"`
	Switches []string `json:"switches"`
	// Watch is how long hosts are watched before the first stage, Wait how long after each.
	Watch time.Duration `json:"watch"`
	Wait  time.Duration `json:"wait"`
	Halt  Halt          `json:"halt"`
	// Begun is how many stages have begun: their hosts are to have the change. None has while hosts are watched as they
	// are.
	Begun int   `json:"begun"`
	State State `json:"state"`
	// Since is when it was paused or halted; zero while it goes on by itself.
	Since time.Time `json:"since,omitzero"`
	// Settled is since when all hosts of the stages that have begun have the change; zero while some have not.
	Settled time.Time `json:"settled,omitzero"`
	// Calm is what was seen last of hosts without the change.
	Calm *Calm `json:"calm,omitempty"`
	// Found is why it halted, or was taken back.
	Found []Finding `json:"found,omitempty"`
	// Note is what else there is to say of its state.
	Note string `json:"note,omitempty"`
	// Who began it, why and when; Ended is when it came to its final state.
	Who     string    `json:"who"`
	Why     string    `json:"why,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Open reports whether it goes on, or may: other changes of its switches are refused meanwhile.
func (r *Rollout) Open() bool {
	return slices.Contains([]State{Running, Paused, Halted, TakingBack}, r.State)
}

// Driven reports whether a driver has to do something for it.
func (r *Rollout) Driven() bool { return r.State == Running || r.State == TakingBack }

// Touches reports whether it concerns one of these switches.
func (r *Rollout) Touches(switches []string) bool {
	if len(switches) > 0 && slices.Contains(r.Switches, All) || len(r.Switches) > 0 && slices.Contains(switches, All) {
		return true
	}
	return slices.ContainsFunc(switches, func(s string) bool { return slices.Contains(r.Switches, s) })
}

// All stands for all switches.
const All = "*"

// Seen is what a driver sees of the hosts.
type Seen struct {
	// Own is how many hosts the newest stage adds, Changed how many of them have the change.
	Own, Changed int
	// Pending is how many hosts of the stages that have begun have not said yet what became of the change, and may soon
	// do so.
	Pending int
	// Looked: the hosts were watched for long enough to find something; before the first stage, what is usual there is
	// known.
	Looked bool
	Found  []Finding
	// Unheard: some host with the change has not answered the last question of the stage.
	Unheard bool
	// Epoch of the controllers' data.
	Epoch int64
}

// Next is a rollout after what its driver sees now, and whether that is another one, to be kept. What is found halts it
// at any time; a stage begins when the hosts of the one before have had the change for Wait.
func (r Rollout) Next(now time.Time, s Seen) (Rollout, bool) {
	switch {
	case r.State != Running:
		return r, false
	case r.Epoch != s.Epoch:
		r.State, r.Since, r.Settled = Paused, now, time.Time{}
		r.Note = "the controllers' data were restored from a backup meanwhile: look at the hosts, then resume or abort"
		return r, true
	case r.Begun > 0 && len(s.Found) > 0:
		r.Found, r.State, r.Since, r.Settled = s.Found, Halted, now, time.Time{}
		if r.Halt == Rollback {
			r.State = TakingBack
		}
		return r, true
	case r.Begun > 0 && s.Own > 0 && s.waits(r.last()):
		again := r.Settled.IsZero()
		r.Settled = time.Time{}
		return r, !again
	case r.Begun > 0 && s.Own == 0: // the stages before had these hosts as well
		return r.begin(now), true
	case r.Settled.IsZero(), r.Settled.After(now): // the latter by a driver whose clock is ahead
		r.Settled = now
		return r, true
	case now.Sub(r.Settled) < r.time() || !s.Looked || s.Unheard:
		return r, false
	}
	return r.begin(now), true
}

// waits reports whether hosts have to take the change first. A stage of which no host has it has shown nothing; of the
// last one all hosts may be away.
func (s Seen) waits(last bool) bool { return s.Pending > 0 || s.Changed == 0 && !last }

func (r *Rollout) last() bool { return r.Begun == len(r.Order.Stages) }

// time is how long the hosts are watched at present.
func (r *Rollout) time() time.Duration {
	if r.Begun == 0 {
		return r.Watch
	}
	return r.Wait
}

// Left is how long that takes yet; ok is false where that has not begun, or something else is waited for.
func (r *Rollout) Left(now time.Time) (left time.Duration, ok bool) {
	if r.State != Running || r.Settled.IsZero() {
		return 0, false
	}
	return max(0, r.time()-now.Sub(r.Settled)), true
}

// begin begins the next stage, or ends the rollout after the last one.
func (r Rollout) begin(now time.Time) Rollout {
	r.Settled, r.Note = time.Time{}, ""
	if r.last() {
		return r.end(Done, now)
	}
	r.Begun++
	return r
}

func (r Rollout) end(state State, now time.Time) Rollout {
	r.State, r.Ended, r.Settled = state, now, time.Time{}
	return r
}

// ErrState says that a rollout is not in the state for what is asked for.
var ErrState = errors.New("not possible now")

func (r Rollout) from(states ...State) error {
	if !slices.Contains(states, r.State) {
		return fmt.Errorf("rollout %s is %s: %w", r.ID, r.State, ErrState)
	}
	return nil
}

// Pause keeps the next stage from beginning.
func (r Rollout) Pause(who string, now time.Time) (Rollout, error) {
	if err := r.from(Running); err != nil {
		return r, err
	}
	r.State, r.Since, r.Settled, r.Note = Paused, now, time.Time{}, "paused by "+who
	return r, nil
}

// Resume goes on with one that was paused or has halted: its hosts are watched anew, for the whole time.
func (r Rollout) Resume(epoch int64) (Rollout, error) {
	if err := r.from(Paused, Halted); err != nil {
		return r, err
	}
	r.State, r.Since, r.Settled, r.Note, r.Epoch = Running, time.Time{}, time.Time{}, "", epoch
	return r, nil
}

// Finish gives all hosts the change now.
func (r Rollout) Finish(who string, now time.Time) (Rollout, error) {
	if err := r.from(Running, Paused, Halted); err != nil {
		return r, err
	}
	r = r.end(Done, now)
	r.Begun, r.Note = len(r.Order.Stages), "all hosts got the change at once, by "+who
	return r, nil
}

// TakeBack ends one whose change is taken back from all hosts that have it, by a person or, from TakingBack, by itself.
func (r Rollout) TakeBack(who string, now time.Time) (Rollout, error) {
	if err := r.from(Running, Paused, Halted, TakingBack); err != nil {
		return r, err
	}
	if who == "" {
		return r.end(TakenBack, now), nil
	}
	r.Note = "aborted by " + who
	return r.end(Aborted, now), nil
}

// Supersede ends one in favour of another change.
func (r Rollout) Supersede(by string, now time.Time) (Rollout, error) {
	if err := r.from(Running, Paused, Halted); err != nil {
		return r, err
	}
	r.Note = "superseded by " + by
	return r.end(Superseded, now), nil
}

// Stuck halts one whose change can't be taken back for a reason.
func (r Rollout) Stuck(why string, now time.Time) Rollout {
	r.State, r.Since, r.Note = Halted, now, "the change can't be taken back by itself: "+why
	return r
}
