package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const base = `switches:
  - name: lab
    mtu: 9000
    uplinks:
      - {name: uplink1, device: eno1}
      - {name: uplink2, device: eno2}
      - {name: uplink3}
    portGroups:
      - {name: web, vlan: {access: 200}}
      - {name: open, overrides: {vlan: true}, monitoring: {ipfix: true}}
ports:
  - {name: vm1/eth0, switch: lab, portGroup: web, device: tap0, mac: "02:00:00:00:01:01"}
  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}
`

func mustParse(t testing.TB, text string) *Config {
	t.Helper()
	cfg, err := Parse("heddle.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestCheckPort_SaysWhatDoesNotFit(t *testing.T) {
	cfg := mustParse(t, base)
	for _, c := range []struct {
		name string
		port Port
		want string // "" for a port that fits
	}{
		{"fits", Port{Name: "vm2", Switch: "lab", PortGroup: "web", Device: "tap1", MAC: "02:00:00:00:01:02"}, ""},
		{"no device yet", Port{Name: "vm2", Switch: "lab", PortGroup: "web"}, ""},
		{"in the file too", Port{Name: "vm1/eth0", Switch: "lab", PortGroup: "web"},
			"ports[vm1/eth0].name: vm1/eth0: heddle.yaml:12 declares a port of this name too: a port is declared in " +
				"the file or connected at run time, not both; remove one"},
		{"uplink's name", Port{Name: "uplink1", Switch: "lab", PortGroup: "web"},
			"ports[uplink1].name: uplink1: an uplink of switch lab has this name: ports and uplinks of a switch have " +
				"different names"},
		{"device in use", Port{Name: "vm2", Switch: "lab", PortGroup: "web", Device: "eno2"},
			"ports[vm2].device: eno2: uplink uplink2 of switch lab uses this device already: a device serves one " +
				"port or uplink"},
		{"MAC in use", Port{Name: "vm2", Switch: "lab", PortGroup: "web", MAC: "02:00:00:00:01:01"},
			"ports[vm2].mac: 02:00:00:00:01:01: port vm1/eth0 of switch lab has this MAC: every port of a switch has " +
				"its own"},
		{"no such group", Port{Name: "vm2", Switch: "lab", PortGroup: "wbe"},
			"ports[vm2].portGroup: wbe: switch lab has no such port group; did you mean web?"},
		{"nothing given", Port{}, "port.name: a name is needed\nport.portGroup: the port group the port belongs to " +
			"is needed\nport.switch: the switch the port belongs to is needed"},
		{"override not allowed (S9)", Port{Name: "vm2", Switch: "lab", PortGroup: "web",
			Policy: Policy{VLAN: &VLAN{Access: 5}}},
			"ports[vm2].vlan: port group web does not let its ports set vlan: allow it there with overrides: {vlan: " +
				"true}, or leave it out here"},
		{"override out of range", Port{Name: "vm2", Switch: "lab", PortGroup: "open",
			Policy: Policy{VLAN: &VLAN{Access: 4095}}},
			"ports[vm2].vlan.access: 4095: a VLAN id is 1–4094"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := CheckPort(cfg, c.port); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWithPorts_LeavesOutWhatDoesNotFit(t *testing.T) {
	cfg := mustParse(t, base)
	vm := func(name, device string) Port {
		return Port{Name: name, Switch: "lab", PortGroup: "web", Device: device}
	}
	merged, faults := WithPorts(cfg, []Port{vm("a", "tap1"), vm("b", "tap1"), vm("c", "tap2"), vm("a", "tap3"),
		vm("b", "tap4")})
	var names []string
	for _, p := range merged.Ports {
		names = append(names, p.Name)
	}
	if got, want := strings.Join(names, " "), "vm1/eth0 vmk0 a c b"; got != want {
		t.Errorf("ports %s, want %s", got, want)
	}
	want := "ports[b].device: tap1: port a uses this device already: a device serves one port or uplink\n" +
		"ports[a].name: a: a port of this name is connected already: disconnect it first, or choose another name"
	if faults.Error() != want {
		t.Errorf("faults\n%s\nwant\n%s", faults, want)
	}
	if len(cfg.Ports) != 2 {
		t.Error("the file's configuration has changed")
	}
	if err := merged.Validate(); err != nil {
		t.Errorf("the merged configuration is not valid: %v", err)
	}
	again := CheckPort(merged, vm("c", "tap9"))
	if again == nil || !strings.Contains(again.Error(), "connected already") {
		t.Errorf("a second port c: %v", again)
	}
}

func TestValidate_AfterAPortIsTakenOut(t *testing.T) {
	cfg := mustParse(t, base)
	cfg.Ports = cfg.Ports[1:] // positions must not be those of the first port
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestCheckDevices_SmallMTUIsAFaultAndAMissingDeviceAWarning(t *testing.T) {
	cfg := mustParse(t, base)
	mtus := map[string]int{"eno1": 1500}
	lookup := func(d string) (int, bool) { mtu, ok := mtus[d]; return mtu, ok }
	alone := func(name string) string { return map[string]string{"tap0": "vnet0"}[name] }
	faults, warnings := CheckDevices(cfg, lookup), MissingDevices(cfg, lookup, alone)
	wantFault := "heddle.yaml:5:33: switches[lab].uplinks[uplink1].device: eno1: the device's MTU is 1500, below the " +
		"9000 of switch lab: raise it (ip link set eno1 mtu 9000) or lower the switch's mtu"
	if faults.Error() != wantFault {
		t.Errorf("faults\n%s\nwant\n%s", faults, wantFault)
	}
	wantWarnings := []string{
		"heddle.yaml:6:33: switches[lab].uplinks[uplink2].device: eno2: there is no such device now; the uplink is " +
			"down until it appears",
		"heddle.yaml:12:59: ports[vm1/eth0].device: tap0: this is another name of device vnet0, and only a device's " +
			"first name counts here: write vnet0; the port is down",
	}
	if got, want := strings.Join(warnings, "\n"), strings.Join(wantWarnings, "\n"); got != want {
		t.Errorf("warnings\n%s\nwant\n%s", got, want)
	}
	lookup = func(string) (int, bool) { return 9000, true }
	faults, warnings = CheckDevices(cfg, lookup), MissingDevices(cfg, lookup, alone)
	if len(faults)+len(warnings) != 0 {
		t.Errorf("with every device there: %v %v", faults, warnings)
	}
}

func TestWarnings_NameWhatComesToNothing(t *testing.T) {
	const file = `switches:
  - name: lab
    ipfix:
      switchIpAddress: 192.0.2.1
      collectors: [{address: 192.0.2.9}, {address: "2001:db8::9"}]
    uplinks: [{name: u1%s}]
    defaults: {%s}
    portGroups: [{name: web%s}]
ports: [{name: vm1, switch: lab, portGroup: web%s}]
`
	const ipv6 = "heddle.yaml:5:52: switches[lab].ipfix.collectors[1].address: 2001:db8::9: an IPv6 collector is " +
		"sent to from the host's own address: switchIpAddress is for IPv4 alone"
	const nowhere = "heddle.yaml:5:19: switches[lab].ipfix.collectors: nothing is metered on this switch: set " +
		"monitoring: {ipfix: true} under defaults, or at a port group, port or uplink"
	const on = "monitoring: {ipfix: true}"
	for _, c := range []struct {
		uplink, defaults, group, port string
		want                          []string
	}{
		{want: []string{nowhere, ipv6}},
		{group: ", monitoring: {ipfix: false, observe: egress}", want: []string{nowhere, ipv6}},
		{uplink: ", " + on, want: []string{ipv6}},
		{defaults: on, want: []string{ipv6}},
		{group: ", " + on, want: []string{ipv6}},
		{group: ", overrides: {monitoring: true}", port: ", " + on, want: []string{ipv6}},
		// a port that is connected later may ask for it
		{group: ", overrides: {monitoring: true}", want: []string{ipv6}},
	} {
		got := mustParse(t, fmt.Sprintf(file, c.uplink, c.defaults, c.group, c.port)).Warnings()
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v: %s", c, d)
		}
	}
	if got := mustParse(t, base).Warnings(); len(got) != 0 {
		t.Errorf("metering without a collector is fine: %q", got)
	}
}

// aliasBomb is a valid file of a few kilobytes whose aliases stand for far more ports than a host has.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("switches: [{name: s}]\nports:\n  - &p {addresses: &a [x")
	for range 1000 {
		b.WriteString(", x")
	}
	b.WriteString("]}\n")
	for range 1000 {
		b.WriteString("  - *p\n")
	}
	return b.String()
}

func TestParse_BoundsWhatAliasesStandFor(t *testing.T) {
	_, err := Parse("bomb.yaml", []byte(aliasBomb()))
	want := fmt.Sprintf("more than %d values, aliases followed: write a smaller file", MaxValues)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestParse_RefusesAHugeFile(t *testing.T) {
	if _, err := Parse("huge.yaml", make([]byte, maxFile+1)); err == nil || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, file := range cases(f, dir) {
			f.Add(read(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse("fuzz.yaml", data)
		if err != nil {
			if cfg != nil || strings.Count(err.Error(), "\n") != len(err.(Faults))-1 {
				t.Fatalf("config %v with %q", cfg, err)
			}
			return
		}
		if err := cfg.Validate(); err != nil {
			t.Fatalf("parsed, but not valid: %v", err)
		}
		text, err := Format(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("formatted.yaml", text); err != nil {
			t.Fatalf("canonical form is not read: %v\n%s", err, text)
		}
	})
}

// A guard without addresses leaves its guest nothing but asking for one: there is a warning for that case, and for no
// other.
func TestWarnings_NameAGuardedPortWithoutAddresses(t *testing.T) {
	const file = `
switches:
  - name: lab
    defaults: {security: {addressGuard: {enabled: true}}}
    portGroups: [{name: web, overrides: {security: true}}, {name: plain, security: {addressGuard: {enabled: false}}}]
ports:
  - {name: vm1, switch: lab, portGroup: %s, role: %s, security: {addressGuard: {%s}}}
`
	for _, c := range []struct {
		group, role, guard string
		warned             bool
	}{{"web", "vnic", "addresses: []", true}, {"web", "vnic", "addresses: [192.0.2.1]", false},
		{"web", "vnic", "enabled: false", false},
		{"plain", "vnic", "addresses: []", false}, {"web", "host", "addresses: []", false}} {
		t.Run(c.group, func(t *testing.T) {
			got := mustParse(t, fmt.Sprintf(file, c.group, c.role, c.guard)).Warnings()
			if (len(got) == 1) != c.warned || c.warned &&
				!strings.Contains(got[0], "7:5: ports[vm1]: the address guard is on") {
				t.Errorf("%+v: %q", c, got)
			}
		})
	}
}
