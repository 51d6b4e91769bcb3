package host

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"heddle/internal/agent/removal"
	"heddle/internal/api"
	"heddle/internal/test/testkit/pty"
)

// Down says what it cuts off; on a terminal it asks first, and no answer but yes removes anything.
func TestDownListsWhatItCutsOffAndAsks(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)

	var what removal.Removal
	if err := json.Unmarshal([]byte(h.must("down", "--dry-run", "-o", "json")), &what); err != nil {
		t.Fatal(err)
	}
	if len(what.Switches) != 1 || strings.Join(what.Switches[0].Ports, " ") != "vm1/eth0 vmk0" ||
		len(what.Interfaces) != 1 ||
		what.Interfaces[0].Device != "vmk0" || len(what.Interfaces[0].Addresses) != 2 || !what.DryRun {
		t.Errorf("a dry run lists %+v", what)
	}
	p := pty.Open(t, 100, 20)
	ended := h.onTerminal(p, exec.Command("heddle", "down"))
	p.Await("the question", func(s string) bool {
		return strings.Contains(s, "2 ports lose their connection (vm1/eth0, vmk0)") &&
			strings.Contains(s, "Remove all of this? [y/N]")
	})
	p.Type("\n")
	if err := <-ended; err == nil {
		t.Error("the answer was no, and the status is 0")
	}
	if !pings(vm, "192.0.2.1") {
		t.Error("a dry run, or the answer no, cut the guest off")
	}
	p = pty.Open(t, 100, 20)
	ended = h.onTerminal(p, exec.Command("heddle", "down"))
	p.Await("the question", func(s string) bool { return strings.Contains(s, "[y/N]") })
	p.Type("y\n")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if reaches(vm, "192.0.2.1") {
		t.Error("the switch is still there")
	}
	if out := h.must("down"); !strings.Contains(out, "nothing is cut off") {
		t.Errorf("a second time:\n%s", out)
	}
}
