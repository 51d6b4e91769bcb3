package driving_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/controller/rollout"
)

// A stage whose host was cut off by the change does not end while nobody has noticed that: the host is silent, and a
// finding in the end. A host that answers again, and one that never says what it has counted, hold nothing up.
func TestS130_AStageWaitsForTheAnswersOfItsHosts(t *testing.T) {
	for name, c := range map[string]struct {
		wait  time.Duration
		quiet time.Duration // for how long the host of the first stage is
		mute  bool
		want  rollout.State
	}{
		"cut off, a short wait":  {wait: 6 * time.Second, quiet: time.Hour, want: rollout.Halted},
		"cut off, a long wait":   {wait: time.Minute, quiet: time.Hour, want: rollout.Halted},
		"away for some seconds":  {wait: 6 * time.Second, quiet: 20 * time.Second, want: rollout.Done},
		"of an earlier version":  {wait: 6 * time.Second, quiet: time.Hour, mute: true, want: rollout.Done},
		"silent within the wait": {wait: time.Minute, quiet: 20 * time.Second, want: rollout.Done},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, rollout.Stop)
				w.r.Wait, w.mute = c.wait, c.mute
				w.silent = func(stage int) bool {
					return stage == 0 && time.Since(w.begun[0]) > time.Second && time.Since(w.begun[0]) < c.quiet
				}
				r := w.drive(t, 1, lives)
				if r.State != c.want {
					t.Fatalf("it is %s: %+v", r.State, r)
				}
				if c.want == rollout.Done {
					return
				}
				if r.Begun != 1 || len(r.Found) == 0 || !strings.Contains(r.Found[0].What, "has not answered") {
					t.Errorf("%d stages have begun: %+v", r.Begun, r.Found)
				}
			})
		})
	}
}

// A host that falls silent just before its stage ends holds it up, too: the last question of the stage counts.
func TestS130_TheLastQuestionOfAStageCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, rollout.Stop)
		w.answer = time.Second
		late := 3*time.Second + time.Minute - 2*time.Second // after the hosts took the change
		w.silent = func(stage int) bool { return stage == 0 && time.Since(w.begun[0]) > late }
		if r := w.drive(t, 1, lives); r.State != rollout.Halted || r.Begun != 1 {
			t.Errorf("it is %s after %d stages", r.State, r.Begun)
		}
	})
}
