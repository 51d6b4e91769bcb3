package meter

import (
	"log/slog"
	"testing"
	"time"
)

// checkBounds fails when an entry is due before its group says.
func (t *table) checkBounds(fail func(string, ...any)) {
	for i, d := range t.due.s {
		if low := t.low.s[i/groupEntries]; d != 0 && d < low {
			fail("entry %d is due at %d, its group not before %d", i, d, low)
		}
	}
}

// Whatever the limit, each flow that is due has its turn before another has its second, and the search continues where
// it stopped.
func TestEveryFlowThatIsDueHasItsTurn(t *testing.T) {
	for _, limit := range []int{1, 7, groupEntries, groupEntries + 1, 1000} {
		tab, err := newTable(t.TempDir()+"/t", originSum("boot"), Settings{ActiveTimeout: time.Minute,
			IdleTimeout: 10_000 * time.Hour, MaxFlows: 5000}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tab.release)
		b, now := manyKeys(4500), Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}
		for i := range b.Keys {
			if tab.fold(&b.Keys[i], tab.hash(&b.Keys[i]), &b.Counts[i], 1, now) != added {
				t.Fatal("no room")
			}
		}
		h, turns := newHarvest(limit), map[int]int{}
		const rounds = 3
		for n, tick := 0, floorTick(now.Up); n < rounds*len(b.Keys); n += len(h.items) {
			tick += ticks(time.Minute) // all are due again each time, including those that were reported
			h.reset()
			tab.collect(tick, limit, nil, h)
			for k := range h.items {
				h.items[k].end = false
				turns[h.items[k].first]++
			}
			tab.settle(h.items, tick)
			for _, x := range h.items {
				tab.file.entries[x.first].current().sentPackets = 0 // there is more to report
			}
			tab.checkBounds(t.Fatalf)
			if len(h.items) == 0 {
				t.Fatal("nothing is due")
			}
		}
		for i := range b.Keys {
			if n := turns[i]; n < rounds || n > rounds+1 {
				t.Fatalf("limit %d: entry %d had %d turns while others had %d", limit, i, n, rounds)
			}
		}
	}
}

// While nothing is due, a search does not read the times of single entries.
func TestGroupsThatAreNotDueAreNotLookedThrough(t *testing.T) {
	tab, err := newTable(t.TempDir()+"/t", originSum("boot"), minute.withDefaults(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.release)
	b, now := manyKeys(1000), Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}
	for i := range b.Keys {
		tab.fold(&b.Keys[i], tab.hash(&b.Keys[i]), &b.Counts[i], 1, now)
	}
	tick, h := floorTick(now.Up), newHarvest(slice)
	tab.collect(tick, slice, nil, h) // bounds are known from here on
	first := tick + ticks(minute.IdleTimeout)
	for g := range len(b.Keys) / groupEntries {
		if low := tab.low.s[g]; low <= tick || low > first {
			t.Errorf("group %d is due from %d on, its entries at %d", g, low, first)
		}
	}
	tab.settled = 1
	tab.collect(first-1, slice, nil, h)
	if len(h.items) > 0 {
		t.Errorf("%d records are made too early", len(h.items))
	}
	tab.collect(first, 2*slice, nil, h)
	if len(h.items) != len(b.Keys) {
		t.Errorf("%d records instead of %d", len(h.items), len(b.Keys))
	}
}
