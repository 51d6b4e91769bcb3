package agent

import (
	"context"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/dataplane"
	"heddle/internal/slice"
)

// What a host knows of a change that it made at an instant with others is on disk: the next agent says it, also when
// the host has had other versions since.
func TestS175_AnAgentNotesWhenItsHostChangedWithOthers(t *testing.T) {
	r := newRig(t, base)
	take := func(s state.Slice) *state.Made {
		t.Helper()
		err := r.command(func(ctx context.Context) error {
			problems, err := r.slicing.Take(ctx, &s)
			if len(problems) > 0 {
				t.Error(problems)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.saved().Slice.Made
	}
	if m := take(state.Slice{Epoch: 1, Revision: 1}); m != nil {
		t.Errorf("a change of its own: %+v", m)
	}
	now, err := dataplane.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	made := take(state.Slice{Epoch: 1, Revision: 2, NotBefore: now, Together: "x"})
	if made == nil || made.ID != "x" || !made.Known {
		t.Errorf("a change with others: %+v", made)
	}
	if m := take(state.Slice{Epoch: 1, Revision: 3}); m == nil || *m != *made {
		t.Errorf("after another one: %+v", m)
	}
	if begun := (&state.Slice{Together: "y"}).Noting(nil).Made; begun.ID != "y" || begun.Known {
		t.Errorf("while it is made: %+v", begun)
	}
}

// An agent of an earlier version, which leaves out what it does not know, says it as well.
func TestS175_AnAgentThatLeavesOutWhatItDoesNotKnowStillSaysWhenItsHostChanged(t *testing.T) {
	r := newRig(t, base)
	made := &state.Made{ID: "x", Off: 7, Known: true}
	later := slice.Object{Key: slice.Key{Kind: "later", Name: "a"}, Doc: []byte(`{}`)}
	r.state.Slice = &state.Slice{Epoch: 1, Revision: 2, Objects: []slice.Object{later}, Made: made}
	if err := r.definition.Fit(); err != nil {
		t.Fatal(err)
	}
	if has := r.state.Slice; len(has.Objects) != 0 || has.Made == nil || *has.Made != *made {
		t.Errorf("it has %+v", has)
	}
}
