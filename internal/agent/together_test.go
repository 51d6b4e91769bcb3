package agent

import (
	"context"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/dataplane"
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
