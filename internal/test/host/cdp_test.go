package host

import (
	"encoding/hex"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit/cable"
)

// A switch that speaks CDP alone is known like one that speaks LLDP; CDP of a guest is not the neighbour's.
func TestS171_ACDPNeighbourIsShown(t *testing.T) {
	h := newHost(t)
	wire := h.wired(1)
	h.start("--config", h.file("heddle.yaml", `
switches:
- name: lab
  uplinks: [{name: uplink1, device: up1}]
  portGroups: [{name: web}]
`))
	h.await("the uplink is up", func() bool { return h.uplink("uplink1").State == api.Up })
	// As scapy makes it.
	frame, err := hex.DecodeString("" +
		"01000ccccccc02000000c15c007faaaa0300000c200002b4f9960001001e6c656166312e6578616d706c652e6f" +
		"726728464f4331323334290005000c494f532031352e3200060012636973636f2057532d433337353000030018" +
		"4769676162697445746865726e6574312f302f370004000800000028000a0006001400160011000000010101cc" +
		"0004c0000207")
	if err != nil {
		t.Fatal(err)
	}
	end := cable.Open(t, wire, "far1")
	tagged := append(append(append([]byte{}, frame[:12]...), 0x81, 0, 0, 10), frame[12:]...)
	end.Send(tagged) // forwarded, and so not from the other end of the cable
	h.await("the neighbour", func() bool {
		end.Send(frame)
		u := h.uplink("uplink1")
		return u.LLDP != nil && len(u.LLDP.Neighbours) == 1
	})
	n := h.uplink("uplink1").LLDP.Neighbours[0]
	if n.By != "cdp" || n.Chassis != "leaf1.example.org(FOC1234)" || n.Port != "GigabitEthernet1/0/7" || n.PVID != 20 ||
		n.Source != "02:00:00:00:c1:5c" {
		t.Errorf("%+v", n)
	}
	out := h.must("uplink", "show", "uplink1")
	for _, want := range []string{"leaf1.example.org(FOC1234) port GigabitEthernet1/0/7, by CDP", "untagged VLAN 20",
		"managed at 192.0.2.7"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("uplink show has not %q:\n%s", want, out)
		}
	}
}
