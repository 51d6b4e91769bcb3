package fabric

import (
	"strings"
	"testing"
	"time"
)

// TestS179_TheFirstVerdictIsTheLastOne: what passes one way alone is never first said to lack a VLAN, which somebody
// would then add to a trunk.
func TestS179_TheFirstVerdictIsTheLastOne(t *testing.T) {
	for _, host := range []int{1, 2, 3, 4} {
		n := racks(t, 4, 0, 10, 20, 30)
		n.run(minute)
		n.jack(host, 1).deaf = true
		found := false
		for range 30 {
			for _, f := range n.run(2 * time.Second).Findings {
				found = true
				if f.Code != WayOneWay {
					t.Errorf("host %d: %s: %s → %s", host, f.Code, f.Text, f.Remedy)
				}
			}
		}
		if !found {
			t.Errorf("host %d: nothing found", host)
		}
	}
}

// TestS179_SwappedCablesArePossible: uplinks in separate VLANs at which nothing passes are one finding. A swap of their
// cables is named as a possibility alone: both may lack their VLANs, and the remedy says at which ports.
func TestS179_SwappedCablesArePossible(t *testing.T) {
	n := racks(t, 4)
	n.cables = nil
	for i := range n.members {
		vlan := map[string]uint16{"uplink1": 10, "uplink2": 20}[n.members[i].Uplink]
		n.members[i].VLANs = []uint16{vlan}
	}
	if v := n.run(minute); len(v.Findings) > 0 {
		t.Fatalf("before: %q", said(v))
	}
	a, b := n.jack(2, 1), n.jack(2, 2)
	swapped, lacking := [2]string{b.sw, a.sw}, [2]string{"nowhere", "elsewhere"}
	for _, to := range [][2]string{swapped, lacking} {
		a.sw, b.sw = to[0], to[1]
		list := said(n.run(minute))
		if len(list) != 1 || !strings.HasPrefix(list[0], "cables-swapped: nothing passes at h2/uplink1 (VLAN 10), nor "+
			"at h2/uplink2 (VLAN 20)") || !strings.Contains(list[0], "may be swapped") ||
			!strings.Contains(list[0], "let VLAN 10 pass at port 2 of tor-a, and VLAN 20 at port 2 of tor-b") {
			t.Errorf("%v: %q", to, list)
		}
	}
	a.sw, b.sw = "nowhere", "tor-b"
	list := said(n.run(minute))
	if len(list) != 1 || strings.Contains(list[0], "swapped") || !strings.Contains(list[0], "h2/uplink1") {
		t.Errorf("one port alone: %q", list)
	}
}

// TestS179_HostsThatAreAwayAreNamed: endpoints of hosts that are not connected are named as such.
func TestS179_HostsThatAreAwayAreNamed(t *testing.T) {
	net := tunnelNet{number: 3, dead: map[int]bool{1: true, 2: true}}
	var list []Tunnel
	for _, one := range net.found() {
		if one.Name == "h0" { // the others say nothing any more
			one.Away = one.PeerName == "h1"
			list = append(list, one)
		}
	}
	found := Tunnels(list)
	if len(found) != 1 || !strings.Contains(found[0].Remedy, "heddle host list") ||
		!strings.Contains(found[0].Text, "; h1 (10.0.0.1) is not connected to the controllers") ||
		strings.Contains(found[0].Text, "h2 (10.0.0.2) is not") {
		t.Errorf("%+v", found)
	}
}
