package controlplane_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heddle/internal/lab/bench/controlplane"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

// The run itself fails when the agent lacks a change, or does not come back with all its ports.
func TestRunAgent_MeasuresARealAgent(t *testing.T) {
	testkit.Root(t)
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	rep, err := controlplane.RunAgent(t.Context(), controlplane.AgentOptions{Ports: 6, Rounds: 1, Rest: time.Second,
		Controller: []string{"env", asController + "=1", self}, Heddle: []string{self}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var works []string
	for _, row := range rep.Rows {
		works = append(works, row.Get("work").(string))
		memory, own := row.Get("memory").(report.Spread), row.Get("own_memory").(report.Spread)
		if most := row.Get("most_memory").(float64); most < 5e6 || memory.Rounds > 0 && memory.Median <= own.Min {
			t.Errorf("%+v", row)
		}
	}
	if want := []string{"ports connect, one after the other", "teaming of the whole switch, all ports",
		"the controller is killed and comes back", "the agent is killed and comes back", "nothing happens"}; !slices.
		Equal(works, want) {
		t.Errorf("rows %q", works)
	}
	if len(rep.Budgets) != 0 {
		t.Errorf("a budget for 1,000 ports is held against 6: %+v", rep.Budgets)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "hb-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	for _, name := range []string{"agent", "guests"} {
		if _, err := os.Stat(fmt.Sprintf("/var/run/netns/hb%d-%s", os.Getpid(), name)); !os.IsNotExist(err) {
			t.Errorf("left behind: the namespace of the %s: %v", name, err)
		}
	}
}
