package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

const standbyTeam = `
switches:
  - name: lab
    uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}]
    defaults: {teaming: {policy: explicit, active: [uplink1], standby: [uplink2]}}
    portGroups: [{name: web, vlan: {access: 100}}]
ports:
  - {name: vm1, switch: lab, portGroup: web, device: port1, mac: "02:00:00:00:01:01"}
`

// sent is how many broadcasts an uplink was handed.
func (h *host) sent(uplink string) uint64 {
	h.t.Helper()
	var s api.Stats
	if err := json.Unmarshal([]byte(h.must("stats", uplink, "-o", "json")), &s); err != nil {
		h.t.Fatal(err)
	}
	for _, c := range s.Counters {
		if c.Name == "packetsOutBroadcast" {
			return c.Value
		}
	}
	h.t.Fatalf("uplink %s has no counter packetsOutBroadcast: %+v", uplink, s)
	return 0
}

func TestS45_LinkDownMovesPortsToTheStandbyAndBack(t *testing.T) {
	h := newHost(t)
	wire := testkit.NS(t, "wire")
	for _, n := range []string{"1", "2"} {
		h.ip("link add up" + n + " type veth peer name far" + n + " netns " + wire.Name)
		run(t, wire, "ip link set far"+n+" up")
	}
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.start("--config", h.file("heddle.yaml", standbyTeam))
	nobody := 100
	serves := func(uplink, other string) {
		t.Helper()
		h.await(uplink+" serves the port", func() bool { return slices.Equal(h.port("vm1").Uplinks, []string{uplink}) })
		before, idle := h.sent(uplink), h.sent(other)
		nobody++ // an address that was not asked for yet: the kernel asks for it at once
		_ = reaches(vm, fmt.Sprintf("192.0.2.%d", nobody))
		if after := h.sent(uplink); after == before {
			t.Errorf("no broadcast left by %s", uplink)
		}
		if after := h.sent(other); after != idle {
			t.Errorf("%d broadcasts left by %s, which is not in use", after-idle, other)
		}
	}
	serves("uplink1", "uplink2")
	run(t, wire, "ip link set far1 down")
	serves("uplink2", "uplink1")
	run(t, wire, "ip link set far1 up")
	serves("uplink1", "uplink2")
	run(t, wire, "ip link set far1 down")
	run(t, wire, "ip link set far2 down")
	h.await("no uplink serves the port", func() bool { return len(h.port("vm1").Uplinks) == 0 })
}
