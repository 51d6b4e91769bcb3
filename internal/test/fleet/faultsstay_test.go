package fleet

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
	"heddle/internal/test/testkit/powercut"
)

// Nor does one of these commands say that all is well, at the controller or on the host, of a host whose certificate
// has expired and cannot be renewed any more.
func TestS127_S128_S185_NoCommandSaysThatAllIsWellOfAHostWhoseCertificateStaysExpired(t *testing.T) {
	testkit.Long(t, "starts a controller and a host again by other clocks")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.inState("esx0", api.HostUp)
	later := time.Now().AddDate(0, 0, 300)
	f.controller.End(syscall.SIGTERM)
	f.restart(0, later)
	f.controller.Clock = clockshift.Showing(later)
	f.controller.Start()
	f.hosts[0].Await("the host is told why", func() bool {
		m, err := f.hosts[0].Membership(t.Context())
		return err == nil && strings.Contains(m.Error, "it expired on ")
	})
	f.inState("esx0", api.HostDisconnected)
	f.namedByAll(t, "esx0")
	for _, args := range [][]string{{"status"}, {"doctor"}, {"advise"}} {
		if !f.fails(0, args...) {
			t.Errorf("heddle %v says on the host that all is well", args)
		}
	}
}

// Nor does one where the controller's disk becomes one that cannot be written, as when its medium fails.
func TestS127_S128_S187_NoCommandSaysThatAllIsWellWhereAControllersDiskFails(t *testing.T) {
	testkit.Long(t, "makes a file system and has it fail")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	d := powercut.NewFailing(t, f.controller.DataDir(), 400<<20)
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.inState("esx0", api.HostUp)
	d.Fail(t)
	for _, args := range [][]string{{"status"}, {"doctor"}, {"host", "list"}, {"advise"}} {
		out, errs, status := f.controller.Heddle(append(args, "--controller", f.controller.Socket())...)
		// The list of hosts itself is right, so that it has the status 0 and names the fault below [S187].
		listed := args[0] == "host" && strings.Contains(errs+out, "wrong: data-directory: nothing can be written in ")
		if said := out + errs; status == 0 && !listed || strings.Contains(said, "all is well") ||
			strings.Contains(said, "No problems found") {
			t.Errorf("heddle %v has the status %d:\n%s", args, status, said)
		}
	}
	// Only now: etcd may end by what it cannot keep, and a controller that has ended does not say that all is well.
	changed := strings.Replace(fleetText, "access: 20", "access: 21", 1)
	if _, refused := f.tries(api.Define{Content: changed}); refused == "" {
		t.Error("a change is taken that cannot be kept")
	}
}
