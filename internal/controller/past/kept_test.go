package past

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/access"
	"heddle/internal/slice"
)

// What was read of the history is kept within a bound, what was used last the longest, and not for ever.
func TestS189_WhatWasReadIsKeptWithinABound(t *testing.T) {
	of := func(text string) *slice.Set {
		return slice.Of(slice.Object{Key: slice.Key{Kind: slice.Switch, Name: "s"},
			Doc: []byte(`"` + strings.Repeat(text, 1000) + `"`)})
	}
	k, now := &Kept{Most: 3000}, of("now")
	defer k.forget(time.Now().Add(keptTime))
	for revision, text := range map[int64]string{1: "a", 2: "b"} {
		if set := k.Keep(revision, of(text), now); set.Hash() != of(text).Hash() {
			t.Error("another definition is kept")
		}
	}
	k.Get(1)
	k.Keep(3, of("c"), now)
	k.Keep(3, of("c"), now) // read by two at once
	if k.Get(1) == nil || k.Get(2) != nil || k.Get(3) == nil || k.bytes > k.Most {
		t.Errorf("kept: %v, %d bytes", k.by, k.bytes)
	}
	if set := k.Keep(4, of("large"), now); set == nil || k.Get(4) != nil || k.Get(1) == nil {
		t.Error("one that is larger than all may be takes the place of others")
	}
	if k.forget(time.Now().Add(keptTime)); len(k.by) != 0 || k.bytes != 0 || k.timer != nil {
		t.Errorf("after its time: %v, %d bytes", k.by, k.bytes)
	}
	same := k.Keep(5, of("c"), of("c"))
	if k.Get(5) != same {
		t.Error("not kept")
	}
}

// What a definition has in common with the present one is not held twice.
func TestS189_WhatIsTheSameIsHeldOnce(t *testing.T) {
	key := slice.Key{Kind: slice.Switch, Name: "s"}
	now := slice.Of(slice.Object{Key: key, Doc: []byte(`"x"`)})
	set, _ := sharing(slice.Of(slice.Object{Key: key, Doc: []byte(`"x"`)}), now)
	a, _ := set.Get(key)
	if b, _ := now.Get(key); &a.Doc[0] != &b.Doc[0] || set.Hash() != now.Hash() {
		t.Error("the document is held twice")
	}
}

// Who waits for etcd holds up nobody else.
func TestS189_WhoWaitsForTheStoreHasNoTurn(t *testing.T) {
	for what, ask := range map[string]func(Reader) error{
		"compare": func(r Reader) error {
			_, err := r.CompareDefinitions(t.Context(), &controllerv1.CompareDefinitionsRequest{From: 1, To: 2})
			return err
		},
		"list": func(r Reader) error {
			_, err := r.ListChanges(t.Context(), &controllerv1.ListChangesRequest{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) { waitsWithoutTurn(t, ask) })
	}
}

func waitsWithoutTurn(t *testing.T, ask func(Reader) error) {
	t.Helper()
	in, goOn := make(chan struct{}), make(chan error)
	r := Reader{Kept: &Kept{}, Turns: &access.Turns{}, Sync: func(context.Context) error {
		close(in)
		return <-goOn
	}}
	said := make(chan error)
	go func() { said <- ask(r) }()
	<-in
	leave, err := r.Turns.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave()
	goOn <- errors.New("etcd does not answer")
	if err := <-said; err == nil {
		t.Error("answered without etcd")
	}
}
