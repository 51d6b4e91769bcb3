package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/test/testkit/realhost"
)

// link sets the physical network's end of a host's device up or down.
func (f *fleet) link(n int, device string, up bool) {
	f.t.Helper()
	inside(f.t, f.network, func() error {
		l, err := netlink.LinkByName(fmt.Sprintf("%s-%d", device, n))
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(l)
		}
		return netlink.LinkSetDown(l)
	})
}

// A host that is connected, and whose guests are cut off from the physical network, is down, with why; events and the
// controller's health say so as well, and it ends with the fault.
func TestLookingAtTheFleet_AHostThatIsDown(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	f.allUp()
	f.link(1, "eno2", false)
	f.inState("esx1", api.HostDown)
	out, errs, status := f.controller.Heddle("host", "list")
	const why = "no uplink of switch dvs is up: uplink1 (eno2): "
	if !strings.Contains(out, "esx1  down ") || !strings.Contains(out, why) || strings.Count(out, " up ") != 1 ||
		errs != "" || status != 0 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	out, _, status = f.controller.Heddle("status", "--controller", f.controller.Socket())
	if status != 1 || !strings.Contains(out, "1 down, 1 up") ||
		!strings.Contains(out, "1 of 2 cut off from the physical network with all guests: esx1 ("+why) {
		t.Errorf("status %d\n%s", status, out)
	}
	out, _, _ = f.controller.Heddle("events", "--no-follow", "--kind", "isolated")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, "  esx1  isolated       dvs: "+why) {
		t.Errorf("events:\n%s", out)
	}
	if out := f.controller.Define(strings.Replace(fleetText, "access: 20", "access: 30", 1)); len(out.Waiting) > 0 {
		t.Errorf("a host that is down has a change active: %+v", out.Waiting)
	}
	f.link(1, "eno2", true)
	f.inState("esx1", api.HostUp)
	f.hosts[0].must("uplink", "block", "uplink1", "--switch", "dvs", "--force")
	f.inState("esx0", api.HostWarning)
}

// audited makes sure that a controller lists what was done at all of these, in the order of time.
func audited(t *testing.T, asked *realhost.Controller, status int, errs string, at []*realhost.Controller) {
	t.Helper()
	out, gotErrs, got := asked.Heddle("audit", "list", "--call", "CreateJoinToken", "-o", "json")
	var list api.Audit
	if err := json.Unmarshal([]byte(out), &list); err != nil || got != status || gotErrs != errs {
		t.Fatalf("%v: status %d, %s\n%s", err, got, gotErrs, out)
	}
	seen := map[string]bool{}
	for i, e := range list.Entries {
		if seen[e.Controller] = true; i > 0 && e.At.Before(list.Entries[i-1].At) {
			t.Errorf("an entry of %s comes after one of %s", e.At, list.Entries[i-1].At)
		}
	}
	if len(seen) != len(at) || len(list.Unreachable) != status {
		t.Errorf("entries of %v, missing are %v, want %d controllers", seen, list.Unreachable, len(at))
	}
	only, _, _ := asked.Heddle("audit", "list", "--at", "controller2")
	if strings.Contains(only, "CONTROLLER") || strings.Count(only, "CreateJoinToken") != 1 {
		t.Errorf("of one controller:\n%s", only)
	}
	table, _, _ := asked.Heddle("audit", "list")
	if !strings.Contains(table, "CONTROLLER") || !strings.Contains(table, "  controller2  ") ||
		strings.Contains(table, "hc1.") {
		t.Errorf("of all:\n%s", table)
	}
}
