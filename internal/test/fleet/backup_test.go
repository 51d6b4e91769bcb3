package fleet

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// A backup of a cluster whose controller is lost comes back on a new controller that defines nothing: the VM that had
// a static port has the one with the same number again, on a host that joined by the name of the old one.
func TestS82_ANewControllerGivesAVMItsStaticPortAgain(t *testing.T) {
	testkit.Long(t, "TestS103_ARestoreLosesNothingThatWasBoundSince restores a backup as well")
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	rack := map[string]string{"rack": "a"}
	f.controller.Join(f.hosts[0].Host, "esx0", rack)
	f.controller.Define(portsText)
	f.hosts[0].Up("uplink1")
	other := f.mustStartVM(0, 4, "p-b", "fixed")
	before := f.mustStartVM(0, 3, "p-a", "fixed")
	f.static("fixed", "p-a on esx0 up", "p-b on esx0 up")
	file := filepath.Join(t.TempDir(), "heddle-backup.yaml")
	f.backup(0, "export", file)
	f.backup(0, "diff", file)
	f.controller.End(syscall.SIGKILL)

	f.controller = realhost.NewController(t, f.network, "10.0.0.100:7412")
	f.controller.Start()
	if out := f.backup(1, "diff", file); !strings.Contains(out, "dvs/fixed") {
		t.Errorf("what an empty cluster lacks: %s", out)
	}
	out := f.backup(0, "import", file, "--wait", "0s")
	if !strings.Contains(out, "2 of them bound") {
		t.Errorf("the import: %s", out)
	}
	f.backup(0, "diff", file)
	f.controller.Join(f.hosts[1].Host, "esx0", rack)
	f.inState("esx0", "up")
	f.hosts[1].Up("uplink1")
	if p := f.mustStartVM(1, 3, "p-a", "fixed"); p.PortID != before.PortID || p.PortID == "" || p.Conflict != "" {
		t.Errorf("the port has number %q and conflict %q, it was %s", p.PortID, p.Conflict, before.PortID)
	}
	if p := f.mustStartVM(1, 4, "p-b", "fixed"); p.PortID != other.PortID || p.Conflict != "" {
		t.Errorf("the other port has number %q and conflict %q, it was %s", p.PortID, p.Conflict, other.PortID)
	}
	f.static("fixed", "p-a on esx0 up", "p-b on esx0 up")
}

// backup runs a command of heddle backup that ends with a status, and gives what it prints.
func (f *fleet) backup(want int, args ...string) string {
	f.t.Helper()
	out, errs, status := f.controller.Heddle(append([]string{"backup"}, args...)...)
	if status != want {
		f.t.Fatalf("heddle backup %v: status %d, want %d\n%s%s", args, status, want, out, errs)
	}
	return out
}
