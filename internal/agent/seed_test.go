package agent

import (
	"testing"

	"heddle/internal/agent/devices"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
)

// derived are the MAC of a host port and the chassis of the agent whose state is in a directory, after a start.
func derived(t *testing.T, dir string, older bool) [2]plan.MAC {
	t.Helper()
	store, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	if older { // as an earlier version has written it
		st.Seed = ""
	}
	if err := store.Save(st); err != nil {
		t.Fatal(err)
	}
	from := derivesFrom("default", st)
	return [2]plan.MAC{devices.DerivedMAC(plan.PortID{Switch: "lab", Name: "vmk0"}, from),
		devices.DerivedMAC(plan.PortID{Name: "chassis"}, from)}
}

// Machines that were cloned have one machine-id, and so have the two hosts of this test.
func TestS153_ClonesHaveMACsOfTheirOwn(t *testing.T) {
	a, b, old := t.TempDir(), t.TempDir(), t.TempDir()
	first, second, before := derived(t, a, false), derived(t, b, false), derived(t, old, true)
	for i, what := range []string{"host port", "chassis"} {
		if first[i] == second[i] {
			t.Errorf("the %s has the MAC %s on two hosts", what, first[i])
		}
	}
	for range 2 {
		if derived(t, a, false) != first || derived(t, old, false) != before {
			t.Error("a restart gives a host port another MAC")
		}
	}
	if before != derived(t, t.TempDir(), true) {
		t.Error("the MAC of an earlier version is another one")
	}
}
