package outage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/outage"
	"heddle/internal/test/testkit"
)

func TestAnUnknownRowIsRefused(t *testing.T) {
	if err := (outage.Options{Rows: []string{"link-down", "nonsense"}}).Check(); !errors.Is(err,
		experiment.ErrUnknown) || !strings.Contains(err.Error(), "receive-only") {
		t.Errorf("got %v", err)
	}
	if err := (outage.Options{}).Check(); err != nil {
		t.Error(err)
	}
}

// Only counts are checked: times depend on the machine.
func TestS43_S49_OutagesAreCountedAndNothingIsLeftBehind(t *testing.T) {
	testkit.Long(t, "measures each kind of outage; TestS47_S51_TeamingInTheLab has teaming")
	testkit.Root(t)
	testkit.Weigh(t, 3)
	dir := t.TempDir()
	rep, err := outage.Run(t.Context(), outage.Options{RunDir: dir, Quick: true, Rows: []string{"link-down", "failback",
		"receive-only-unannounced"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"link-down", "failback", "receive-only-unannounced"} {
		row := rep.Rows[i]
		if row.Get("name") != name || row.Get("ports") != 2 || row.Get("duplicated") != uint64(0) ||
			row.Get("reordered") != uint64(0) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if len(rep.Budgets) != 6 { // a gap in each direction of two rows, the agent's CPU and memory
		t.Errorf("budgets %+v", rep.Budgets)
	}
	left, err := filepath.Glob(filepath.Join(dir, "lab", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	entries, err := os.ReadDir("/var/run/netns")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), fmt.Sprintf("fo%d-", os.Getpid())) {
			t.Errorf("namespace %s is left", e.Name())
		}
	}
}
