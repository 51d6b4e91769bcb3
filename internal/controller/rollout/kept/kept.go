package kept

import (
	"encoding/json"
	"fmt"
	"time"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/rollout"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Kinds of these objects.
const (
	Kind             store.Kind = "rollout"
	PartKind         store.Kind = "rolloutPart"
	rolloutUsualKind store.Kind = "rolloutUsual"
)

func rolloutKey(id string) store.Key { return store.Key{Kind: Kind, Name: id} }

// Rollout is a rollout as the store has it.
type Rollout struct {
	rollout.Rollout
	// Token names its parts: those of an attempt that came to nothing are not taken for them.
	Token string `json:"token"`
	// Revision is that with the change; 0 until it is known.
	Revision int64 `json:"revision"`
	Version  int64 `json:"-"`
}

// Of reads a rollout.
func Of(o store.Object) (k Rollout, err error) {
	if err = json.Unmarshal(o.Doc, &k); err != nil {
		return k, fmt.Errorf("rollout %s in the store is damaged: %w", o.Name, err)
	}
	k.Version = o.Version
	return k, nil
}

// Change is that of the store that replaces it.
func (k Rollout) Change() (store.Change, error) {
	doc, err := json.Marshal(k)
	return store.Change{Key: rolloutKey(k.ID), Doc: doc, IfVersion: k.Version}, err
}

// UndoOf is what undoes a rollout's change, with the identifiers of what it removed.
func UndoOf(k Rollout, part func(store.Key) ([]byte, bool)) (c slice.Change, ids map[slice.Key]string, err error) {
	ids = map[slice.Key]string{}
	for n := range k.Parts {
		doc, ok := part(UndoKey(k.Token, n))
		if !ok {
			return c, nil, fmt.Errorf("a part of rollout %s is missing", k.ID)
		}
		var p definition.Part
		if err := json.Unmarshal(doc, &p); err != nil {
			return c, nil, fmt.Errorf("a part of rollout %s is damaged: %w", k.ID, err)
		}
		c.Put, c.Removed = append(c.Put, p.Put...), append(c.Removed, p.Removed...)
		definition.AddIDs(ids, p.IDs)
	}
	return c, ids, nil
}

// UndoKey is the key of a part of what undoes a change.
func UndoKey(token string, n int) store.Key {
	return store.Key{Kind: PartKind, Name: fmt.Sprintf("%s/%04d", token, n)}
}

// keepEnded is for how long a rollout that has ended is listed, keepRollouts how many are at most.
const (
	keepEnded    = 90 * 24 * time.Hour
	keepRollouts = 50
)
