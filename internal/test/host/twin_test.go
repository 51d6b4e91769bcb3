package host

import (
	"strings"
	"testing"

	"heddle/internal/observe/event"
	"heddle/internal/test/testkit/cable"
)

// TestS196_AStationOutsideWithAPortsMACIsNamed: by an event and by the advice, with the port and the uplink. Another
// station beside it is not, nor what announces the guest in its name.
func TestS196_AStationOutsideWithAPortsMACIsNamed(t *testing.T) {
	h := newHost(t)
	h.ip("link add eno1 type veth peer name wire")
	h.ip("link set wire up")
	h.guest("vnet0", "02:00:00:00:00:0a", "192.0.2.1/24")
	h.guest("vnet1", "02:00:00:00:00:0b", "192.0.2.2/24")
	h.start("--config", h.file("heddle.yaml", "switches: [{name: lan, uplinks: [{name: u1, device: eno1}], "+
		"portGroups: [{name: office}]}]\nports:\n- {name: twin, switch: lan, portGroup: office, device: vnet0}\n"+
		"- {name: other, switch: lan, portGroup: office, device: vnet1}\n"))
	wire := cable.Open(t, h.ns, "wire")
	announces := cable.Frame(cable.Broadcast(), cable.MAC(11), 0, "in the other one's name")
	announces[12], announces[13] = 0x80, 0x35 // RARP
	told := func(port string) (n int) {
		for _, e := range h.told() {
			if e.Kind == event.Conflict && e.Port == port {
				n++
				if e.Uplink != "u1" || e.MAC != "02:00:00:00:00:0a" || !strings.Contains(e.Text, "uplink u1") {
					t.Errorf("%+v", e)
				}
			}
		}
		return n
	}
	h.await("the twin is told of", func() bool {
		wire.Send(cable.Frame(cable.Broadcast(), cable.MAC(10), 0, "from the twin"))
		wire.Send(cable.Frame(cable.Broadcast(), cable.MAC(99), 0, "from somebody else"))
		wire.Send(announces)
		return told("twin") > 0
	})
	if told("other") > 0 {
		t.Error("an announcement in the name of a guest is taken for another station")
	}
	out, _, status := h.heddle("advise", "-o", "json")
	if status != 1 || !strings.Contains(out, "mac-outside") || !strings.Contains(out, "of port twin, too") {
		t.Errorf("the advice has status %d:\n%s", status, out)
	}
}
