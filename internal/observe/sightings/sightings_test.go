package sightings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/plan"
)

func vmID() plan.PortID { return plan.PortID{Switch: "lab", Name: "vm"} }

func at(second int) time.Time { return time.Unix(1_000_000+int64(second), 0).UTC() }

func count(n uint64, cause string) map[plan.PortID][]Count {
	return map[plan.PortID][]Count{vmID(): {{What: "drops/x", N: n, Cause: cause}, {What: "zero"}}}
}

// step is one reading, and what is known after it.
type step struct {
	second int
	n      uint64
	cause  string
	want   Sighting
}

// What was counted for the first time since the last reading, and under settings that were changed meanwhile, is not
// held against the new ones.
func TestLedger_AChangeSinceTheLastReadingIsNoFaultOfTheNewSettings(t *testing.T) {
	l := New()
	note := func(second int, n uint64, was, cause string) Sighting {
		l.Note(at(second), map[plan.PortID][]Count{vmID(): {{What: "drops/x", N: n, Was: was, Cause: cause}}})
		got, _ := l.Seen().Of(vmID(), "drops/x")
		return got
	}
	note(0, 0, "", "a")
	if got, want := note(60, 5, "a", "b"), (Sighting{N: 5, Before: 5, Since: at(60), Cause: "b"}); got != want {
		t.Errorf("after the change: %+v, want %+v", got, want)
	}
	got := note(120, 6, "", "b")
	want := Sighting{N: 6, Before: 5, Since: at(60), Cause: "b", First: at(120), Last: at(120)}
	if got != want || got.Counted() != 1 {
		t.Errorf("one more: %+v, want %+v", got, want)
	}
}

func TestLedger_DatesWhatGrows(t *testing.T) {
	for name, steps := range map[string][]step{
		"what was counted before the first reading has no date": {
			{0, 5, "a", Sighting{N: 5, Cause: "a"}},
			{10, 5, "a", Sighting{N: 5, Cause: "a"}},
			{20, 6, "a", Sighting{N: 6, Cause: "a", Last: at(20)}},
		},
		"what comes later has": {
			{0, 0, "a", Sighting{}},
			{10, 2, "a", Sighting{N: 2, Cause: "a", First: at(10), Last: at(10)}},
			{20, 2, "a", Sighting{N: 2, Cause: "a", First: at(10), Last: at(10)}},
			{30, 9, "a", Sighting{N: 9, Cause: "a", First: at(10), Last: at(30)}},
		},
		"under other settings it begins anew": {
			{0, 5, "a", Sighting{N: 5, Cause: "a"}},
			{10, 7, "b", Sighting{N: 7, Before: 7, Since: at(10), Cause: "b"}},
			{20, 7, "b", Sighting{N: 7, Before: 7, Since: at(10), Cause: "b"}},
			{30, 8, "b", Sighting{N: 8, Before: 7, Since: at(10), Cause: "b", First: at(30), Last: at(30)}},
		},
		"a counter that went down began anew": {
			{0, 5, "a", Sighting{N: 5, Cause: "a"}},
			{10, 1, "a", Sighting{N: 1, Cause: "a", First: at(10), Last: at(10)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			for _, s := range steps {
				l.Note(at(s.second), count(s.n, s.cause))
				if got, _ := l.Seen().Of(vmID(), "drops/x"); got != s.want {
					t.Fatalf("after %d s: %+v, want %+v", s.second, got, s.want)
				}
			}
			if _, ok := l.Seen().Of(vmID(), "zero"); ok {
				t.Error("a counter of 0 takes room")
			}
			l.Note(at(99), nil)
			if len(l.Seen()) != 0 {
				t.Error("a port that is gone takes room")
			}
		})
	}
}

func TestLedger_OfThePortsThatHaveNoDevice(t *testing.T) {
	l := New()
	l.Watch(at(0), map[plan.PortID]bool{vmID(): false})
	if d := cmp.Diff(map[plan.PortID]Absence{vmID(): {Since: at(0), AtLeast: true}}, l.Absent()); d != "" {
		t.Errorf("at the first look: %s", d)
	}
	l.Watch(at(5), map[plan.PortID]bool{vmID(): true})
	if len(l.Absent()) != 0 {
		t.Error("with its device")
	}
	l.Watch(at(7), map[plan.PortID]bool{vmID(): false})
	l.Watch(at(9), map[plan.PortID]bool{vmID(): false})
	if d := cmp.Diff(map[plan.PortID]Absence{vmID(): {Since: at(7)}}, l.Absent()); d != "" {
		t.Errorf("again without: %s", d)
	}
}

func TestLedger_SurvivesWhoKeepsItAndNotThePlace(t *testing.T) {
	l := New()
	l.Note(at(0), count(0, "a"))
	l.Note(at(10), count(3, "a"))
	l.Watch(at(11), map[plan.PortID]bool{vmID(): false})
	if !l.Changed() {
		t.Fatal("nothing to write")
	}
	b, err := l.Encode("here")
	if err != nil || l.Changed() {
		t.Fatalf("%v, still to write: %v", err, l.Changed())
	}
	next, err := Decode(b, "here")
	if err != nil {
		t.Fatal(err)
	}
	next.Note(at(20), count(3, "a"))
	next.Watch(at(20), map[plan.PortID]bool{vmID(): false})
	want := Sighting{N: 3, Cause: "a", First: at(10), Last: at(10)}
	if got, _ := next.Seen().Of(vmID(), "drops/x"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if d := cmp.Diff(l.Absent(), next.Absent()); d != "" {
		t.Error(d)
	}
	if next.Changed() {
		t.Error("the same is to be written again")
	}
	next.Note(at(30), count(4, "a"))
	if got, _ := next.Seen().Of(vmID(), "drops/x"); got.Last != at(30) {
		t.Errorf("what was counted while nobody ran is dated %v", got.Last)
	}
	elsewhere, err := Decode(b, "there")
	if err != nil || len(elsewhere.Seen())+len(elsewhere.Absent()) != 0 {
		t.Errorf("%v: another boot has %v", err, elsewhere.Seen())
	}
	if l, err := Decode([]byte("{"), "here"); err == nil || len(l.Seen()) != 0 {
		t.Errorf("a damaged file: %v", err)
	}
}
