package scenario

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/plan"
)

// good is a scenario with one of everything; the tests of faults change one place of it.
const good = `name: demo
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          uplinks: [{name: uplink1, device: eno1}]
          portGroups: [{name: web}]
      ports:
        - {name: n1, switch: lab, portGroup: web, device: vm-n1}
        - {name: vm1, switch: lab, portGroup: web, device: vm-vm1, mac: "02:00:00:00:00:07"}
        - {name: vm2, switch: lab, portGroup: web, device: tap2}
        - {name: vmk0, switch: lab, portGroup: web, role: host, device: vmk0}
        - {name: fw0, switch: lab, portGroup: web, device: vm-fw0, mac: "02:00:00:00:00:08"}
        - {name: fw1, switch: lab, portGroup: web, device: vm-fw1}
  - name: n1
    nics: [{device: vmnic0, host: esx1, port: n1}]
    config:
      switches:
        - name: inner
          uplinks: [{name: uplink1, device: vmnic0}]
          portGroups: [{name: web}]
vms:
  - {name: vm1, host: esx1, addresses: [10.0.0.1/24], gateway: 10.0.0.254}
  - {name: vm2, kind: qemu, host: esx1, nic: e1000, addresses: [10.0.0.2/24]}
switches:
  - name: tor
    kind: heddle
    config:
      switches:
        - name: tor
          portGroups: [{name: all}]
      ports:
        - {name: p1, switch: tor, portGroup: all, device: p1}
        - {name: p2, switch: tor, portGroup: all, device: p2}
  - {name: hub}
routers:
  - name: gw
    interfaces:
      - {device: eth0, addresses: [10.0.0.254/24]}
      - {device: eth1, addresses: [10.0.1.254/24]}
  - name: fw
    interfaces:
      - {device: inside, host: esx1, port: fw0, addresses: [10.0.2.254/24]}
      - {device: outside, host: esx1, port: fw1, mtu: 9001, addresses: [10.0.3.254/24]}
links:
  - {a: esx1/eno1, b: tor/p1, rate: 10Gbit, mtu: 9000}
  - {a: gw/eth0, b: tor/p2}
  - {a: gw/eth1, b: hub/x1}
`

func TestParse(t *testing.T) {
	s, err := Parse("demo.yaml", []byte(good), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Hosts) != 2 || len(s.VMs) != 2 || len(s.Switches) != 2 || len(s.Routers) != 2 || len(s.Links) != 3 {
		t.Fatalf("not everything was read: %+v", s)
	}
	vm1, vm2 := s.VMs[0], s.VMs[1]
	if vm1.Kind != Namespace || vm1.Port != "vm1" || vm1.MTU != 1500 || vm1.MAC.String() != "02:00:00:00:00:07" {
		t.Errorf("vm1's defaults: %+v", vm1)
	}
	if vm1.Gateway != netip.MustParseAddr("10.0.0.254") || vm1.Addresses[0] != netip.MustParsePrefix("10.0.0.1/24") {
		t.Errorf("vm1's addresses: %+v", vm1)
	}
	if vm2.NIC != E1000 || vm2.MAC.IsZero() || vm2.MAC.IsGroup() {
		t.Errorf("vm2: %+v", vm2)
	}
	if p := Port(s.Host("esx1").Config, "vm2"); p.MAC != vm2.MAC.String() {
		t.Errorf("the configuration says that vm2's MAC is %q, not %s", p.MAC, vm2.MAC)
	}
	if l := s.Links[0]; l.Rate != 10e9 || l.MTU != 9000 || l.A != (End{"esx1", "eno1"}) {
		t.Errorf("first link: %+v", l)
	}
	if s.Links[1].MTU != 1500 || s.Links[1].Rate != 0 || s.Switches[1].Kind != Bridge {
		t.Errorf("defaults: %+v, %+v", s.Links[1], s.Switches[1])
	}
	if s.Host("esx1").Config.Switches[0].Name != "lab" || s.Switches[0].Config.Ports[1].Name != "p2" {
		t.Error("a configuration in place was not read")
	}
	inside, outside := s.Routers[1].Interfaces[0], s.Routers[1].Interfaces[1]
	if !inside.OnPort() || inside.MTU != 1500 || inside.MAC.String() != "02:00:00:00:00:08" || outside.MTU != 9001 ||
		outside.MAC.IsZero() {
		t.Errorf("a router on ports: %+v, %+v", inside, outside)
	}
	if s.LinkMAC(End{"gw", "eth0"}) != s.Routers[0].Interfaces[0].MAC ||
		s.LinkMAC(End{"esx1", "eno1"}) == (plan.MAC{}) {
		t.Error("the MAC of a link's end")
	}
}

// The agent does not see the MAC behind a tap, so it is told.
func TestAVMWithQueuesTellsThePortItsMAC(t *testing.T) {
	text := strings.Replace(good, "{name: vm1, host", "{name: vm1, queues: 4, host", 1)
	text = strings.Replace(text, `, mac: "02:00:00:00:00:07"`, "", 1)
	s, err := Parse("demo.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	vm1 := s.VMs[0]
	if p := Port(s.Host("esx1").Config, "vm1"); vm1.Queues != 4 || vm1.MAC.IsZero() || p.MAC != vm1.MAC.String() {
		t.Errorf("%+v behind port %+v", vm1, p)
	}
	if s.VMs[1].Queues != 1 {
		t.Errorf("a machine has %d queues by default", s.VMs[1].Queues)
	}
}

// Each case replaces text of the good scenario. The fault must be reported where "@@" is in the new text or, without
// that, at the first occurrence of the text "at".
func TestParseFaults(t *testing.T) {
	const innerBlock = "config:\n      switches:\n        - name: inner\n          uplinks: [{name: uplink1, device: " +
		"vmnic0}]\n          portGroups: [{name: web}]"
	const interfaces = "interfaces:\n      - {device: eth0, addresses: [10.0.0.254/24]}\n      - {device: eth1, " +
		"addresses: [10.0.1.254/24]}"
	for _, c := range []struct{ what, old, new, at, says string }{
		{"unknown field", "vms:\n", "vms:\n  - {@@nam: x}\n", "", `unknown field "nam"`},
		{"repeated field", "name: demo", "name: demo\n@@name: again", "", "twice"},
		{"wrong type", "mtu: 9000", "mtu: @@big", "", "a whole number"},
		{"scalar for a list", interfaces, "interfaces: @@two", "", "a list belongs here"},
		{"bad name", "name: demo", "name: @@Demo_1", "", "not a name"},
		{"repeated node", "{name: vm1, host", "{name: @@n1, port: vm1, host", "", "the name of a host already"},
		{"no such host", "host: esx1, addresses: [10.0.0.1/", "host: @@esx9, addresses: [10.0.0.1/", "",
			`no host "esx9"`},
		{"no such port", "{name: vm1, host: esx1", "{name: vm1, host: esx1, port: @@vm9", "", `no port "vm9"`},
		{"host interface as port", "{name: vm1, host: esx1", "{name: vm1, host: esx1, port: @@vmk0", "",
			"host interface"},
		{"port taken", "{name: vm1, host: esx1", "{name: vm1, host: esx1, port: @@n1", "",
			"esx1/vm-n1 is connected to n1/vmnic0 already"},
		{"network as address", "[10.0.0.1/24]", "[@@10.0.0.0/24]", "", "is a network"},
		{"address without prefix", "[10.0.0.1/24]", "[@@10.0.0.1]", "", "such as 10.0.0.1/24"},
		{"not an address", "gateway: 10.0.0.254", "gateway: @@gw", "", "such as 10.0.0.1"},
		{"gateway elsewhere", "gateway: 10.0.0.254", "gateway: @@10.9.0.254", "", "in none of the VM's networks"},
		{"group MAC", "{name: vm1, host: esx1", `{name: vm1, mac: @@"03:00:00:00:00:01", host: esx1`, "",
			"group address"},
		{"unknown kind of VM", "kind: qemu", "kind: @@xen", "", "no kind of VM"},
		{"model of a namespace", "{name: vm1, host", "{name: vm1, nic: @@e1000, host", "", "only a VM of kind qemu"},
		{"queues that no tap has", "{name: vm1, host", "{name: vm1, queues: @@257, host", "",
			"257 queues: a tap has 1–256"},
		{"queues below none", "{name: vm1, host", "{name: vm1, queues: @@-1, host", "", "-1 queues: a tap has 1–256"},
		{"queues that no machine has", "nic: e1000", "queues: @@9", "", "a VM of kind qemu has 1–8"},
		{"queues of a model with one", "nic: e1000", "nic: e1000, queues: @@2", "", "of the model e1000 has one"},
		{"unknown model", "nic: e1000", "nic: @@ne2000", "", "no adapter model"},
		{"MTU out of range", "mtu: 9000", "mtu: @@67", "", "out of range"},
		{"rate without unit", "rate: 10Gbit", "rate: @@10", "", "not a link's rate"},
		{"rate out of range", "rate: 10Gbit", "rate: @@1000Gbit", "", "not a link's rate"},
		{"not a link's end", "b: hub/x1", "b: @@hub", "", "node/device"},
		{"link to nowhere", "b: hub/x1", "b: @@hob/x1", "", `no node "hob"`},
		{"link to a VM", "b: hub/x1", "b: @@vm1/eth1", "", "a VM is connected by host and port"},
		{"link without device", "a: esx1/eno1", "a: @@esx1/eno7", "", `no uplink with device "eno7"`},
		{"link taken", "b: hub/x1", "b: @@tor/p2", "", "connected to gw/eth0 already"},
		{"one end only", "{a: gw/eth1, b: hub/x1}", "@@{a: gw/eth1}", "", "two ends"},
		{"device name too long", "b: hub/x1", "b: @@hub/x123456789012345", "", "not a device name"},
		{"configuration in a file", "{name: hub}", "{name: hub, configFile: @@x.yaml}", "", "can't refer to files"},
		{"bridge with a configuration", "{name: hub}", "@@{name: hub, configFile: x.yaml}", "",
			"takes no configuration"},
		{"unknown kind of switch", "{name: hub}", "{name: hub, kind: @@cisco}", "", "no kind of switch"},
		{"router's interface loose", "  - {a: gw/eth1, b: hub/x1}\n", "", "{device: eth1",
			`no link connects interface "eth1"`},
		{"router on no such port", "port: fw1", "port: @@fw9", "", `no port "fw9"`},
		{"router on a port without host", "{device: inside, host: esx1, port", "@@{device: inside, port", "",
			`no host ""`},
		{"router on a port that is taken", "port: fw1", "port: @@vm1", "", "esx1/vm-vm1 is connected to vm1 already"},
		{"router on a port and a link", "b: hub/x1}", "b: hub/x1}\n  - {a: @@fw/inside, b: hub/x2}", "",
			"fw/inside is connected to port fw0 already"},
		{"MTU of a router on a port", "mtu: 9001", "mtu: @@67", "", "out of range"},
		{"MTU of a router on a link", "{device: eth1, addresses", "{device: eth1, mtu: @@9000, addresses", "",
			"a link, which has the MTU"},
		{"uplink loose", "  - {a: esx1/eno1, b: tor/p1, rate: 10Gbit, mtu: 9000}\n", "", "name: esx1",
			"no link and no adapter provides"},
		{"adapter without uplink", "{device: vmnic0, host", "{device: @@vmnic9, host", "",
			`no uplink with device "vmnic9"`},
		{"fault inside a configuration", "[{name: web}]\n      ports", "[{@@nome: web}]\n      ports", "", "nome"},
		{"configuration in braces", innerBlock, "config: @@{switches: []}", "", "indented block"},
		{"second document", "  - {a: gw/eth1, b: hub/x1}\n", "  - {a: gw/eth1, b: hub/x1}\n@@---\nname: more\n", "",
			"second YAML document"},
		{"host on itself", "host: esx1, port: n1}", "host: n1, port: n1}", "[{device: vmnic0, host", "runs on itself"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if strings.Count(good, c.old) != 1 {
				t.Fatalf("%q is in the good scenario %d times", c.old, strings.Count(good, c.old))
			}
			marked := strings.Replace(good, c.old, c.new, 1)
			at := strings.Index(marked, "@@")
			text := strings.Replace(marked, "@@", "", 1)
			if at < 0 {
				at = strings.Index(text, c.at)
			}
			line := 1 + strings.Count(text[:at], "\n")
			column := at - strings.LastIndexByte(text[:at], '\n')
			_, err := Parse("demo.yaml", []byte(text), nil)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("Parse = %v, want faults", err)
			}
			for _, f := range faults {
				if f.Line == line && f.Column == column && strings.Contains(f.Error(), c.says) {
					return
				}
			}
			t.Errorf("no fault at %d:%d that says %q:\n%v", line, column, c.says, err)
		})
	}
}

func TestParseReportsAllFaultsInOrder(t *testing.T) {
	text := strings.NewReplacer("rate: 10Gbit", "rate: fast", "nic: e1000", "nic: ne2000", "name: demo",
		"name: D").Replace(good)
	_, err := Parse("demo.yaml", []byte(text), nil)
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 3 {
		t.Fatalf("Parse = %v, want three faults", err)
	}
	for i := 1; i < len(faults); i++ {
		if faults[i].Line < faults[i-1].Line {
			t.Errorf("fault %d is before fault %d in the file:\n%v", i, i-1, err)
		}
	}
}

func TestParseOfNoScenario(t *testing.T) {
	for text, says := range map[string]string{
		"":                              "empty",
		"# nothing\n":                   "empty",
		"[1, 2]":                        "a mapping belongs here",
		"a: [":                          "not YAML",
		"name: x\nhosts: []\n":          "at least one host",
		"name: x\nhosts: [{name: h}]\n": "neither config nor configFile",
	} {
		_, err := Parse("x.yaml", []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Parse(%q) = %v, want that it says %q", text, err, says)
		}
	}
}

func TestLoadReadsConfigurationsBesideTheScenario(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("lab.yaml", "name: x\nhosts: [{name: h, configFile: h.yaml}]\n")
	write("h.yaml", "switches: [{name: s}]\n")
	s, err := Load(filepath.Join(dir, "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Hosts[0].Config.Switches[0].Name != "s" {
		t.Errorf("host's configuration: %+v", s.Hosts[0].Config)
	}
	write("h.yaml", "switches: [{nome: s}]\n")
	_, err = Load(filepath.Join(dir, "lab.yaml"))
	if err == nil || !strings.Contains(err.Error(), "h.yaml:1:13") {
		t.Errorf("Load = %v, want the place in the configuration file", err)
	}
}

func TestRateText(t *testing.T) {
	for text, want := range map[string]Rate{"10Gbit": 10e9, "2.5Gbit": 2.5e9, "100Mbit": 100e6} {
		t.Run(text, func(t *testing.T) {
			var r Rate
			if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
				t.Errorf("%q: %v, %v", text, r, err)
			}
			if r.String() != text {
				t.Errorf("%v is written %q", want, r)
			}
		})
	}
}
