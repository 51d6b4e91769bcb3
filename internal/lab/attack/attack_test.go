package attack_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/cli"
	"heddle/internal/lab/attack"
	"heddle/internal/test/testkit"
)

// TestMain lets the test program be the agents of the labs: a lab starts the running program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "agent" || os.Args[1] == "lab") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := cli.Run(ctx, cli.FromOS(), os.Args[1:])
		stop()
		os.Exit(status)
	}
	os.Exit(m.Run())
}

func TestAnUnknownRowIsRefused(t *testing.T) {
	err := (attack.Options{Rows: []string{"lacp-group", "nonsense"}}).Check()
	if !errors.Is(err, attack.ErrUnknown) || !strings.Contains(err.Error(), "pause-unicast") {
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
