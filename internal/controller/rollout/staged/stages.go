package staged

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/platform/access"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Times of a change in stages.
const (
	stageWait     = 5 * time.Minute
	leastWait     = time.Second
	mostStageWait = 24 * time.Hour
	leastWatch    = time.Second
	usualWatch    = 30 * time.Second
	mostWatch     = time.Hour
)

// inStages is a change that hosts make in stages; nil for one that all hosts get at once.
type inStages struct {
	kept.Rollout
	undo slice.Change
	ids  map[slice.Key]string
	// hosts it concerns.
	hosts map[string]rollout.Member // by name
}

// stagesOf are how a change is made in stages, as it is asked for.
func stagesOf(q *controllerv1.ApplyDefinitionRequest) (*inStages, error) {
	s := q.GetStages()
	if s == nil {
		return nil, nil
	}
	wrong := func(format string, args ...any) (*inStages, error) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf(format, args...))
	}
	list, err := rollout.Parse(s.GetStages())
	r := &inStages{}
	r.Order.Stages, r.Order.By = list, s.GetBy()
	if r.Order.By == "random" {
		r.Order.By = ""
	}
	r.Halt = rollout.Halt(cmp.Or(s.GetHalt(), string(rollout.Stop)))
	r.Wait = stageWait
	if s.GetWait() != nil {
		r.Wait = s.GetWait().AsDuration()
	}
	r.Watch = max(leastWatch, min(r.Wait/10, usualWatch))
	if s.GetWatch() != nil {
		r.Watch = s.GetWatch().AsDuration()
	}
	switch {
	case err != nil:
		return wrong("%v", err)
	case r.Halt != rollout.Stop && r.Halt != rollout.Rollback:
		return wrong("%q is no way to halt: give %s or %s", s.GetHalt(), rollout.Stop, rollout.Rollback)
	case r.Wait < leastWait || r.Wait > mostStageWait:
		return wrong("hosts are watched for %s after each stage: use %s to %s", r.Wait, leastWait, mostStageWait)
	case r.Watch < leastWatch || r.Watch > mostWatch:
		return wrong("hosts are watched for %s before the first stage: use %s to %s", r.Watch, leastWatch, mostWatch)
	case q.GetTogether() != nil:
		return wrong("a change is made in stages or together, not both")
	case q.GetForce():
		return wrong("what --force cuts off can't be brought back when a change in stages is taken back: move the " +
			"ports first, or make the change without stages")
	}
	return r, nil
}

// prepare completes a change in stages: what it undoes, and which host is in which stage. was is the definition without
// it, and without the rollouts that end.
func (r *inStages) prepare(ctx context.Context, with Controller, c *pipeline.Plan, was *inventory.Inventory,
	ends []kept.Rollout) {
	before, after := was.Objects(), c.After
	r.undo, r.ids = rollout.Undo(before, after.Objects()), map[slice.Key]string{}
	for _, o := range r.undo.Put {
		if has, ok := with.Record.Store.Get(store.Key{Kind: store.Kind(o.Kind), Name: o.Name}); ok {
			r.ids[o.Key] = has.ID
		}
	}
	r.Switches = rollout.SwitchesOf(before, after.Objects())
	r.Epoch, r.State, r.Token = with.Epoch, rollout.Running, rand.Text()
	r.Who, r.Why, r.Started = access.NameOf(ctx), c.GetMessage(), time.Now().UTC()
	seed := r.Token
	for _, k := range ends { // the same hosts come first again
		seed = k.Order.Seed
	}
	r.hosts = with.Concerned(was, after, c.Granted)
	var members []rollout.Member
	for _, m := range r.hosts {
		members = append(members, m)
	}
	r.Order = rollout.NewOrder(seed, r.Order.By, r.Order.Stages, members)
	r.Counts = make([]int, len(r.Order.Stages))
	for _, m := range members {
		r.Counts[r.Order.StageOf(m)]++
	}
}

// refusal says why a change can't be made in stages, before anything is written; nil where it can.
func (r *inStages) refusal(ctx context.Context, with Controller) error {
	if len(r.hosts) == 0 {
		return connect.NewError(connect.CodeFailedPrecondition, "no host is concerned: make the change without stages")
	}
	for i, s := range r.Order.Stages {
		empty := s.Label != ""
		for _, m := range r.hosts {
			empty = empty && r.Order.StageOf(m) != i
		}
		if empty {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("stage %s has no host: none of those "+
				"that the change concerns has that label, but in earlier stages", s))
		}
	}
	if by := r.Order.By; by != "" {
		for _, name := range slices.Sorted(maps.Keys(r.hosts)) {
			if r.hosts[name].Labels[by] == "" {
				return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("host %s has no label %s, by "+
					"which hosts are to change together", name, by))
			}
		}
	}
	// A controller of an earlier version would hand its hosts the change at once.
	if old := with.KnowsNone(ctx); old != "" {
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("controller %s is of an earlier "+
			"version, which knows no stages: update it first", old))
	}
	return nil
}

// writeParts writes what undoes the change, before the change counts.
func (r *inStages) writeParts(ctx context.Context, to kept.Record) error {
	to.Prune(ctx)
	written, err := definition.WriteParts(ctx, to.Store, time.Now(), r.undo, r.ids, func(n int) store.Key {
		return kept.UndoKey(r.Token, n)
	})
	r.Parts = written.Parts
	return rpcerrors.OfStore(err)
}

// begins is the change of the store by which the rollout begins. It is made on that revision of the definition.
func (r *inStages) begins(base int64) ([]store.Change, error) {
	r.ID, r.Base = fmt.Sprintf("r%d", base), cmp.Or(r.Base, base)
	change, err := r.Change()
	change.IfVersion = store.New
	return []store.Change{change}, err
}

// how is what the history says of the change.
func (r *inStages) how() string {
	var words []string
	for _, s := range r.Order.Stages {
		words = append(words, s.String())
	}
	return "in stages: " + strings.Join(words, ",")
}

// began keeps which revision the change made, for who looks: the rollout goes on without.
func (r *inStages) began(ctx context.Context, with Controller, revision int64) {
	with.Record.Log.Info("a change in stages begins", "rollout", r.ID, "revision", revision, "hosts", len(r.hosts))
	var err error
	for range keepAttempts {
		var conflict *store.Conflict // the driver wrote meanwhile
		if err = r.keepRevision(ctx, with, revision); !errors.As(err, &conflict) {
			break
		}
	}
	if err != nil {
		with.Record.Log.Warn("the revision of a rollout is not kept", "rollout", r.ID, "err", err)
	}
}

// keepAttempts is how often it is tried to write the revision, where the rollout's driver is faster.
const keepAttempts = 5

// keepRevision writes the revision into the rollout's newest record.
func (r *inStages) keepRevision(ctx context.Context, with Controller, revision int64) error {
	if err := with.CatchUp(ctx); err != nil {
		return err
	}
	k, ok := with.Record.Find(r.ID)
	if !ok || k.Revision != 0 {
		return nil
	}
	k.Revision = revision
	change, err := k.Change()
	if err == nil {
		_, err = with.Record.Store.Write(ctx, []store.Change{change})
	}
	return err
}
