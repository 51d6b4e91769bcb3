package rpc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

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
