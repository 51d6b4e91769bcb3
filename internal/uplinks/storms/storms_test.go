package storms

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/plan"
)

// What begins and ends a storm, look by look.
func TestS169_AStormBeginsAndEnds(t *testing.T) {
	up := plan.PortID{Switch: "lab", Name: "u1"}
	type look struct {
		after                 time.Duration
		broadcasts, reflected uint64 // since the look before
		want                  string
	}
	s := time.Second
	for name, looks := range map[string][]look{
		"a network in order": {{s, 999, 0, ""}, {s, 999, 0, ""}, {s, 999, 0, ""}, {s, 999, 0, ""}},
		"a burst":            {{s, 9000, 0, ""}, {s, 9000, 0, ""}, {s, 10, 0, ""}, {s, 9000, 0, ""}, {s, 9000, 0, ""}},
		"a storm of others": {{s, 5000, 3, ""}, {s, 5000, 0, ""}, {s, 6000, 0, "storm 6000 0"}, {s, 7000, 0, ""},
			{s, 499, 0, ""}, {s, 499, 0, ""}, {s, 499, 0, ""}, {s, 499, 0, ""}, {s, 499, 0, "over 7000 0"},
			{s, 9000, 0, ""}},
		"it goes on": {{s, 5000, 0, ""}, {s, 5000, 0, ""}, {s, 5000, 0, "storm 5000 0"}, {s, 1, 0, ""},
			{s, 600, 0, ""}, {s, 1, 0, ""}},
		"own frames":  {{s, 4000, 2000, ""}, {s, 4000, 2000, ""}, {s, 4000, 2000, "loop 4000 2000"}},
		"looks late":  {{3 * s, 15000, 0, ""}, {s, 5000, 0, ""}, {2 * s, 4000, 0, "storm 2000 0"}},
		"late, slow":  {{10 * s, 9000, 0, ""}, {10 * s, 9000, 0, ""}, {10 * s, 9000, 0, ""}},
		"looks twice": {{s, 5000, 0, ""}, {s, 5000, 0, ""}, {s / 10, 1, 0, ""}, {9 * s / 10, 5000, 0, "storm 5001 0"}},
		"clock set":   {{s, 5000, 0, ""}, {s, 5000, 0, ""}, {-3600 * s, 5000, 0, ""}, {s, 5000, 0, "storm 5000 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, now, at := Watch{}, time.Unix(1_000_000, 0), Sample{}
			w.Look(now, map[plan.PortID]Sample{up: at})
			for i, l := range looks {
				now = now.Add(l.after)
				at.Broadcasts += l.broadcasts
				at.Reflected += l.reflected
				got := ""
				for _, c := range w.Look(now, map[plan.PortID]Sample{up: at}) {
					got += said(c)
				}
				if got != l.want {
					t.Errorf("look %d: %q, want %q", i, got, l.want)
				}
			}
		})
	}
}

func said(c Change) string {
	what := "storm"
	switch {
	case c.Over:
		what = "over"
	case c.Storm.Loop():
		what = "loop"
	}
	return what + " " + strconv.Itoa(c.Storm.Rate) + " " + strconv.Itoa(c.Storm.Own)
}

// An uplink that goes ends its storm; counters that begin anew begin none.
func TestS169_UplinksThatGoAndCountersThatBeginAnew(t *testing.T) {
	up := plan.PortID{Switch: "lab", Name: "u1"}
	w, now := Watch{}, time.Unix(1_000_000, 0)
	for i := range 4 {
		w.Look(now.Add(time.Duration(i)*time.Second), map[plan.PortID]Sample{up: {Broadcasts: uint64(i) * 5000}})
	}
	storm, ok := w.Storm(up)
	if !ok || storm.Rate != 5000 || storm.Loop() {
		t.Fatal(storm, ok)
	}
	if c := w.Look(now.Add(4*time.Second), map[plan.PortID]Sample{up: {Broadcasts: 7}}); len(c) > 0 {
		t.Error("counters that begin anew: ", c)
	}
	want := []Change{{Uplink: up, Storm: storm, Over: true}}
	if diff := cmp.Diff(want, w.Look(now.Add(5*time.Second), nil)); diff != "" {
		t.Error(diff)
	}
	if _, ok := w.Storm(up); ok {
		t.Error("the storm of an uplink that is gone stays")
	}
}
