package trace

import (
	"strings"
	"testing"

	"heddle/internal/abi"
)

// What is behind a device is said in its own words: a guest's adapter, the host's interface, the physical network.
func TestADownReceiverAndAnMTUAreExplainedByKind(t *testing.T) {
	h := host(t, config("uplinks: [{name: u1, device: p1}]", "{name: web}", "vm1 web", "vmk2 web role: host"))
	e := NewExplainer(h)
	for _, c := range []struct {
		at, reason, why, change string
	}{
		{"vm1", "receiver-down", "its device dev-vm1, or the guest's adapter behind it, is down", "Start the guest"},
		{"vmk2", "receiver-down", "the host's interface vmk2 is down", "Bring the interface up."},
		{"u1", "receiver-down", "its device p1 is down or has no link",
			"look at the cable and the port of the physical"},
		{"vm1", "mtu-exceeded", "the MTU of device dev-vm1, or of the guest's adapter behind it, is 1500",
			"guest's adapter"},
		{"vmk2", "mtu-exceeded", "the MTU of the host's interface vmk2 is 1500", "raise the interface's"},
		{"u1", "mtu-exceeded", "the MTU of the uplink's device p1 is 1500", "that of the physical switch's port"},
	} {
		t.Run(c.reason+" "+c.at, func(t *testing.T) {
			reason := map[string]abi.Reason{"receiver-down": abi.ReasonReceiverDown,
				"mtu-exceeded": abi.ReasonMTUExceeded}
			known := Known{}
			if c.reason == "mtu-exceeded" {
				h.Plan.Switches[0].MTU, known.Layer3 = 9000, 1501
			}
			got, _ := e.Explain(id(c.at), reason[c.reason], known)
			if !strings.Contains(got.Why, c.why) || !strings.Contains(got.Change, c.change) {
				t.Errorf("%q, change %q", got.Why, got.Change)
			}
		})
	}
}
