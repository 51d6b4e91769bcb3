package reach

import (
	"strings"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

const base = `
switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}, {name: u3, device: eno3}, {name: u4, device: eno4}, {name: m1, device: eno5}]
    lags: [{name: lag1, uplinks: [u3, u4]}]
    portGroups:
      - {name: management, teaming: {active: [u1], standby: [lag1]}}
      - {name: other, teaming: {active: [u1], standby: [lag1]}}
      - {name: inner, teaming: {active: []}}
      - {name: web, vlan: {access: 10}, teaming: {active: [u2]}}
ports:
  - {name: vmk0, switch: lab, portGroup: management, role: host, mac: "02:00:00:00:00:01", addresses: [192.0.2.10/24], mtu: 1500}
  - {name: vmk1, switch: lab, portGroup: inner, role: host, addresses: [198.51.100.1/24]}
  - {name: bare, switch: lab, portGroup: management, role: host}
  - {name: vm, switch: lab, portGroup: web, device: tap0}
`

func resolved(t *testing.T, content string) *plan.Plan {
	t.Helper()
	cfg, err := spec.Parse("x.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// host has addresses of its own on the uplink device eno5 and on eno9, which no switch has yet.
func host() Host {
	return Host{
		Addressed: func(d string) bool { return d == "eno5" || d == "eno9" },
		MAC:       func(plan.PortID) plan.MAC { return plan.MAC{2, 0, 0, 0, 0, 9} },
	}
}

func TestS81_WhichChangesConcernTheHostsOwnAddresses(t *testing.T) {
	for _, c := range []struct{ what, from, to, want string }{
		{"nothing", "", "", ""},
		{"the VLAN of the management group", "{name: management, ", "{name: management, vlan: {access: 66}, ",
			"vmk0: vlan: none → access 66"},
		{"another group with other settings", "portGroup: management, role: host, mac",
			"portGroup: web, role: host, mac", "vmk0: vlan: none → access 10; teaming.active: u1 → u2; " +
				"teaming.standby: lag1 → none"},
		{"another group with the same settings", "portGroup: management, role: host, mac",
			"portGroup: other, role: host, mac", ""},
		{"a value moved to another level", "portGroups:", "defaults: {vlan: {none: true}}\n    portGroups:", ""},
		{"blocked", "{name: management, ", "{name: management, blocked: true, ", "vmk0: blocked: false → true"},
		{"security", "{name: management, ", "{name: management, security: {forgedTransmits: accept}, ",
			"vmk0: security.forgedTransmits: reject → accept"},
		{"metering alone", "{name: management, ", "{name: management, monitoring: {ipfix: true}, ", ""},
		{"its MAC", "00:01", "00:02", "vmk0: mac: 02:00:00:00:00:01 → 02:00:00:00:00:02"},
		{"its MTU", "mtu: 1500", "mtu: 1400", "vmk0: mtu: 1500 → 1400"},
		{"an address", "192.0.2.10/24", "192.0.2.11/24", "vmk0: address 192.0.2.10/24 is removed"},
		{"one more address", "[192.0.2.10/24]", "[192.0.2.10/24, 192.0.2.11/24]", ""},
		{"removed", "  - {name: vmk0, switch: lab, portGroup: management, role: host, mac: \"02:00:00:00:00:01\", " +
			"addresses: [192.0.2.10/24], mtu: 1500}\n", "", "vmk0: host port vmk0 is removed"},
		{"renamed, with its interface", "name: vmk0,", "name: mgmt, device: vmk0,", "vmk0: port: vmk0 → mgmt"},
		{"the device of its uplink", "device: eno1", "device: eno8", "vmk0: device of uplink u1: eno1 → eno8"},
		{"the VLANs of its uplink", "device: eno1", `device: eno1, vlans: ["5"]`,
			"vmk0: vlans of uplink u1: 0-4094 → 5"},
		{"its uplink blocked", "device: eno1", "device: eno1, blocked: true",
			"vmk0: blocked of uplink u1: false → true"},
		{"its uplink drained", "device: eno1", "device: eno1, drained: true",
			"vmk0: drained of uplink u1: false → true"},
		{"an uplink with the host's addresses, drained", "device: eno5", "device: eno5, drained: true", ""},
		{"its LAG", "uplinks: [u3, u4]", "uplinks: [u3, u4], mode: passive",
			"vmk0: LAG lag1: lag1 (u3, u4) active slow hash"},
		{"an uplink that it does not use", "device: eno2", "device: eno2, blocked: true", ""},
		{"the MTU of the switch", "name: lab\n", "name: lab\n    mtu: 9000\n", "vmk0: mtu of the switch: 1500 → " +
			"9000|vmk1: mtu: 1500 → 9000; mtu of the switch: 1500 → 9000|eno5: mtu of the switch: 1500 → 9000"},
		{"another VM", "device: tap0", "device: tap1", ""},
		{"an uplink with the host's addresses, blocked", "device: eno5", "device: eno5, blocked: true",
			"eno5: blocked of uplink m1: false → true"},
		{"an uplink with the host's addresses, given back", ", {name: m1, device: eno5}", "",
			"eno5: it is no uplink any more"},
		{"an uplink with the host's addresses, into a LAG", "lags: [", "lags: [{name: lag2, uplinks: [m1]}, ",
			"eno5: LAG: none → lag2 (m1)"},
		{"a device with the host's addresses becomes an uplink", "device: eno2", "device: eno9",
			"eno9: it becomes uplink lab/u2"},
		{"a device with the host's addresses becomes a port", "device: tap0", "device: eno9",
			"eno9: it becomes port lab/vm"},
	} {
		t.Run(c.what, func(t *testing.T) {
			after := strings.Replace(base, c.from, c.to, 1)
			if c.from != "" && after == base {
				t.Fatalf("%s: nothing to replace", c.what)
			}
			risks := Risks(resolved(t, base), resolved(t, after), host())
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, "|")
			}
			if len(risks) != len(want) {
				t.Errorf("%s: %v, want %v", c.what, risks, want)
				return
			}
			for _, w := range want {
				found := false
				for _, r := range risks {
					found = found || strings.HasPrefix(r.String(), w)
				}
				if !found {
					t.Errorf("%s: %v, want %v", c.what, risks, want)
				}
			}
		})
	}
}

func TestS81_AnInterfaceWithoutUplinksLeadsNowhere(t *testing.T) {
	risks := Risks(resolved(t, base), resolved(t, strings.Replace(base, "{name: inner, ", "{name: inner, blocked: "+
		"true, ", 1)), host())
	if len(risks) != 1 || risks[0].Device != "vmk1" || risks[0].Outside {
		t.Errorf("%+v", risks)
	}
	risks = Risks(resolved(t, base), resolved(t, strings.Replace(base, "{name: management, ", "{name: management, "+
		"blocked: true, ", 1)), host())
	if len(risks) != 1 || risks[0].Device != "vmk0" || !risks[0].Outside {
		t.Errorf("%+v", risks)
	}
}
