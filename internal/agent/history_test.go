package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
)

func (r *rig) versions() (list []api.AppliedConfig, now *api.AppliedConfig) {
	r.t.Helper()
	if err := r.command(func(ctx context.Context) (err error) {
		if list, err = r.history.Configs(ctx); err == nil {
			now, err = r.history.Config(ctx, api.ConfigQuery{})
		}
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
	return list, now
}

// A configuration that could not be added to the history is applied even so; no version is shown in its place.
func TestAVersionIsAppliedOnlyIfItIsWhatCounts(t *testing.T) {
	r := newRig(t, base)
	first, second := base, strings.Replace(base, "access: 100", "access: 300", 1)
	if err := r.apply(second); err != nil {
		t.Fatal(err)
	}
	list, now := r.versions()
	if len(list) != 2 || list[0].Applied || !list[1].Applied || now.Number != 2 || now.At.IsZero() {
		t.Fatalf("%+v, now %+v", list, now)
	}

	// Nobody, not even root, can write the next version to this path.
	if err := os.MkdirAll(filepath.Join(r.dir, "history", "3.yaml", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	third := strings.Replace(base, "access: 100", "access: 400", 1)
	if err := r.apply(third); err != nil {
		t.Fatal(err)
	}
	list, now = r.versions()
	if len(list) != 2 || list[0].Applied || list[1].Applied {
		t.Errorf("none of them is applied: %+v", list)
	}
	if now.Number != 0 || !now.At.IsZero() || now.Content != third || !now.Applied {
		t.Errorf("what is applied: %+v", now)
	}

	if err := r.apply(first); err != nil {
		t.Fatal(err)
	}
	if list, now = r.versions(); !list[0].Applied || list[1].Applied || now.Number != 1 {
		t.Errorf("the first one counts again: %+v, now %+v", list, now)
	}
}
