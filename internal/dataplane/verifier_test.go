package dataplane

import (
	"slices"
	"testing"

	"heddle/internal/test/testkit"
)

func TestVerifierLogIsRead(t *testing.T) {
	const log = "func#1 @77\nverification time 812 usec\nstack depth 64+0+24\nprocessed 1234 insns (limit 1000000) max_states_per_insn 4 total_states 56 peak_states 34 mark_read 7\n"
	want := ProgramCost{Program: "p", Processed: 1234, States: 56, PeakStates: 34, Stack: 88}
	if got, err := readStats("p", log); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "stack depth 8\n", "processed 3 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n"} {
		if got, err := readStats("p", bad); err == nil {
			t.Errorf("%q gave %+v", bad, got)
		}
	}
}

func TestVerifierCostsOfAllProgramsAreMeasured(t *testing.T) {
	testkit.Root(t)
	costs, err := MeasureVerifier()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := loadVswitch()
	if err != nil {
		t.Fatal(err)
	}
	if len(costs) != len(spec.Programs)+2 { // two of them also capturing
		t.Errorf("%d costs of %d programs", len(costs), len(spec.Programs))
	}
	ingress := slices.IndexFunc(costs, func(c ProgramCost) bool { return c.Program == "heddle_ingress" })
	if ingress < 0 || costs[ingress].Instructions < 1000 || costs[ingress].Processed < costs[ingress].Instructions/2 || costs[ingress].Stack == 0 {
		t.Errorf("costs are not those of a switch: %+v", costs)
	}
}
