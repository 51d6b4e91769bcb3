package attack_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/internal/lab/attack"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
)

func TestAnUnknownRowIsRefused(t *testing.T) {
	err := (attack.Options{Rows: []string{"lacp-group", "nonsense"}}).Check()
	if !errors.Is(err, experiment.ErrUnknown) || !strings.Contains(err.Error(), "beacon-group") ||
		!slices.Contains(attack.RowNames(), "loop-storm-open") {
		t.Errorf("got %v", err)
	}
}

// runRows measures these rows, and checks that nothing is left behind.
func runRows(t *testing.T, names ...string) *report.Report {
	t.Helper()
	testkit.Root(t)
	testkit.Weigh(t, 3)
	dir := t.TempDir()
	rep, err := attack.Run(t.Context(), attack.Options{RunDir: dir, Quick: true, Rows: names})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "lab", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if len(rep.Rows) != len(names) {
		t.Fatalf("%d rows", len(rep.Rows))
	}
	for i, row := range rep.Rows {
		if row.Get("name") != names[i] || row.Get("lag") != "2/2, 2/2" || row.Get("changes") != 0 ||
			row.Get("stations") != "32/32" {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	return rep
}

// What attackers send to link control addresses is dropped, what they send to everybody changes nothing, and each row
// shows that.
func TestS97_S98_HostileGuestsChangeNothingAtTheUplinks(t *testing.T) {
	testkit.Long(t, "sends each hostile frame; linkproto has frames of guests at uplinks")
	testkit.Never(t)
	names := []string{"lacp-group", "lacp-broadcast", "lldp-multicast", "bpdu-group"}
	rep := runRows(t, names...)
	refused := []string{"guest-link-control 100", "guest-tagged 20, vlan-not-allowed 10",
		"guest-tagged 20, vlan-not-allowed 10", "guest-bpdu 100"}
	for i, row := range rep.Rows {
		if row.Get("attacks") != 100 || row.Get("refused") != refused[i] || row.Get("blocked") != "-" {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if len(rep.Budgets) != 4*len(names) {
		t.Errorf("budgets %+v", rep.Budgets)
	}
}

// A guest that sends from 10,000 addresses has no more entries than its quota of a table of 4,096. Frames from the
// others are dropped with the reason of the table, pass unlearned, or are dropped with the reason of the port's own
// limit, as the policy says. Others' stations stay known, and those that speak only afterwards become known.
func TestS15_GuestsThatFillTheTableOfMACsTakeNothingFromOthers(t *testing.T) {
	testkit.Long(t, "fills tables")
	testkit.Never(t)
	rep := runRows(t, "mac-starvation", "mac-starvation-passing", "mac-starvation-limit")
	for i, refused := range []string{"mac-table-full 8656", "-", "mac-limit 9936"} { // of 10,000, without 1,344 and 64
		if row := rep.Rows[i]; row.Get("attacks") != 10000 || row.Get("refused") != refused ||
			row.Get("blocked") != "-" {
			t.Errorf("row %d: %+v", i, row)
		}
	}
}

// A guest whose port has the guards takes nothing from those it poses as: no packet is lost, their neighbour tables
// keep their MACs, and nobody uses its router. Without guards it gets what they send.
func TestS86_S87_S108_AGuestThatPosesAsOthersGetsNothingOfTheirs(t *testing.T) {
	testkit.Never(t)
	rep := runRows(t, "spoofing", "spoofing-open")
	good, open := rep.Rows[0], rep.Rows[1]
	refused := "arp-sender-not-allowed 40, guest-dhcp-server 10, guest-router-advertisement 10, " +
		"ip-source-not-allowed 40, nd-target-not-allowed 20"
	for name, want := range map[string]any{"attacks": 120, "lost": uint64(0), "neighbours": "4/4", "routers": 0,
		"hijacked": uint64(0), "refused": refused} {
		t.Run(name, func(t *testing.T) {
			if got := good.Get(name); got != want {
				t.Errorf("%v (%T), want %v", got, got, want)
			}
		})
	}
	lost, _ := open.Get("lost").(uint64)
	hijacked, _ := open.Get("hijacked").(uint64)
	if open.Get("attacks") != 120 || open.Get("neighbours") != "0/4" || open.Get("routers") != 2 ||
		open.Get("refused") != "-" {
		t.Errorf("without guards: %+v", open)
	}
	if sent, _ := open.Get("sent").(uint64); lost < sent/2 || hijacked < lost {
		t.Errorf("without guards %d of %d packets are lost, and %d frames reach the guest", lost, sent, hijacked)
	}
	if len(rep.Budgets) != 4+3 {
		t.Errorf("budgets %+v", rep.Budgets)
	}
}

// One port of a guest that bridges its two adapters is blocked, and the others notice nothing; without loop detection,
// storm control limits what the loop does. What happens without both is only shown.
func TestS110_AStormOfAGuestThatBridgesConcernsNobodyElse(t *testing.T) {
	testkit.Long(t, "measures a storm; smoke has guests that bridge")
	testkit.Never(t)
	rep := runRows(t, "loop-storm", "loop-storm-limited", "loop-storm-open")
	for i, want := range []struct{ blocked, refused string }{{"looped2 after ", "loop-blocked "},
		{"-", "storm-control "}, {"-", ""}} {
		t.Run(want.blocked, func(t *testing.T) {
			row := rep.Rows[i]
			blocked, _ := row.Get("blocked").(string)
			refused, _ := row.Get("refused").(string)
			if row.Get("attacks") != 10 || !strings.HasPrefix(blocked, want.blocked) ||
				!strings.Contains(refused, want.refused) {
				t.Errorf("row %d: %+v", i, row)
			}
		})
	}
	for _, b := range rep.Budgets {
		if strings.HasPrefix(b.Name, "loop-storm-open") {
			t.Errorf("a row that nothing protects has a budget: %+v", b)
		}
	}
}
