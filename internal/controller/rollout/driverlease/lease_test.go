package driverlease_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/controller/rollout/driverlease"
	"heddle/internal/platform/store"
)

// memory is a store of one object.
type memory struct {
	object  store.Object
	version int64
	there   bool
}

func (m *memory) Get(store.Key) (store.Object, bool) { return m.object, m.there }

func (m *memory) Write(_ context.Context, list []store.Change) (int64, error) {
	c := list[0]
	if m.there && c.IfVersion != m.object.Version {
		return 0, &store.Conflict{}
	}
	m.version++
	m.object, m.there = store.Object{Key: c.Key, Doc: c.Doc, Version: m.version}, !c.Delete
	if c.Delete {
		m.object = store.Object{}
	}
	return m.version, nil
}

// held is whether a controller has the lease when it asks.
func held(t *testing.T, l *driverlease.Lease) bool {
	t.Helper()
	got, err := l.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Another controller has the lease when the first one has not renewed it for its time by the other's clock, or at once
// when it was dropped.
func TestHold_AnotherOneTakesItWhenItIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		of := func(name string) *driverlease.Lease {
			return &driverlease.Lease{Store: m, Log: slog.New(slog.DiscardHandler), ID: name, Name: name,
				Time: driverlease.Usual}
		}
		one, two := of("one"), of("two")
		if !held(t, one) || driverlease.Holder(m) != "one" {
			t.Fatalf("%q has it, want the first one", driverlease.Holder(m))
		}
		for range 3 { // it is renewed
			if held(t, two) || !two.Another() {
				t.Fatal("the second one has what the first one holds")
			}
			time.Sleep(driverlease.Usual - time.Second)
			if !held(t, one) {
				t.Fatal("the first one lost it")
			}
		}
		if held(t, two) {
			t.Fatal("the second one has what was just renewed")
		}
		time.Sleep(driverlease.Usual)
		if !held(t, two) || driverlease.Holder(m) != "two" {
			t.Fatal("the second one does not have what nobody renews")
		}
		if held(t, one) {
			t.Fatal("the first one has it again")
		}
		two.Drop()
		if driverlease.Holder(m) != "" || !held(t, one) {
			t.Errorf("%q has it after it was dropped", driverlease.Holder(m))
		}
	})
}

// That nobody drives counts from when it was seen first.
func TestSight_NobodyDrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &driverlease.Sight{}
		s.Saw(false, false)
		time.Sleep(time.Minute)
		s.Saw(false, false)
		if own, nobody := s.Drives(); own || nobody != time.Minute {
			t.Errorf("own %v, nobody for %s, want a minute", own, nobody)
		}
		s.Saw(true, true)
		if own, nobody := s.Drives(); !own || nobody != 0 {
			t.Errorf("own %v, nobody for %s, want this one", own, nobody)
		}
	})
}
