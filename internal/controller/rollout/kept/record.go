package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/rollout"
	"heddle/internal/controller/rollout/driving"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Record is where rollouts are kept.
type Record struct {
	Store definition.Store
	Log   *slog.Logger
}

// Read implements driving.Record.
func (c Record) Read(id string) (r rollout.Rollout, version int64, ok bool) {
	k, ok := c.Find(id)
	return k.Rollout, k.Version, ok
}

// Find is a rollout in the store.
func (c Record) Find(id string) (k Rollout, ok bool) {
	o, ok := c.Store.Get(rolloutKey(id))
	if !ok {
		return k, false
	}
	k, err := Of(o)
	if err != nil {
		c.Log.Error("a rollout can't be read", "rollout", id, "err", err)
	}
	return k, err == nil
}

// Replace implements driving.Record.
func (c Record) Replace(ctx context.Context, r rollout.Rollout, version int64) (int64, error) {
	k, ok := c.Find(r.ID)
	if !ok || k.Version != version {
		return 0, driving.ErrOther
	}
	k.Rollout = r
	change, err := k.Change()
	if err != nil {
		return 0, err
	}
	now, err := c.Store.Write(ctx, []store.Change{change})
	var conflict *store.Conflict
	if errors.As(err, &conflict) {
		return 0, driving.ErrOther
	}
	return now, err
}

// usualHosts is how many hosts one object has of what was usual.
const usualHosts = 2000

func usualKey(token string, n int) store.Key {
	return store.Key{Kind: rolloutUsualKind, Name: fmt.Sprintf("%s/%04d", token, n)}
}

// usualDoc is a part of how hosts were before the first stage, packed as the history is.
type usualDoc struct {
	Parts int                      `json:"parts"`
	Hosts map[string]rollout.Usual `json:"hosts"`
}

// Usual implements driving.Record.
func (c Record) Usual(id string) (map[string]rollout.Usual, error) {
	k, ok := c.Find(id)
	if !ok {
		return nil, nil
	}
	all := map[string]rollout.Usual{}
	for n, parts := 0, 1; n < parts; n++ {
		o, ok := c.Store.Get(usualKey(k.Token, n))
		if !ok {
			return nil, nil
		}
		var d usualDoc
		if err := json.Unmarshal(o.Doc, &d); err != nil {
			return nil, fmt.Errorf("what was usual before rollout %s is damaged: %w", id, err)
		}
		parts = d.Parts
		for name, u := range d.Hosts {
			all[name] = u
		}
	}
	return all, nil
}

// KeepUsual implements driving.Record.
func (c Record) KeepUsual(ctx context.Context, id string, usual map[string]rollout.Usual) error {
	k, ok := c.Find(id)
	if !ok {
		return driving.ErrOther
	}
	var parts []usualDoc
	part := usualDoc{Hosts: map[string]rollout.Usual{}}
	for name, u := range usual {
		if part.Hosts[name] = u; len(part.Hosts) == usualHosts {
			parts, part = append(parts, part), usualDoc{Hosts: map[string]rollout.Usual{}}
		}
	}
	parts = append(parts, part)
	for n, p := range slices.Backward(parts) { // the first one, which says how many, comes last
		p.Parts = len(parts)
		doc, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := c.Store.Write(ctx, []store.Change{{Key: usualKey(k.Token, n), Doc: doc,
			IfVersion: store.Any}}); err != nil {
			return err
		}
	}
	return nil
}

// Prune removes rollouts that ended long ago, and parts of those that ended or never began. It is bounded by a
// transaction: what is left is removed another time.
func (c Record) Prune(ctx context.Context) {
	var ended []Rollout
	open := map[string]bool{}
	current, _ := c.Store.Get(definition.Key()) // before it is looked which rollouts there are
	for _, o := range c.Store.List(Kind) {
		switch k, err := Of(o); {
		case err != nil:
		case k.Open():
			open[k.Token] = true
		default:
			ended = append(ended, k)
		}
	}
	slices.SortFunc(ended, func(a, b Rollout) int { return b.Ended.Compare(a.Ended) })
	var gone []store.Change
	for i, k := range ended {
		if i >= keepRollouts || time.Since(k.Ended) > keepEnded {
			gone = append(gone, store.Change{Key: rolloutKey(k.ID), Delete: true, IfVersion: k.Version})
		}
	}
	for _, kind := range []store.Kind{PartKind, rolloutUsualKind} {
		for _, o := range c.Store.List(kind) {
			token, _, _ := strings.Cut(o.Name, "/")
			begins := kind == PartKind && !definition.Dead(o, current) // it may be about to begin
			if !open[token] && !begins {
				gone = append(gone, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
			}
		}
	}
	definition.RemoveSome(ctx, c.Store, c.Log, gone, "what is left of rollouts that have ended")
}

// Undo is what undoes a rollout's change, with the identifiers of what it removed.
func (c Record) Undo(k Rollout) (slice.Change, map[slice.Key]string, error) {
	return UndoOf(k, func(key store.Key) ([]byte, bool) {
		o, ok := c.Store.Get(key)
		return o.Doc, ok
	})
}

// Without is a definition without the changes of rollouts.
func (c Record) Without(list []Rollout, set *slice.Set) (*slice.Set, error) {
	if len(list) == 0 {
		return set, nil
	}
	set = set.Clone()
	for _, k := range list {
		undo, _, err := c.Undo(k)
		if err != nil {
			return nil, err
		}
		set.Apply(undo)
	}
	return set, nil
}
