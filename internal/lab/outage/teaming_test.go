package outage_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/outage"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

func TestAnUnknownRowOfTeamingIsRefused(t *testing.T) {
	if err := (outage.Options{Rows: []string{"link-down"}}).CheckTeaming(); !errors.Is(err, experiment.ErrUnknown) ||
		!strings.Contains(err.Error(), "load-based") {
		t.Errorf("got %v", err)
	}
	if err := (outage.Options{}).CheckTeaming(); err != nil {
		t.Error(err)
	}
}

// Beacons detect a failure that no link shows, and a port moves off a loaded uplink, with real traffic. Times and
// throughput depend on the machine, and are not checked.
func TestS47_S51_TeamingInTheLab(t *testing.T) {
	testkit.Root(t)
	t.Parallel()
	testkit.Weigh(t, 3)
	rep, err := outage.RunTeaming(t.Context(), outage.Options{RunDir: t.TempDir(), Quick: true, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Rows) != 2 || len(rep.Budgets) != 4 {
		t.Fatalf("rows %+v, budgets %+v", rep.Rows, rep.Budgets)
	}
	for _, column := range []string{"lost_out", "lost_in"} { // three beacons have to be missed
		if lost, ok := rep.Rows[0].Get(column).(report.Spread); !ok || lost.Median == 0 {
			t.Errorf("beacon: %s is %+v: nothing was tried", column, rep.Rows[0].Get(column))
		}
	}
	if d := rep.Rows[0].Get("duplicated"); d != uint64(0) {
		t.Errorf("%v packets came twice", d)
	}
	for _, column := range []string{"moved_s", "before_bps", "after_bps"} {
		if s, ok := rep.Rows[1].Get(column).(report.Spread); !ok || s.Rounds != 1 {
			t.Errorf("load: %s is %+v", column, rep.Rows[1].Get(column))
		}
	}
	entries, err := os.ReadDir("/var/run/netns")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), fmt.Sprintf("te%d-", os.Getpid())) {
			t.Errorf("namespace %s is left", e.Name())
		}
	}
}
