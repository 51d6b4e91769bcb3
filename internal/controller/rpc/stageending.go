package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// stager is the part of a server that makes changes in stages, and ends them.
type stager struct{ people }

// undoing are the open rollouts that a change ends.
type undoing struct {
	list []kept.Rollout
	// closing ends them, in the transaction of the change.
	closing []store.Change
}

func (u *undoing) ids() (ids []string) {
	for _, k := range u.list {
		ids = append(ids, k.ID)
	}
	return ids
}

// inTheWay are the open rollouts that a change ends: the one that it takes back, or those that it supersedes. Others
// that concern the same switches refuse it.
func (p stager) inTheWay(ctx context.Context, q *defining, have, next *slice.Set) (*undoing, error) {
	switches := rollout.SwitchesOf(have, next)
	u := &undoing{}
	for _, o := range p.Store.List(kept.Kind) {
		k, err := kept.Of(o)
		switch {
		case err != nil:
			return nil, err
		case !k.Open() || k.ID != q.takesBack && !k.Touches(switches):
			continue
		case k.ID == q.takesBack:
			k.Rollout, err = k.TakeBack(q.takesBackFor, time.Now().UTC())
		case q.GetSupersede() && q.GetTogether() != nil:
			return nil, connect.NewError(connect.CodeInvalidArgument, "a change that hosts make together supersedes "+
				"no rollout: end it first")
		case q.GetSupersede():
			k.Rollout, err = k.Supersede("a change of "+access.NameOf(ctx), time.Now().UTC())
		default:
			return nil, connect.NewError(connect.CodeFailedPrecondition, openText(&k))
		}
		if err != nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, err.Error())
		}
		change, err := k.Change()
		if err != nil {
			return nil, err
		}
		u.list, u.closing = append(u.list, k), append(u.closing, change)
	}
	return u, nil
}

// openText says why another change is refused.
func openText(k *kept.Rollout) string {
	what := "switch " + strings.Join(k.Switches, ", ")
	if slices.Contains(k.Switches, rollout.All) {
		what = "the hosts"
	}
	return fmt.Sprintf("rollout %s of %s changes %s in stages and is %s (%d of %d stages have begun): wait until it "+
		"has ended (heddle rollout show %s), take it back (heddle rollout abort %s), or replace it by this change "+
		"(--supersede)", k.ID, k.Who, what, k.State, k.Begun, len(k.Order.Stages), k.ID, k.ID)
}

// takeBack takes a rollout's change back, for somebody or, for "", by itself.
func (p stager) takeBack(ctx context.Context, id, who, message string, force bool) error {
	q := &defining{ApplyDefinitionRequest: &controllerv1.ApplyDefinitionRequest{File: "rollout " + id, Force: force,
		Message: cmp.Or(message, "rollout "+id+" is taken back")}, takesBack: id, takesBackFor: who}
	_, err := p.applied(ctx, q)
	return err
}

// undoOf is what undoes a rollout's change, with identifiers, as the store has it.
func (p stager) undoOf(k kept.Rollout) (slice.Change, map[slice.Key]string, error) {
	return kept.UndoOf(k, func(key store.Key) ([]byte, bool) {
		o, ok := p.Store.Get(key)
		return o.Doc, ok
	})
}

// undone is the definition with a rollout's change undone.
func (p stager) undone(q *defining, have *slice.Set) (*slice.Set, error) {
	k, ok := recordOf(p.Server).Find(q.takesBack)
	if !ok || !k.Open() {
		return nil, connect.NewError(connect.CodeAborted, fmt.Sprintf("rollout %s is open no more", q.takesBack))
	}
	undo, ids, err := p.undoOf(k)
	if err != nil {
		return nil, err
	}
	next := have.Clone()
	next.Apply(undo)
	q.ids = ids
	return next, nil
}

// without is a definition without the changes of rollouts that end.
func (p stager) without(u *undoing, set *slice.Set) (*slice.Set, error) {
	if len(u.list) == 0 {
		return set, nil
	}
	set = set.Clone()
	for _, k := range u.list {
		undo, _, err := p.undoOf(k)
		if err != nil {
			return nil, err
		}
		set.Apply(undo)
	}
	return set, nil
}
