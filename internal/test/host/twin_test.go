package host

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/test/testkit/cable"
)

// twinPorts are two guests of one VLAN and two of another one, behind one uplink.
const twinPorts = `switches:
- name: lan
  uplinks: [{name: u1, device: eno1}]
  portGroups:
  - {name: office, vlan: {access: 10}}
  - {name: other, vlan: {access: 20}}
ports:
- {name: twin, switch: lan, portGroup: office, device: vnet0}
- {name: announced, switch: lan, portGroup: office, device: vnet1}
- {name: elsewhere, switch: lan, portGroup: other, device: vnet2}
- {name: listener, switch: lan, portGroup: other, device: vnet3}
`

// TestS196_AStationOutsideWithAPortsMACIsNamed: by an event and by the advice, with the port and the uplink, although
// the port's guest sends what is refused all the time. Not what announces a guest in its name, nor a station of another
// VLAN, nor one whose MAC nobody has: they speak for longer before the twin is told of.
func TestS196_AStationOutsideWithAPortsMACIsNamed(t *testing.T) {
	h := newHost(t)
	h.ip("link add eno1 type veth peer name wire")
	h.ip("link set wire up")
	guest := h.guest("vnet0", "02:00:00:00:00:0a", "192.0.2.1/24")
	h.guest("vnet1", "02:00:00:00:00:0b", "192.0.2.2/24")
	h.guest("vnet2", "02:00:00:00:00:0c", "192.0.2.3/24")
	h.guest("vnet3", "02:00:00:00:00:0d", "192.0.2.4/24")
	h.start("--config", h.file("heddle.yaml", twinPorts))
	for _, name := range []string{"twin", "announced", "elsewhere", "listener"} {
		h.awaitPort(name, "up")
	}
	wire, eth0 := cable.Open(t, h.ns, "wire"), cable.Open(t, guest, "eth0")
	announces := cable.Frame(cable.Broadcast(), cable.MAC(11), 10, "in the other one's name")
	copy(announces[16:], []byte{0x80, 0x35}) // RARP
	told := func() (n int) {
		for _, e := range h.told() {
			if e.Kind != event.Conflict {
				continue
			}
			n++
			if e.Port != "twin" || e.Uplink != "u1" || e.MAC != "02:00:00:00:00:0a" ||
				!strings.Contains(e.Text, "uplink u1") {
				t.Errorf("%+v", e)
			}
		}
		return n
	}
	// What must not be told began 2 s before the twin, and is sent right before it each time. So it would be told
	// before the twin is.
	began := time.Now()
	h.await("the twin is told of", func() bool {
		wire.Send(announces)
		wire.Send(cable.Frame(cable.Broadcast(), cable.MAC(12), 10, "a namesake in another VLAN"))
		wire.Send(cable.Frame(cable.Broadcast(), cable.MAC(99), 10, "from somebody else"))
		if time.Since(began) > 2*time.Second {
			eth0.Send(cable.Frame(cable.Broadcast(), cable.MAC(98), 0, "forged"))
			wire.Send(cable.Frame(cable.Broadcast(), cable.MAC(10), 10, "from the twin"))
		}
		return told() > 0
	})
	if !bytes.Contains([]byte(h.must("port", "show", "twin", "-o", "json")), []byte("forged-transmit")) {
		t.Error("nothing that the guest sent was refused")
	}
	out, _, status := h.heddle("advise", "-o", "json")
	if status != 1 || !strings.Contains(out, "mac-outside") || !strings.Contains(out, "of port twin, too") {
		t.Errorf("the advice has status %d:\n%s", status, out)
	}
}
