package host

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
)

// The history survives a kill; a rollback brings the earlier configuration back as a version of its own, and a restart
// keeps it.
func TestConfigurationsAreKeptComparedAndBroughtBack(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGroups)
	h.start("--config", file)
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	h.must("apply", "-f", h.file("new.yaml", strings.Replace(twoGroups, "access: 100", "access: 101", 1)))
	// no new version
	h.must("apply", "-f", h.file("new.yaml", strings.Replace(twoGroups, "access: 100", "access: 101", 1)))
	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	if out := h.must("config", "show"); !strings.Contains(out, "access: 101") {
		t.Errorf("the applied configuration:\n%s", out)
	}
	if out, _, status := h.heddle("config", "diff", file); status != 1 ||
		!strings.Contains(out, "~ vlan.access: 101 → 100") {
		t.Errorf("diff: status %d\n%s", status, out)
	}
	h.must("config", "rollback")
	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	if p := h.port("vm1/eth0"); p.VLAN.String() != "access 100" {
		t.Errorf("after the rollback the port has VLAN %s", p.VLAN)
	}
	var list []api.AppliedConfig
	if err := json.Unmarshal([]byte(h.must("config", "history", "-o", "json")), &list); err != nil || len(list) != 3 {
		t.Fatalf("%v %+v", err, list)
	}
	for i, by := range []string{"start with " + file, "apply ", "config rollback 1"} {
		if list[i].Number != i+1 || !strings.HasPrefix(list[i].By, by) || list[i].Applied != (i == 2) ||
			list[i].At.IsZero() {
			t.Errorf("version %d: %+v", i+1, list[i])
		}
	}
	h.must("port", "move", "vm1/eth0", "--port-group", "other")
	if out, _, status := h.heddle("config", "diff", "--running"); status != 1 ||
		!strings.Contains(out, "portGroup: web → other") {
		t.Errorf("what commands changed: status %d\n%s", status, out)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != twoGroups {
		t.Errorf("the file was touched: %v\n%s", err, b)
	}
}
