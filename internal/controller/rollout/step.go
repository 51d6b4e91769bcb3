package rollout

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// State is how a rollout stands.
type State string

// The states. Running is the only one in which a driver goes on by itself; Done, TakenBack and Aborted are final.
const (
	Running   State = "running"
	Paused    State = "paused" // by a person
	Halted    State = "halted" // by itself, since something was found
	TakenBack State = "taken-back"
	Aborted   State = "aborted" // the hosts that have the change keep it, and the others get it as well
	Done      State = "done"
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
	// Base is the revision of the definition before the change, Revision that with it.
	Base     int64 `json:"base"`
	Revision int64 `json:"revision"`
	// Wait is how long hosts are watched after each stage.
	Wait time.Duration `json:"wait"`
	Halt Halt          `json:"halt"`
	// Begun is how many stages have begun: their hosts are to have the change.
	Begun int   `json:"begun"`
	State State `json:"state"`
	// Settled is since when all hosts of the stages that have begun have the change; zero while some have not.
	Settled time.Time `json:"settled,omitzero"`
	// Found is why it halted, or was taken back.
	Found []Finding `json:"found,omitempty"`
	// Who began it, and why.
	Who string `json:"who"`
	Why string `json:"why,omitempty"`
}

// Open reports whether it goes on, or may: other changes of its switches are refused meanwhile.
func (r Rollout) Open() bool { return slices.Contains([]State{Running, Paused, Halted}, r.State) }

// Has reports whether a host is to have the change now.
func (r Rollout) Has(m Member) bool {
	switch r.State {
	case Done, Aborted:
		return true
	case TakenBack:
		return false
	}
	return r.Order.Has(m, r.Begun)
}

// Seen is what a driver sees of the hosts.
type Seen struct {
	// Pending is how many connected hosts of the stages that have begun have not said yet what became of the change.
	Pending int
	Found   []Finding
}

// Next is a rollout after what its driver sees now, and whether that is another one, to be kept. What is found halts it
// at any time; a stage begins when the hosts of the one before have had the change for Wait.
func (r Rollout) Next(now time.Time, s Seen) (Rollout, bool) {
	switch {
	case r.State != Running:
		return r, false
	case r.Begun == 0:
		r.Begun = 1
		return r, true
	case len(s.Found) > 0:
		r.Found, r.State, r.Settled = s.Found, Halted, time.Time{}
		if r.Halt == Rollback {
			r.State = TakenBack
		}
		return r, true
	case s.Pending > 0:
		again := r.Settled.IsZero()
		r.Settled = time.Time{}
		return r, !again
	case r.Settled.IsZero(), r.Settled.After(now): // the latter by a driver whose clock is ahead
		r.Settled = now
		return r, true
	case now.Sub(r.Settled) < r.Wait:
		return r, false
	case r.Begun < len(r.Order.Stages):
		r.Begun, r.Settled = r.Begun+1, time.Time{}
		return r, true
	}
	r.State = Done
	return r, true
}

// ErrState says that a rollout is not in the state for what is asked for.
var ErrState = errors.New("not possible now")

func (r Rollout) to(state State, from ...State) (Rollout, error) {
	if !slices.Contains(from, r.State) {
		return r, fmt.Errorf("rollout %s is %s: %w", r.ID, r.State, ErrState)
	}
	r.State, r.Settled = state, time.Time{}
	return r, nil
}

// Pause keeps the next stage from beginning.
func (r Rollout) Pause() (Rollout, error) { return r.to(Paused, Running) }

// Resume goes on with one that was paused or has halted: its hosts are watched anew, for the whole time.
func (r Rollout) Resume() (Rollout, error) {
	next, err := r.to(Running, Paused, Halted)
	if err == nil {
		next.Found = nil
	}
	return next, err
}

// TakeBack takes the change back from all hosts that have it.
func (r Rollout) TakeBack() (Rollout, error) { return r.to(TakenBack, Running, Paused, Halted) }

// Abort ends it: all hosts get the change at once.
func (r Rollout) Abort() (Rollout, error) { return r.to(Aborted, Running, Paused, Halted) }
