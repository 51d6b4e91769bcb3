package host

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/diagnose"
)

// foreseeGuests has two guests whose flows are metered; %s are the security settings of their port group.
const foreseeGuests = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}, monitoring: {ipfix: true}%s}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
`

// A guest sends with a second MAC. The dry run of a change that rejects it names the port, the address and the frames,
// and says nothing of frames that go on; what it says is what the kernel then does.
func TestForesee_ADryRunNamesTheFramesThatTheKernelThenDrops(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", fmt.Sprintf(foreseeGuests,
		", security: {forgedTransmits: accept, macLearning: {enabled: true}}"))
	a, b := h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24"), h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	h.start("--config", file)
	h.awaitPort("a", api.Up)
	h.awaitPort("b", api.Up)
	run(t, a, "ip link add mv0 link eth0 address 02:00:00:00:00:66 type macvlan mode bridge")
	run(t, a, "ip addr add 192.0.2.66/32 dev mv0")
	run(t, a, "ip link set mv0 up")
	run(t, a, "ip route add 192.0.2.11/32 dev mv0 src 192.0.2.66")
	run(t, b, "ip neigh replace 192.0.2.66 lladdr 02:00:00:00:00:66 dev eth0 nud permanent")
	if !pings(a, "192.0.2.11") || !pings(b, "192.0.2.10") {
		t.Fatal("guests do not reach each other")
	}
	rejecting := h.file("next.yaml", fmt.Sprintf(foreseeGuests, ""))
	var seen []diagnose.Loss
	h.await("the dry run names what would be dropped", func() bool {
		out := h.applied("-f", rejecting, "--dry-run")
		if out.Foreseen == nil {
			t.Fatal("the dry run does not say what would be dropped")
		}
		seen = out.Foreseen.Losses
		for _, l := range seen {
			if l.MAC.String() != "02:00:00:00:00:66" || l.Port != "a" || l.Cause.Reason != "forged-transmit" {
				t.Fatalf("also: %+v", l)
			}
			if l.Address.String() == "192.0.2.66" {
				return true
			}
		}
		return false
	})
	for _, l := range seen {
		if l.Frames == 0 || l.OfPort || l.VLAN.String() != "100" || l.PortGroup != "web" {
			t.Errorf("%+v", l)
		}
	}
	text := h.must("apply", "-f", rejecting, "--dry-run")
	for _, want := range []string{"would drop: port a (lab/web), from 02:00:00:00:00:66 192.0.2.66, VLAN 100: " +
		"forged-transmit, ", "security: {forgedTransmits: accept} at port group web of switch lab"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if out := h.applied("-f", file, "--dry-run"); len(out.Foreseen.Losses) != 0 || out.Foreseen.Looked == 0 {
		t.Errorf("the configuration that is active would lose: %+v", out.Foreseen)
	}

	if dropped := h.drops("a", "forged-transmit"); dropped != 0 {
		t.Fatalf("%d frames were dropped before", dropped)
	}
	h.must("apply", "-f", rejecting)
	if pings(a, "192.0.2.11") {
		t.Error("the second MAC still gets through")
	}
	if h.drops("a", "forged-transmit") == 0 {
		t.Error("the kernel drops nothing of what was foreseen")
	}
	run(t, a, "ip route del 192.0.2.11/32 dev mv0")
	if !pings(b, "192.0.2.10") {
		t.Error("what was not foreseen is lost")
	}
}

// drops is how many frames of a port were dropped for a reason.
func (h *host) drops(port, reason string) uint64 {
	h.t.Helper()
	for _, d := range h.stats(port).Drops {
		if d.Reason == reason {
			return d.Value
		}
	}
	return 0
}
