package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/agent/devices"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
)

// derived are the MAC of a host port and the chassis of the agent whose state is in a directory, after a start. An
// earlier program writes the state and nothing else.
func derived(t *testing.T, dir string, earlier bool) [2]plan.MAC {
	t.Helper()
	store, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	seed := ""
	if !earlier {
		if seed, err = store.Seed(); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Save(st); err != nil {
		t.Fatal(err)
	}
	from := derivesFrom("default", seed)
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

// An earlier program writes the state anew without what it does not know, and a start may end before the state is
// saved.
func TestS153_AnEarlierProgramInBetweenChangesNoMACOfTheLaterOne(t *testing.T) {
	dir := t.TempDir()
	first := derived(t, dir, false)
	path := filepath.Join(dir, "state.json")
	if err := os.WriteFile(path, []byte(`{"format":1,"place":"","held":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if derived(t, dir, false) != first {
		t.Error("a state of an earlier program gives a host port another MAC")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if derived(t, dir, false) != first {
		t.Error("without a state the seed is another one")
	}
}

// Another MAC is worse than no start: the damage is said.
func TestS153_ADamagedSeedIsRefused(t *testing.T) {
	dir := t.TempDir()
	derived(t, dir, false)
	path := filepath.Join(dir, "seed.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	text[len(`{"seed":"`)] ^= 1
	for _, damaged := range []string{string(text), "", `{}`} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := store.Seed(); err == nil || !strings.Contains(err.Error(), "restore the file") {
			t.Errorf("%q: seed %q, error %v", damaged, s, err)
		}
	}
}
