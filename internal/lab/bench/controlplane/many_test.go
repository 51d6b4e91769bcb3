package controlplane_test

import (
	"os"
	"testing"
	"time"

	"heddle/internal/lab/bench/controlplane"
	"heddle/internal/test/testkit"
)

// Half a thousand hosts have each change, and have those that were made while the controller was killed: what each of
// them has is compared with the definition after every step, and the controller has all ports of all of them.
func TestRun_HundredsOfHostsLoseNoChange(t *testing.T) {
	testkit.Long(t, "simulates hundreds of hosts; TestRun_EveryMoveIsKnown has fewer")
	testkit.Weigh(t, 3)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(asController, "1")
	const hosts = 500
	rep, err := controlplane.Run(t.Context(), controlplane.Options{Controller: []string{self}, Hosts: []int{hosts},
		Ports: 20, Rounds: 1, Connects: 200, Connecting: time.Second, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	came := 0
	for _, row := range rep.Rows {
		switch row.Get("work") {
		case "first connection", "reconnecting":
			came++
			if n, _ := row.Get("connections").(float64); n < 1 {
				t.Errorf("%s: %v connections for each host", row.Get("work"), row.Get("connections"))
			}
		case "idle, memory":
			// The first connection, three changes, and the one while the controller was away.
			if n := row.Get("checked"); n != 5*hosts {
				t.Errorf("the contents of hosts were compared %v times, want %d", n, 5*hosts)
			}
		}
	}
	if came != 2 {
		t.Errorf("the hosts came %d times, want twice", came)
	}
}
