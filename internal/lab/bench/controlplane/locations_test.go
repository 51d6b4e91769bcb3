package controlplane_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/bench/controlplane"
	"heddle/internal/test/testkit"
)

// TestS84_LocationsOfManySegments: the run itself fails where a host of a segment is not told of a MAC, and where the
// controller lacks one after it was killed.
func TestS84_LocationsOfManySegments(t *testing.T) {
	testkit.Long(t, "simulates many segments; TestRun_EveryMoveIsKnown has fewer")
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(asController, "1")
	const hosts, macs, rounds = 60, 4000, 1 // two racks
	rep, err := controlplane.Run(t.Context(), controlplane.Options{Controller: []string{self}, Hosts: []int{hosts},
		Rounds: rounds, Locations: macs, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var works []string
	for _, row := range rep.Rows {
		work := row.Get("work").(string)
		works = append(works, work)
		switch work {
		case "locations known":
			if got := row.Get("macs").(int); got != macs+hosts+10*rounds || row.Get("segments").(int) != 41 ||
				row.Get("rested").(float64) < 10e6 {
				t.Errorf("%d MACs: %+v", got, row)
			}
		case "MAC known to all of a segment":
			if n := len(row.Get("samples").([]float64)); n != 10*rounds || row.Get("p50").(float64) <= 0 {
				t.Errorf("%d changes: %+v", n, row)
			}
		}
	}
	if got := strings.Join(works, ", "); got != "locations known, MAC known to all of a segment, join, idle, memory" &&
		len(works) != 4 {
		t.Errorf("rows %s", got)
	}
	if len(rep.Budgets) != 3 {
		t.Errorf("budgets %+v", rep.Budgets)
	}
}
