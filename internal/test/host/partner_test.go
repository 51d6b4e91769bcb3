package host

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/uplinks/lacp"
)

// bundleFile has two uplinks, and a place for their LAG and team.
const bundleFile = `
switches:
- name: lab
  uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}]
  LAG
  portGroups: [{name: web}]
`

// lacpdu is what a switch sends at a port of a bundle to which nobody answers.
func lacpdu(port uint16) []byte {
	to, from := lacp.Destination, plan.MAC{2, 0, 0, 0, 0x98, byte(port)}
	system := lacp.System{Priority: 32768, MAC: plan.MAC{2, 0, 0, 0, 0x99, 0x99}}
	actor := lacp.Info{System: system, Key: 15, Port: lacp.Port{Priority: 255, Number: port},
		State: lacp.Activity | lacp.Aggregation}
	body := lacp.PDU{Actor: actor}.Encode()
	return append(append(append([]byte{}, to[:]...), from[:]...), append([]byte{0x88, 0x09}, body...)...)
}

// The commonest mistake of those who come from vSphere: the ports of the physical switch are a channel with LACP, and
// the uplinks are in no LAG. It is named at both uplinks, and nothing says that all is well.
func TestS141_LACPAtUplinksInNoLAGIsAProblem(t *testing.T) {
	h := newHost(t)
	wire := h.wired(2)
	file := h.file("heddle.yaml", strings.ReplaceAll(bundleFile, "LAG", ""))
	h.start("--config", file)
	for _, u := range []string{"uplink1", "uplink2"} {
		h.await(u+" is up", func() bool { return h.uplink(u).State == api.Up && h.uplink(u).Reason == "" })
	}
	ends := []*cable.End{cable.Open(t, wire, "far1"), cable.Open(t, wire, "far2")}
	speak := func() {
		for i, e := range ends {
			e.Send(lacpdu(uint16(i + 1)))
		}
	}
	for i, u := range []string{"uplink1", "uplink2"} {
		h.await(u+" says that LACP is spoken", func() bool {
			speak()
			return h.uplink(u).ReasonCode == problem.LACPWithoutLAG
		})
		want := "lacp: the other end speaks it (32768,02:00:00:00:99:99 key 15), and the uplink is in no LAG"
		if got := h.uplink(u); got.Reason != want || got.State != api.Up {
			t.Errorf("uplink %d is %s: %q", i+1, got.State, got.Reason)
		}
	}
	out, _, status := h.heddle("status")
	if status != 1 || strings.Contains(out, "all is well") || !strings.Contains(out, "lacp-without-lag") {
		t.Errorf("status %d:\n%s", status, out)
	}
	out, _, status = h.heddle("advise")
	for _, want := range []string{"lacp-without-lag", "uplink1, uplink2: lacp: the other end speaks it",
		"lags: [{name: lag1, uplinks: [uplink1, uplink2]}]"} {
		if status != 1 || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("advise has status %d and not %q:\n%s", status, want, out)
		}
	}

	// What advise says helps.
	h.must("apply", "-f", h.file("lag.yaml", strings.ReplaceAll(bundleFile, "LAG",
		"lags: [{name: lag1, uplinks: [uplink1, uplink2]}]\n  defaults: {teaming: {active: [lag1]}}")))
	for _, u := range []string{"uplink1", "uplink2"} {
		h.await(u+" has the partner", func() bool {
			speak()
			got := h.uplink(u)
			return got.LAG != nil && got.LAG.Partner != nil && got.LAG.Partner.Key == 15 &&
				got.ReasonCode != problem.LACPWithoutLAG
		})
	}
}
