package migration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/lab/migration"
	"heddle/internal/lab/report"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// inLab is the program that labs are of, and a directory for one.
func inLab(t *testing.T) (heddle, dir string) {
	t.Helper()
	testkit.Root(t)
	testkit.Weigh(t, 3)
	heddle, controller := realhost.Programs(t)
	bin := t.TempDir()
	if err := os.Symlink(controller, filepath.Join(bin, "heddle-controller")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir, err := os.MkdirTemp("/tmp", "hm") // names of unix sockets have 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return heddle, dir
}

// A port that runs moves at a controller to another port group, segment and switch, and back: its packets reach the
// segment that it is in and no other, and none twice. Only counts are checked.
func TestS100_APortMovesOnItsHostInTheLab(t *testing.T) {
	heddle, dir := inLab(t)
	rep, err := migration.RunPortMove(t.Context(), migration.Options{RunDir: dir, Program: heddle, Quick: true,
		Moves: 1, Rate: 500, Rows: []string{"port-group", "segment", "switch"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rep.Rows {
		for _, name := range []string{"duplicated", "wrong"} {
			if row.Get(name) != uint64(0) {
				t.Errorf("row %v: %s: %v", row.Get("name"), name, row.Get(name))
			}
		}
		if sent, ok := row.Get("sent").(uint64); !ok || sent == 0 || row.Get("moves") != 2 {
			t.Errorf("row %v: %v packets in %v moves", row.Get("name"), row.Get("sent"), row.Get("moves"))
		}
	}
}

// A guest moves between two Heddle hosts under traffic, in a VLAN and on an overlay segment: nothing is delivered at
// the target or sent by it before the guest runs there, nothing comes twice and no connection breaks. Only counts are
// checked: times depend on the machine.
func TestS99_S100_S105_AGuestMovesInTheLab(t *testing.T) {
	testkit.Long(t, "builds a lab of several hosts and measures moves; TestS100_APortMovesOnItsHostInTheLab has "+
		"one host")
	heddle, dir := inLab(t)
	rep, err := migration.Run(t.Context(), migration.Options{RunDir: dir, Program: heddle, Quick: true, Moves: 1,
		Rate: 500, Rows: []string{"namespace", "overlay"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Rows) != 2 {
		t.Fatalf("%d rows", len(rep.Rows))
	}
	for _, row := range rep.Rows {
		t.Run(row.Get("name").(string), func(t *testing.T) { moved(t, row) })
	}
	if left, err := filepath.Glob(filepath.Join(dir, "lab", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	entries, err := os.ReadDir("/var/run/netns")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), migration.LabName()+"-") {
			t.Errorf("namespace %s is left", e.Name())
		}
	}
}

// moved checks a row with one move.
func moved(t *testing.T, row report.Row) {
	for _, name := range []string{"duplicated", "early", "early_sent"} {
		if row.Get(name) != uint64(0) {
			t.Errorf("%s: %v", name, row.Get(name))
		}
	}
	if n, ok := row.Get("rarps").(uint64); !ok || n == 0 { // S50
		t.Errorf("the target announced the guest's MAC %v times", row.Get("rarps"))
	}
	if row.Get("broken") != int64(0) || row.Get("moves") != 1 {
		t.Errorf("%v connections broken in %v moves", row.Get("broken"), row.Get("moves"))
	}
	if sent, ok := row.Get("sent_packets").(uint64); !ok || sent == 0 {
		t.Errorf("%v packets were sent: nothing was tried", row.Get("sent_packets"))
	}
}
