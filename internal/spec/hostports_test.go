package spec

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

const hostPortsDefinition = `
switches:
- name: dvs
  mtu: 9000
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: mgmt}
  - {name: vmotion, vlan: {access: 50}}
  - {name: db, binding: static, overrides: {security: true}}
templates:
- name: racked
  labels: {rack: a}
  switches:
  - {name: dvs, uplinks: [{name: uplink1, device: eno1}]}
  hostPorts:
  - {name: vmk0, switch: dvs, portGroup: mgmt, pools: [192.0.2.10-192.0.2.99/24, "2001:db8::/64"]}
  - {name: vmk1, switch: dvs, portGroup: vmotion, pools: [198.51.100.0/24], mtu: 9000}
  - {name: vmk2, switch: dvs, portGroup: vmotion, pools: [198.51.100.0/24]}
hosts:
- name: esx1
  hostPorts:
  - {name: vmk0, switch: dvs, portGroup: mgmt, mac: "02:00:00:00:00:01", addresses: [192.0.2.1/24]}
- name: esx2
  hostPorts:
  - {name: vmk0, switch: dvs, portGroup: mgmt, mac: "02:00:00:00:00:02", addresses: [192.0.2.2/24]}
ports:
- {id: "33", switch: dvs, portGroup: db, name: backup, security: {promiscuous: accept}, blocked: true}
`

func TestDefinition_HostPortsAndSettingsOfPorts(t *testing.T) {
	d, err := ParseDefinition("fleet.yaml", []byte(hostPortsDefinition))
	if err != nil {
		t.Fatal(err)
	}
	if p := d.Hosts[0].HostPorts[0].Port("192.0.2.77/24"); p.Role != Host || len(p.Addresses) != 2 ||
		p.Addresses[1] != "192.0.2.77/24" || d.Ports[0].Security.Promiscuous != Accept {
		t.Errorf("definition %+v", d)
	}
	text, err := FormatDefinition(d)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseDefinition("again.yaml", text); err != nil || fmt.Sprint(again.Hosts) != fmt.Sprint(d.Hosts) {
		t.Errorf("written and read again: %v\n%s", err, text)
	}
}

func TestDefinition_FaultsOfHostPortsAndSettings(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"address in a template": {"mtu: 9000}\n  - {name: vmk2", "addresses: [198.51.100.9/24]}\n  - {name: vmk2",
			"templates[racked].hostPorts[vmk1].addresses: [198.51.100.9/24]: a template is for many hosts"},
		"MAC in a template": {"mtu: 9000}\n  - {name: vmk2", "mac: \"02:00:00:00:00:03\"}\n  - {name: vmk2",
			"templates[racked].hostPorts[vmk1].mac: 02:00:00:00:00:03: a template is for many hosts"},
		"address in a pool": {"192.0.2.2/24", "192.0.2.12/24", "hosts[esx2].hostPorts[vmk0].addresses[0]: " +
			"192.0.2.12/24: lies in pool 192.0.2.10-192.0.2.99/24 of host port vmk0 of template racked"},
		"address twice": {"192.0.2.2/24", "192.0.2.1/24", "port vmk0 of host esx1 has this address"},
		"pools overlap": {"[198.51.100.0/24]}\nhosts", "[198.51.100.8/29]}\nhosts", "overlaps pool 198.51.100.0/24"},
		"pool twice":    {"[198.51.100.0/24]}\nhosts", "[198.51.100.0/24, 198.51.100.0/24]}\nhosts", "listed twice"},
		"no pool":       {"[198.51.100.0/24]}\nhosts", "[198.51.100.1/24]}\nhosts", "a pool is a network or a range"},
		"name twice":    {"{name: vmk2, ", "{name: vmk1, device: x, ", "another port has this name"},
		"device twice":  {"{name: vmk2, ", "{name: vmk2, device: vmk1, ", "port vmk1 uses this device already"},
		"device of uplink": {"{name: vmk2, ", "{name: vmk2, device: eno1, ",
			"uplink uplink1 of switch dvs uses this device already"},
		"no such group": {"portGroup: vmotion, pools: [198.51.100.0/24]}", "portGroup: vmotoin}",
			"switch dvs has no such port group; did you mean vmotion?"},
		"no such switch": {"{name: vmk2, switch: dvs", "{name: vmk2, switch: dvz", "there is no such switch"},
		"larger MTU":     {"mtu: 9000}\n  - {name: vmk2", "mtu: 9000}\n  - {mtu: 9001, name: vmk2", "an MTU is"},
		"no number":      {`id: "33"`, `id: "033"`, "ports[033].id: 033: the number of a static port is needed"},
		"ephemeral":      {"portGroup: db, name", "portGroup: mgmt, name", "its ports are ephemeral"},
		"not allowed":    {"blocked: true}", "vlan: {access: 9}}", "port group db does not let its ports set vlan"},
		"number twice": {"blocked: true}", "blocked: true}\n- {id: 33, switch: dvs, portGroup: db}",
			"listed already"},
		"long description": {"name: backup", "description: " + strings.Repeat("x", 256), "at most 255 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(hostPortsDefinition, c.from, c.to, 1)
			if text == hostPortsDefinition {
				t.Fatal("the case changes nothing")
			}
			_, err := ParseDefinition("fleet.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestPool(t *testing.T) {
	for text, want := range map[string]struct{ first, last, as string }{
		"192.0.2.0/24":               {"192.0.2.1", "192.0.2.254", "192.0.2.0/24"},
		"192.0.2.0/30":               {"192.0.2.1", "192.0.2.2", "192.0.2.0/30"},
		"192.0.2.4/31":               {"192.0.2.4", "192.0.2.5", "192.0.2.4/31"},
		"192.0.2.4/32":               {"192.0.2.4", "192.0.2.4", "192.0.2.4/32"},
		"192.0.2.10-192.0.2.99/24":   {"192.0.2.10", "192.0.2.99", "192.0.2.10-192.0.2.99/24"},
		"192.0.2.1-192.0.2.254/24":   {"192.0.2.1", "192.0.2.254", "192.0.2.0/24"},
		"2001:db8::/126":             {"2001:db8::1", "2001:db8::3", "2001:db8::/126"},
		"2001:db8::a-2001:db8::f/64": {"2001:db8::a", "2001:db8::f", "2001:db8::a-2001:db8::f/64"},
		"192.0.2.0-192.0.2.9/24":     {}, "192.0.2.9-192.0.2.255/24": {}, "192.0.2.9-192.0.2.1/24": {},
		"192.0.2.1-192.0.3.1/24": {}, "192.0.2.1-2001:db8::1/64": {}, "192.0.2.1/24": {}, "192.0.2.0": {}, "": {},
		"224.0.0.0/24": {}, "0.0.0.0/32": {}, "::ffff:192.0.2.0/120": {}, "fe80::1%eth0-fe80::2/64": {},
	} {
		t.Run(text, func(t *testing.T) {
			p, err := ParsePool(text)
			if (err == nil) != (want.as != "") {
				t.Fatalf("%v %v", p, err)
			}
			if err != nil {
				return
			}
			if p.First.String() != want.first || p.Last.String() != want.last || p.String() != want.as {
				t.Errorf("%s to %s, written %s", p.First, p.Last, p)
			}
			taken := map[netip.Addr]bool{p.First: true}
			if a, ok := p.Free(func(a netip.Addr) bool { return taken[a] }); ok != (p.First != p.Last) ||
				ok && a != p.First.Next() {
				t.Errorf("free is %s %v", a, ok)
			}
		})
	}
}
