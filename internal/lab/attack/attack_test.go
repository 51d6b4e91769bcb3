package attack_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/lab/attack"
	"heddle/internal/lab/experiment"
	"heddle/internal/test/testkit"
)

func TestAnUnknownRowIsRefused(t *testing.T) {
	err := (attack.Options{Rows: []string{"lacp-group", "nonsense"}}).Check()
	if !errors.Is(err, experiment.ErrUnknown) || !strings.Contains(err.Error(), "pause-unicast") {
		t.Errorf("got %v", err)
	}
}

// What attackers send to link control addresses goes nowhere, what they send to everybody changes nothing, and each row says so.
func TestS97_S98_HostileGuestsChangeNothingAtTheUplinks(t *testing.T) {
	testkit.Root(t)
	dir := t.TempDir()
	names := []string{"lacp-group", "lacp-broadcast", "lldp-multicast", "bpdu-group"}
	rep, err := attack.Run(t.Context(), attack.Options{RunDir: dir, Quick: true, Rows: names})
	if err != nil {
		t.Fatal(err)
	}
	refused := []string{"guest-link-control 100", "guest-tagged 20, vlan-not-allowed 10", "guest-tagged 20, vlan-not-allowed 10", "guest-bpdu 100"}
	for i, row := range rep.Rows {
		if row.Get("name") != names[i] || row.Get("attacks") != 100 || row.Get("lag") != "2/2, 2/2" || row.Get("changes") != 0 || row.Get("refused") != refused[i] {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if len(rep.Rows) != len(names) || len(rep.Budgets) != 2*len(names) {
		t.Errorf("%d rows, budgets %+v", len(rep.Rows), rep.Budgets)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "lab", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
