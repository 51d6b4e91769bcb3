package store

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// follower builds the state from what a watch sends, and fails where that doesn't fit together.
type follower struct {
	t      *testing.T
	docs   map[Key]string
	rev    int64
	resets int
}

func (f *follower) take(b Batch) {
	f.t.Helper()
	switch {
	case b.Reset:
		f.docs, f.resets = map[Key]string{}, f.resets+1
	case b.Revision <= f.rev:
		f.t.Fatalf("revision %d after %d", b.Revision, f.rev)
	}
	f.rev = b.Revision
	for _, e := range b.Events {
		before, there := f.docs[e.Key]
		if there != (e.Before != nil) && !b.Reset || there && before != string(e.Before.Doc) {
			f.t.Fatalf("revision %d: %s was %q (%v), the event says %+v", b.Revision, e.Key, before, there, e.Before)
		}
		switch {
		case e.Object == nil:
			delete(f.docs, e.Key)
		case !b.Reset && e.Object.Version != b.Revision:
			f.t.Fatalf("revision %d has a change of %d", b.Revision, e.Object.Version)
		default:
			f.docs[e.Key] = string(e.Object.Doc)
		}
	}
}

// until takes batches until a revision is reached.
func (f *follower) until(ctx context.Context, from <-chan Batch, rev int64) {
	f.t.Helper()
	for f.rev < rev {
		select {
		case b, ok := <-from:
			if !ok {
				f.t.Fatal("the watch ended")
			}
			f.take(b)
		case <-ctx.Done():
			f.t.Fatalf("at revision %d, waiting for %d", f.rev, rev)
		}
	}
}

func docsOf(s *Store) map[Key]string {
	docs := map[Key]string{}
	for _, k := range s.Kinds() {
		for _, o := range s.List(k) {
			docs[o.Key] = string(o.Doc)
		}
	}
	return docs
}

func TestAWatchLosesNothingAndDoublesNothing(t *testing.T) {
	s := openNew(t)
	other := beside(t, s)
	ctx := patient(t)
	write(t, s, put(KindHost, "before", `0`, New))
	if err := other.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	start := other.Revision()
	watches := []<-chan Batch{s.Watch(ctx, 0), other.Watch(ctx, 0), other.Watch(ctx, start)}
	var writers sync.WaitGroup
	for w, by := range []*Store{s, other, s, other} {
		writers.Go(func() {
			for i := range 150 {
				key := Key{KindHost, fmt.Sprintf("h%d", i%20)} // the writers share names
				change := Change{Key: key, Doc: fmt.Appendf(nil, `"%d-%d"`, w, i), IfVersion: Any}
				if i%3 == 2 {
					change = Change{Key: key, Delete: true, IfVersion: Any}
				}
				if _, err := by.Write(ctx, []Change{change, put(KindPorts, fmt.Sprint(w, i), `1`, New)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for i, w := range watches {
		f := &follower{t: t}
		if i == 2 {
			f.rev, f.docs = start, map[Key]string{{KindHost, "before"}: `0`}
		}
		f.until(ctx, w, s.Revision())
		if diff := cmp.Diff(docsOf(s), f.docs); diff != "" || f.resets > 1 {
			t.Errorf("watch %d, %d resets: %s", i, f.resets, diff)
		}
	}
}

// Who is too far behind gets the whole state instead of what is no longer kept.
func TestASlowWatcherGetsTheWholeState(t *testing.T) {
	m := newMemory()
	m.reset(10, []*Object{{Key: Key{KindHost, "a"}, Version: 3}})
	p := &position{rev: 10}
	if b, changed := m.next(p); b != nil || changed == nil {
		t.Fatalf("at the newest revision: %+v", b)
	}
	change := func(rev int64, n int) {
		events := make([]Event, n)
		for i := range events {
			k := Key{KindPorts, fmt.Sprint(i)}
			events[i] = Event{Key: k, Object: &Object{Key: k, Version: rev}}
		}
		m.apply(rev, events)
	}
	change(11, 1)
	if b, _ := m.next(p); b == nil || b.Reset || b.Revision != 11 || len(b.Events) != 1 {
		t.Fatalf("one behind: %+v", b)
	}
	for rev := int64(12); rev < 20; rev++ {
		change(rev, kept/4)
	}
	if b, _ := m.next(p); b == nil || !b.Reset || b.Revision != 19 || len(b.Events) != kept/4+1 {
		t.Fatalf("too far behind: reset %v, revision %d, %d events", b.Reset, b.Revision, len(b.Events))
	}
	old := &position{rev: 15}
	if b, _ := m.next(old); b == nil || b.Reset || b.Revision != 16 {
		t.Errorf("a revision that is still kept: %+v", b)
	}
	m.apply(19, []Event{{Key: Key{KindHost, "a"}}})
	if _, changed := m.next(p); changed == nil {
		t.Error("a revision was applied twice")
	}
	m.apply(25, nil)
	if b, _ := m.next(p); b == nil || b.Reset || b.Revision != 25 || len(b.Events) != 0 {
		t.Errorf("a revision without changes: %+v", b)
	}
	m.reset(25, nil)
	if b, _ := m.next(p); b == nil || !b.Reset || len(b.Events) != 0 {
		t.Errorf("after a reset: %+v", b)
	}
}
