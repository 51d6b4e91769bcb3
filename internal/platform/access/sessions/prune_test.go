package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// marked is a store that has marks of ID tokens.
type marked []store.Object

func (m marked) List(store.Kind) []store.Object { return m }

func (m marked) Get(store.Key) (store.Object, bool) { return store.Object{}, false }

func (m marked) Write(context.Context, []store.Change) (int64, error) { return 0, nil }

// As many marks as there may be keep people out only as long as none of them has ended: those that have make room.
func TestMarksThatHaveEndedKeepNobodyOut(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	full := make(marked, most)
	for i := range full {
		doc, err := json.Marshal(used{now.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		full[i] = store.Object{Key: store.Key{Kind: usedKind, Name: fmt.Sprintf("t%d", i)}, Doc: doc}
	}
	s := Service{Store: full, Tokens: func() []*pki.APIRecord { return nil }, Now: func() time.Time { return now }}
	if _, err := s.prune("ann"); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("%d marks of which none has ended: %v", most, err)
	}
	s.Now = func() time.Time { return now.Add(time.Hour) }
	changes, err := s.prune("ann")
	if err != nil || len(changes) != mostPruned {
		t.Errorf("once they have ended, %d are removed: %v", len(changes), err)
	}
	for _, c := range changes {
		if !c.Delete || c.Key.Kind != usedKind {
			t.Errorf("%+v is no removal of a mark", c)
		}
	}
}
