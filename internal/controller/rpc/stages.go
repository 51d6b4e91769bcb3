package rpc

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/access"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/store"
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
	keptRollout
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

// stager is the part of a server that makes changes in stages, and ends them.
type stager struct{ people }

// undoing are the open rollouts that a change ends.
type undoing struct {
	list []keptRollout
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
	for _, o := range p.Store.List(rolloutKind) {
		k, err := keptOf(o)
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
		change, err := k.change()
		if err != nil {
			return nil, err
		}
		u.list, u.closing = append(u.list, k), append(u.closing, change)
	}
	return u, nil
}

// openText says why another change is refused.
func openText(k *keptRollout) string {
	what := "switch " + strings.Join(k.Switches, ", ")
	if slices.Contains(k.Switches, rollout.All) {
		what = "the hosts"
	}
	return fmt.Sprintf("rollout %s of %s changes %s in stages and is %s (%d of %d stages have begun): wait until it "+
		"has ended (heddle rollout show %s), take it back (heddle rollout abort %s), or replace it by this change "+
		"(--supersede)", k.ID, k.Who, what, k.State, k.Begun, len(k.Order.Stages), k.ID, k.ID)
}

// changeWay is how hosts make a change, where not each as soon as it can, and what ends by it.
type changeWay struct {
	agreed *agreed
	stages *inStages
	ending *undoing
	// before is the definition without what ends; nil where the change is not made in stages.
	before    *inventory.Inventory
	takesBack bool
}

// wayOf is how a change is made.
func (p stager) wayOf(ctx context.Context, q *defining, stages *inStages, have, next *slice.Set) (*changeWay, error) {
	ending, err := p.inTheWay(ctx, q, have, next)
	if err != nil {
		return nil, err
	}
	w := &changeWay{stages: stages, ending: ending, takesBack: q.takesBack != ""}
	if stages == nil {
		return w, nil
	}
	before, err := p.without(ending, have)
	if err == nil {
		w.before, err = inventory.New(before)
	}
	return w, err
}

// superseded are the ids of the rollouts in whose place the change comes.
func (w *changeWay) superseded() []string {
	if w.takesBack {
		return nil
	}
	return w.ending.ids()
}

// prepare completes a change in stages, and refuses one that can't be made so.
func (w *changeWay) prepare(ctx context.Context, p people, q *defining, after *inventory.Inventory, g *grant) error {
	if w.stages == nil {
		return nil
	}
	w.stages.prepare(ctx, p, q, w.before, after, g, w.ending)
	return w.stages.refusal(ctx, p)
}

// how is what the history says of it.
func (w *changeWay) how() string {
	words := []string{cmp.Or(w.agreed.how(), w.stages.how())}
	for _, k := range w.ending.list {
		word := "supersedes rollout " + k.ID
		if w.takesBack {
			word = "takes rollout " + k.ID + " back"
		}
		words = append(words, word)
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "; ")
}

// restores is the revision whose definition the change brings back, which was made on that revision; 0 for none.
func (w *changeWay) restores(on int64) int64 {
	if w.takesBack && len(w.ending.list) == 1 && w.ending.list[0].Revision == on {
		return w.ending.list[0].Base
	}
	return 0
}

// changes are those of the store that are written with the change of the definition, which was made on that revision.
func (w *changeWay) changes(on int64) ([]store.Change, error) {
	decision, err := w.agreed.decide()
	begins, errBegins := w.stages.begins(on)
	return slices.Concat(decision, begins, w.ending.closing), errors.Join(err, errBegins)
}

// endAlone ends rollouts where the definition is already as it is to be.
func (w *changeWay) endAlone(ctx context.Context, p people) error {
	if len(w.ending.closing) == 0 {
		return nil
	}
	_, err := p.Store.Write(ctx, w.ending.closing)
	return err
}

// written completes the answer once the change counts.
func (w *changeWay) written(ctx context.Context, p people, out *controllerv1.ApplyDefinitionResponse) {
	w.agreed.written(out)
	if w.stages == nil {
		return
	}
	w.stages.began(ctx, p, out.GetRevision())
	out.Rollout = w.stages.foreseen()
	out.Rollout.Id, out.Rollout.Revision = w.stages.ID, out.GetRevision()
	access.Note(ctx, "rollout "+w.stages.ID)
	p.Log.Info("a change in stages begins", "rollout", w.stages.ID, "revision", out.GetRevision(), "hosts",
		len(w.stages.hosts))
}

// prepare completes a change in stages: what it undoes, and which host is in which stage. was is the definition without
// it, and without what it supersedes.
func (r *inStages) prepare(ctx context.Context, p people, q *defining, was, after *inventory.Inventory, g *grant,
	u *undoing) {
	before := was.Objects()
	r.undo, r.ids = rollout.Undo(before, after.Objects()), map[slice.Key]string{}
	for _, o := range r.undo.Put {
		if has, ok := p.Store.Get(store.Key{Kind: store.Kind(o.Kind), Name: o.Name}); ok {
			r.ids[o.Key] = has.ID
		}
	}
	r.Switches = rollout.SwitchesOf(before, after.Objects())
	r.Epoch, r.State, r.Token = p.Epoch, rollout.Running, rand.Text()
	r.Who, r.Why, r.Started = access.NameOf(ctx), q.GetMessage(), time.Now().UTC()
	seed := r.Token
	for _, k := range u.list { // the same hosts come first again
		seed = k.Order.Seed
	}
	f := withheld{p.fleet}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.hosts = map[string]rollout.Member{}
	for _, h := range f.hosts {
		if f.differs(h, was, after, g) {
			r.hosts[h.doc.Name] = rollout.Member{ID: h.id, Labels: after.Labels(h.doc.Name, h.doc.Labels)}
		}
	}
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
func (r *inStages) refusal(ctx context.Context, p people) error {
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
	for _, a := range askOthers(ctx, p.roster, askTime, func(ctx context.Context, k *link) (
		*controllerv1.ReadVitalsHereResponse, error) {
		return k.ReadVitalsHere(ctx, &controllerv1.ReadVitalsHereRequest{})
	}) {
		if connect.CodeOf(a.err) == connect.CodeUnimplemented && a.err != nil {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("controller %s is of an earlier "+
				"version, which knows no stages: update it first", nameOf(a.of)))
		}
	}
	return nil
}

// writeParts writes what undoes the change, before the change counts.
func (r *inStages) writeParts(ctx context.Context, p people) error {
	if r == nil {
		return nil
	}
	stager{p}.pruneRollouts(ctx)
	var err error
	r.Parts, err = writeParts(ctx, p.Store, time.Now(), r.undo, r.ids, func(n int) store.Key {
		return undoKey(r.Token, n)
	})
	return storeError(err)
}

// begins is the change of the store by which the rollout begins. It is made on that revision of the definition.
func (r *inStages) begins(base int64) ([]store.Change, error) {
	if r == nil {
		return nil, nil
	}
	r.ID, r.Base = fmt.Sprintf("r%d", base), cmp.Or(r.Base, base)
	change, err := r.change()
	change.IfVersion = store.New
	return []store.Change{change}, err
}

// how is what the history says of the change.
func (r *inStages) how() string {
	if r == nil {
		return ""
	}
	var words []string
	for _, s := range r.Order.Stages {
		words = append(words, s.String())
	}
	return "in stages: " + strings.Join(words, ",")
}

// began keeps which revision the change made, for who looks: the rollout goes on without.
func (r *inStages) began(ctx context.Context, p people, revision int64) {
	var err error
	for range keepAttempts {
		var conflict *store.Conflict // the driver wrote meanwhile
		if err = r.keepRevision(ctx, p, revision); !errors.As(err, &conflict) {
			break
		}
	}
	if err != nil {
		p.Log.Warn("the revision of a rollout is not kept", "rollout", r.ID, "err", err)
	}
}

// keepAttempts is how often it is tried to write the revision, where the rollout's driver is faster.
const keepAttempts = 5

// keepRevision writes the revision into the rollout's newest record.
func (r *inStages) keepRevision(ctx context.Context, p people, revision int64) error {
	if err := p.catchUp(ctx); err != nil {
		return err
	}
	k, ok := rolloutRecord(p).kept(r.ID)
	if !ok || k.Revision != 0 {
		return nil
	}
	k.Revision = revision
	change, err := k.change()
	if err == nil {
		_, err = p.Store.Write(ctx, []store.Change{change})
	}
	return err
}

// pruneRollouts removes rollouts that ended long ago, and parts of those that ended or never began. It is bounded by a
// transaction: what is left is removed another time.
func (p stager) pruneRollouts(ctx context.Context) {
	var ended []keptRollout
	open := map[string]bool{}
	for _, o := range p.Store.List(rolloutKind) {
		switch k, err := keptOf(o); {
		case err != nil:
		case k.Open():
			open[k.Token] = true
		default:
			ended = append(ended, k)
		}
	}
	slices.SortFunc(ended, func(a, b keptRollout) int { return b.Ended.Compare(a.Ended) })
	var gone []store.Change
	for i, k := range ended {
		if i >= keepRollouts || time.Since(k.Ended) > keepEnded {
			gone = append(gone, store.Change{Key: rolloutKey(k.ID), Delete: true, IfVersion: k.version})
		}
	}
	for _, kind := range []store.Kind{rolloutPartKind, rolloutUsualKind} {
		for _, o := range p.Store.List(kind) {
			var part changePart
			token, _, _ := strings.Cut(o.Name, "/")
			young := json.Unmarshal(o.Doc, &part) == nil && time.Since(part.At) < orphaned
			if !open[token] && !young {
				gone = append(gone, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
			}
		}
	}
	removeSome(ctx, p.Store, p.Log, gone, "what is left of rollouts that have ended")
}

// takeBack takes a rollout's change back, for somebody or, for "", by itself.
func (p stager) takeBack(ctx context.Context, id, who, message string, force bool) error {
	q := &defining{ApplyDefinitionRequest: &controllerv1.ApplyDefinitionRequest{File: "rollout " + id, Force: force,
		Message: cmp.Or(message, "rollout "+id+" is taken back")}, takesBack: id, takesBackFor: who}
	_, err := p.applied(ctx, q)
	return err
}

// undoOf is what undoes a rollout's change, with identifiers, as the store has it.
func (p stager) undoOf(k keptRollout) (slice.Change, map[slice.Key]string, error) {
	return undoOf(k, func(key store.Key) ([]byte, bool) {
		o, ok := p.Store.Get(key)
		return o.Doc, ok
	})
}

// undone is the definition with a rollout's change undone.
func (p stager) undone(q *defining, have *slice.Set) (*slice.Set, error) {
	k, ok := rolloutRecord{p.Server}.kept(q.takesBack)
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
