package layout

import (
	"slices"
	"strings"
	"testing"
)

func TestNothingIsLargerThanAgreed(t *testing.T) {
	packages, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	methods, reach, err := Methods(packages)
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := Measure(packages)
	if err != nil {
		t.Fatal(err)
	}
	touches, err := Touches("../../..",
		inRooms(packages, "internal/agent", "internal/controller", "internal/platform"))
	if err != nil {
		t.Fatal(err)
	}
	hundreds := map[string]int{}
	for name, n := range sizes.Lines {
		hundreds[name] = (n + 99) / 100
	}
	for _, held := range []struct {
		bound
		count map[string]int
	}{{methodsOfTypes(), methods}, {methodsOnState(), reach}, {filesOfPackages(), sizes.Files},
		{linesOfPackages(), hundreds}, {linesOfFunctions(), sizes.Functions}, {touchesOfFields(), touches}} {
		if len(held.count) < 40 {
			t.Errorf("%d things with %s: this test is void", len(held.count), held.what)
		}
		for _, fault := range held.faults(held.count) {
			t.Error(fault)
		}
	}
}

func inRooms(packages []Package, rooms ...string) []Package {
	return slices.DeleteFunc(slices.Clone(packages), func(p Package) bool {
		return !slices.Contains(rooms, room(p.Path))
	})
}

func TestBoundsAreHeld(t *testing.T) {
	b := bound{"methods", 45, map[string]int{"a.Shrunk": 60, "a.Small": 50, "a.Grown": 50, "a.Same": 48, "a.Gone": 50},
		"methodsOfTypes", "divide it"}
	got := b.faults(map[string]int{"a.Shrunk": 55, "a.Small": 45, "a.Grown": 51, "a.Same": 48, "a.Fits": 45,
		"a.New": 46})
	for i, want := range []string{"a.Gone is in methodsOfTypes", "a.Grown has 51", "a.New has 46 methods, more than 45",
		"a.Shrunk has 55 methods by now: lower", "a.Small has 45 methods: take it out"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
	if len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// Whatever way a method reaches a state, it counts: by a wrapper, by a wrapper of wrappers, by embedding.
func TestReachGoesThroughWrappers(t *testing.T) {
	types := declaredTypes{
		"Server":  {methods: 3, fields: []field{{of: "state"}}},
		"people":  {methods: 5, fields: []field{{of: "Server", embedded: true}}, alone: true},
		"pair":    {methods: 7, fields: []field{{of: "Server"}, {of: "state"}}, alone: true},
		"both":    {methods: 11, fields: []field{{of: "people", embedded: true}}, alone: true},
		"state":   {methods: 13},
		"derived": {methods: 17, fields: []field{{of: "state", embedded: true}}},
		"user":    {methods: 19, fields: []field{{of: "state"}}},
	}
	for name, want := range map[string]int{"Server": 3 + 5 + 7 + 11, "people": 5 + 11, "state": 13 + 7 + 17,
		"user": 19} {
		if got := types.reaching(name); got != want {
			t.Errorf("%d methods reach %s, want %d", got, name, want)
		}
	}
}
