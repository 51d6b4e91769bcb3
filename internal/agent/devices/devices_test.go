package devices

import (
	"reflect"
	"strings"
	"testing"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

func TestSwitchEndNamesFitAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, device := range []string{"vmk0", "vmk1", "123456789012", "1234567890123", "1234567890124", "123456789012345",
		"äöüäöüä"} {
		end := SwitchEnd(device)
		if len(end) > hostdev.NameMax || !strings.HasPrefix(end, "sw-") {
			t.Errorf("%s: %q", device, end)
		}
		if other, dup := seen[end]; dup {
			t.Errorf("%s and %s are both %s", device, other, end)
		}
		seen[end] = device
	}
}

func TestD1_D2_FactsOfADevice(t *testing.T) {
	up := hostdev.End{MTU: 1500, AdminUp: true, Carrier: true}
	peer := hostdev.End{MTU: 1400, AdminUp: true, Carrier: true, MAC: plan.MAC{2, 0, 0, 0, 0, 9}, Promiscuous: true}
	down := peer
	down.AdminUp = false
	for _, c := range []struct {
		what string
		d    hostdev.Device
		want plan.Fact
	}{
		{"tap", hostdev.Device{Kind: hostdev.Tap, End: up}, plan.Fact{Up: true, MTU: 1500}},
		{"veth seen", hostdev.Device{Kind: hostdev.Veth, End: up, Peer: hostdev.Peer{Index: 2, Seen: true, End: peer}},
			plan.Fact{Up: true, MTU: 1400, SeenMAC: peer.MAC, Promiscuous: plan.AsksYes}},
		{"guest down, carrier not yet gone", hostdev.Device{Kind: hostdev.Veth, End: up,
			Peer: hostdev.Peer{Index: 2, Seen: true, End: down}},
			plan.Fact{MTU: 1400, SeenMAC: peer.MAC, Promiscuous: plan.AsksYes}},
		{"veth not seen", hostdev.Device{Kind: hostdev.Veth, End: up, Peer: hostdev.Peer{Index: 2}},
			plan.Fact{Up: true, MTU: 1500}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := PortFact(c.d); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
			}
		})
	}
}

func TestK13_PeerRedirectOnlyIntoAnotherNamespace(t *testing.T) {
	for _, c := range []struct {
		d    hostdev.Device
		want bool
	}{
		{hostdev.Device{Kind: hostdev.Veth, Peer: hostdev.Peer{Index: 2, Elsewhere: true}}, true},
		{hostdev.Device{Kind: hostdev.Veth, Peer: hostdev.Peer{Index: 2}}, false},
		{hostdev.Device{Kind: hostdev.Tap}, false},
	} {
		if got := Attachment(c.d).PeerRedirect; got != c.want {
			t.Errorf("%+v: %v", c.d, got)
		}
	}
}

// If a VLAN interface is given as a port, the error says what to use in its place.
func TestVLANInterfaceIsNoVNIC(t *testing.T) {
	d := hostdev.Device{Name: "eno1.100", Kind: hostdev.Other, Driver: "vlan"}
	if why := Unusable(d, spec.VNIC); !strings.Contains(why.Text(),
		"make the device under it an uplink, and set the VLAN at the port group") {
		t.Error(why)
	}
}

// A device that gets frames for its own MAC alone, or none with Ethernet headers, can't be an uplink.
func TestS167_DevicesThatCannotBeAnUplinkAreNamed(t *testing.T) {
	for _, c := range []struct {
		d    hostdev.Device
		want problem.Code
	}{
		{hostdev.Device{Name: "mv0", Kind: hostdev.Other, Driver: "macvlan", Shared: true}, problem.SharedDevice},
		{hostdev.Device{Name: "iv0", Kind: hostdev.Other, Driver: "ipvlan", Shared: true}, problem.SharedDevice},
		{hostdev.Device{Name: "mv1", Kind: hostdev.Other, Driver: "macvlan"}, ""}, // it passes everything through
		{hostdev.Device{Name: "wg0", Kind: hostdev.Other, Driver: "wireguard", NotEthernet: true}, problem.NotEthernet},
		{hostdev.Device{Name: "ppp0", Kind: hostdev.Other, NotEthernet: true}, problem.NotEthernet},
		{hostdev.Device{Name: "eno1", Kind: hostdev.Other}, ""},
	} {
		if why := Unusable(c.d, spec.Host); why.Code != c.want || c.want != "" && why.Text() == string(c.want) {
			t.Errorf("%s: %q", c.d.Name, why)
		}
	}
}
