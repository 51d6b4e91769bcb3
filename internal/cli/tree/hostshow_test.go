package tree

import (
	"encoding/json"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/cli"
	"heddle/internal/cli/hosts"
)

// One host is shown by what its controller knows and what it says itself; of one that is away, what the controller
// knows. A name that is none is told from one that does not answer.
func TestHostShow_ShowsOneHostOfACluster(t *testing.T) {
	f := newFleetStand(t, map[string]*standIn{"esx1": {}, "esx2": nil})
	f.ports = []*controllerv1.FleetPort{{Host: "esx1", Name: "vm1", State: "up"}, {Host: "esx1", Name: "vm2",
		State: "down"}, {Host: "esx1", Name: "vm3", State: "up"}}
	t.Run("table", func(t *testing.T) {
		out, errs, status := f.run("host", "show", "esx1")
		for _, want := range []string{"host          esx1\n", "state         up, since ",
			"ports         3, 2 up, 1 down",
			"the newest is 18 (heddle host sync esx1 --dry-run)", "tunnels       none is probed"} {
			if status != cli.ExitOK || !strings.Contains(out, want) {
				t.Errorf("status %d, no %q in %s%s", status, want, out, errs)
			}
		}
		for line := range strings.Lines(out) {
			if n := len(line) - 1; n > 100 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	})
	t.Run("away", func(t *testing.T) {
		out, _, status := f.run("host", "show", "esx2")
		if status != cli.ExitOK || !strings.Contains(out, "state         disconnected") ||
			!strings.Contains(out, "tunnels       not known: it is not connected to a controller") {
			t.Errorf("status %d: %s", status, out)
		}
	})
	t.Run("json", func(t *testing.T) {
		out, errs, status := f.run("host", "show", "esx1", "-o", "json")
		var s hosts.HostSummary
		if err := json.Unmarshal([]byte(out), &s); err != nil || status != cli.ExitOK || s.Host.Name != "esx1" ||
			s.Newest != 18 || len(s.Ports) != 3 || s.Network == nil {
			t.Errorf("status %d, %v: %+v%s", status, err, s, errs)
		}
	})
	t.Run("no such host", func(t *testing.T) {
		_, errs, status := f.run("host", "show", "esx9")
		if status != cli.ExitFailure || !strings.Contains(errs, `no host "esx9": see heddle host list`) {
			t.Errorf("status %d: %s", status, errs)
		}
	})
}
