package meter

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heddle/internal/flow"
	"heddle/internal/plan"
)

// For any sequence of packets, drains, kills, clock steps, slow exporters and ports that are added and removed, the
// records contain what was counted: the largest totals of every flow, and without a kill the deltas too.
func TestAccountsBalance(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		set := Settings{ActiveTimeout: 10 * time.Second, IdleTimeout: 4 * time.Second,
			MaxFlows: rapid.IntRange(1, 12).Draw(r, "maxFlows"),
			Biflow:   rapid.Bool().Draw(r, "biflow")}
		w := newWorld(t, set)
		defer w.m.release()
		want, killed := map[flow.Key]uint64{}, false
		dies := false
		w.kernel.dies = func() bool { return dies && rapid.Bool().Draw(r, "dies in the drain") }
		w.sink.dies = func() bool { return dies && rapid.Bool().Draw(r, "dies behind an export") }
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			default:
				k := key(uint16(rapid.IntRange(0, 9).Draw(r, "flow")))
				if rapid.Bool().Draw(r, "opposite") {
					k, _ = opposite(&k)
				}
				n := uint64(rapid.IntRange(1, 5).Draw(r, "packets"))
				w.send(k, n)
				want[k] += n
			case 6, 7:
				w.pass(time.Duration(rapid.IntRange(1, 8000).Draw(r, "ms")) * time.Millisecond)
				w.sink.budget = rapid.IntRange(0, 5).Draw(r, "budget")
				w.step()
				w.m.switches["lab"].table.checkBounds(r.Fatalf)
			case 8:
				w.now.Wall = w.now.Wall.Add(time.Duration(rapid.IntRange(1, 5000).Draw(r, "clock")) * time.Second)
			case 9:
				killed, dies = true, true
				w.pass(time.Second)
				w.dieSomewhere()
				dies = false
				w.kill()
			}
		}
		w.sink.budget = 0
		w.pass(2 * time.Second)
		w.step()
		w.kernel.points = map[uint16]flow.Point{7: {ID: plan.PortID{Switch: "lab", Name: "vm7"}}}
		w.pass(2 * time.Second)
		w.step()
		to, deltas := told{}, map[flow.Key]uint64{}
		for _, rec := range w.take() {
			to.add(rec)
			deltas[rec.Key] += rec.Delta.Packets
			if rec.Reverse != nil {
				k, _ := opposite(&rec.Key)
				deltas[k] += rec.Reverse.Delta.Packets
			}
		}
		got := to.perKey()
		for k, n := range want {
			if got[k] != n {
				r.Fatalf("port %d, direction %d: totals tell of %d packets, %d were counted", k.SrcPort, k.Direction,
					got[k], n)
			}
			if !killed && deltas[k] != n {
				r.Fatalf("port %d, direction %d: deltas tell of %d packets, %d were counted", k.SrcPort, k.Direction,
					deltas[k], n)
			}
		}
		if st := w.m.Statistics()["lab"]; st.Flows != 0 || !killed && st.Folded != st.InRecords {
			r.Fatalf("statistics do not balance: %+v", st)
		}
	})
}

// dieSomewhere steps and is killed at one of the points that ask, or after the step.
func (w *world) dieSomewhere() {
	defer func() {
		if p := recover(); p != nil && p != errDied {
			panic(p)
		}
		// The panic may have left a lock held: it is discarded with the agent.
	}()
	w.sink.left = w.sink.budget
	if _, err := w.m.Step(w.now); err != nil && !errors.Is(err, errDied) {
		w.t.Error(err)
	}
}

// The last batch may come again as long as the source has no confirmation: the entry that has its number stays.
func TestUnconfirmedBatchKeepsItsEntry(t *testing.T) {
	w := newWorld(t, Settings{ActiveTimeout: 10 * time.Second, IdleTimeout: 4 * time.Second, MaxFlows: 10})
	w.send(key(1), 3)
	w.run(time.Second)
	w.send(key(1), 5)
	w.kernel.dies = func() bool { return true }
	for range 20 {
		w.pass(time.Second)
		w.dieSomewhere()
	}
	w.kernel.dies = func() bool { return false }
	w.run(10 * time.Second)
	to := told{}
	for _, r := range w.take() {
		to.add(r)
	}
	if got := to.perKey()[key(1)]; got != 8 {
		t.Errorf("%d packets were told of instead of 8", got)
	}
}
