package driving

import (
	"context"
	"errors"
	"time"

	"heddle/internal/controller/rollout"
)

// The states of hosts of a rollout.
const (
	Changed   = "changed"
	Changing  = "changing"
	Away      = "away" // it gets the version of its stage when it is back
	Failed    = "failed"
	Unchanged = "unchanged"
)

// Host is one that a rollout concerns.
type Host struct {
	Name  string
	Stage int
	// State is one of those above; Problems say why it is not changed.
	State    string
	Problems []string
	// Trouble is as of rollout.Vitals; Soon: the host may say soon what became of the change, or be back.
	Trouble string
	Soon    bool
}

// World is the hosts.
type World interface {
	// Hosts are those that a rollout concerns, by name. before is what they were at the last look; full looks anew at
	// all of them, otherwise those of other controllers that had the change may be as before.
	Hosts(ctx context.Context, r *rollout.Rollout, before map[string]Host, full bool) map[string]Host
	// Vitals are what hosts have counted, without those that are not connected.
	Vitals(ctx context.Context, names, switches []string) map[string]rollout.Vitals
	// Changed is closed when hosts may stand otherwise than before.
	Changed() <-chan struct{}
	// Unanswered is what is left of the names without those at the end whose hosts have said what became of the
	// change, or are not of this controller. It costs little, whatever the number of names.
	Unanswered(names []string) []string
}

// ErrOther says that somebody else has replaced the rollout since it was read.
var ErrOther = errors.New("somebody else has changed the rollout")

// Refused is why a change can't be taken back.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// Record is where rollouts are kept.
type Record interface {
	// Read reads a rollout; ok is false where there is none.
	Read(id string) (r rollout.Rollout, version int64, ok bool)
	// Replace replaces one that was read at that version. The error may be ErrOther.
	Replace(ctx context.Context, r rollout.Rollout, version int64) (now int64, err error)
	// Usual is how hosts were before the first stage; nil where nobody has kept it.
	Usual(id string) (map[string]rollout.Usual, error)
	// KeepUsual keeps that.
	KeepUsual(ctx context.Context, id string, usual map[string]rollout.Usual) error
	// TakeBack takes the change back, and ends the rollout by that. The error may be a *Refused, or ErrOther.
	TakeBack(ctx context.Context, id string) error
	// Said is called when a rollout has another state, or another stage, by what this driver did.
	Said(ctx context.Context, was, now rollout.Rollout)
}

// Driver drives rollouts.
type Driver struct {
	World
	Record
	// Epoch of the controllers' data.
	Epoch int64
	// Now is the time; nil for the machine's.
	Now func() time.Time
	// Answer is how long a host that is connected may take to make a change; a minute if it is zero.
	Answer time.Duration
}
