package agent

import (
	"slices"
	"testing"
)

const withHostPort = `switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}]
    portGroups: [{name: g}]
ports:
  - {name: vmk0, switch: lab, portGroup: g, role: host}
`

const withoutHostPort = `switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}]
    portGroups: [{name: g}]
`

// An outsider that asks for a host interface's address must get an answer from that interface alone, and a device that
// serves no host interface is left as it was (S96).
func TestS96_UplinkAnswersARPForItsOwnAddressesBesideHostInterfaces(t *testing.T) {
	r := newRig(t, withoutHostPort)
	r.dev.nic("eno1", 1500)
	r.settler.settle()
	if slices.Contains(r.dev.changes, "arp_ignore eno1 1") {
		t.Error("set without a host interface")
	}
	if err := r.apply(withHostPort); err != nil {
		t.Fatal(err)
	}
	if r.dev.arp["eno1"] != "1" || r.saved().Of(id("u1")).WasARPIgnore != "0" {
		t.Errorf("with a host interface: arp_ignore %q, written down %+v", r.dev.arp["eno1"], r.saved().Of(id("u1")))
	}
	r.dev.changes = nil
	r.settler.settle()
	if err := r.restart(withHostPort); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(r.dev.changes, "arp_ignore eno1 1") {
		t.Error("set again though it was set")
	}
	if err := r.apply(withoutHostPort); err != nil {
		t.Fatal(err)
	}
	if r.dev.arp["eno1"] != "0" || r.saved().Of(id("u1")).WasARPIgnore != "" {
		t.Errorf("after the host interface went: arp_ignore %q", r.dev.arp["eno1"])
	}
}

func TestOperatorsARPSettingIsKept(t *testing.T) {
	r := newRig(t, withHostPort)
	r.dev.nic("eno1", 1500)
	r.dev.arp["eno1"] = "2"
	r.settler.settle()
	if r.dev.arp["eno1"] != "2" || r.saved().Of(id("u1")).WasARPIgnore != "" {
		t.Errorf("arp_ignore %q", r.dev.arp["eno1"])
	}
}

func TestUplinkGivenBackWithItsARPSetting(t *testing.T) {
	r := newRig(t, withHostPort)
	r.dev.nic("eno1", 1500)
	r.settler.settle()
	if err := r.apply("switches: [{name: lab}]"); err != nil {
		t.Fatal(err)
	}
	if r.dev.arp["eno1"] != "0" {
		t.Errorf("arp_ignore %q", r.dev.arp["eno1"])
	}
}
