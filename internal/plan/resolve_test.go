package plan

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/spec"
)

func mustParse(t testing.TB, text string) *spec.Config {
	t.Helper()
	cfg, err := spec.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func mustResolve(t testing.TB, cfg *spec.Config, numbers map[PortID]uint32) *Plan {
	t.Helper()
	p, err := Resolve(cfg, numbers)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// port resolves a one-port configuration; the words in defaults, group and own are the fields of those levels.
func port(t testing.TB, defaults, group, own string) *Port {
	t.Helper()
	text := `switches:
  - name: lab
    uplinks: [{name: uplink1}, {name: uplink2}, {name: uplink3}]
    defaults: {` + defaults + `}
    portGroups: [{name: web, overrides: {vlan: true, security: true, teaming: true, monitoring: true}, ` + group + `}]
ports: [{name: vm1, switch: lab, portGroup: web, ` + own + `}]
`
	return mustResolve(t, mustParse(t, text), nil).Port(PortID{"lab", "vm1"})
}

// wantRow checks one effective value and its origin.
func wantRow(t *testing.T, p *Port, policy, value, from string) {
	t.Helper()
	for _, r := range p.Rows() {
		if r.Policy == policy {
			if r.Value.String() != value || r.From.String() != from {
				t.Errorf("got %v from %v, want %s from %s", r.Value, r.From, value, from)
			}
			return
		}
	}
	t.Errorf("no row %s", policy)
}

func TestRows_BuiltInDefaults(t *testing.T) {
	want := []Row{
		{"blocked", FieldValueOf(false), "", Source{Level: FromBuiltIn}},
		{"vlan", FieldValueOf(VLAN{}), "", Source{Level: FromBuiltIn}},
		{"security.promiscuous", FieldValueOf("reject"), "", Source{Level: FromBuiltIn}},
		{"security.macChanges", FieldValueOf("reject"), "", Source{Level: FromBuiltIn}},
		{"security.forgedTransmits", FieldValueOf("reject"), "", Source{Level: FromBuiltIn}},
		{"security.loopDetection", FieldValueOf(true), "", Source{Level: FromBuiltIn}},
		{"security.guestLinkControl", FieldValueOf([]string{}), "", Source{Level: FromBuiltIn}},
		{"security.addressGuard.enabled", FieldValueOf(false), "", Source{Level: FromBuiltIn}},
		{"security.addressGuard.addresses", FieldValueOf([]string{}), "", Source{Level: FromBuiltIn}},
		{"security.dhcpServer", FieldValueOf("accept"), "", Source{Level: FromBuiltIn}},
		{"security.routerAdvertisements", FieldValueOf("accept"), "", Source{Level: FromBuiltIn}},
		{"security.macLearning.enabled", FieldValueOf(false), "", Source{Level: FromBuiltIn}},
		{"security.macLearning.limit", FieldValueOf(4096), "MACs", Source{Level: FromBuiltIn}},
		{"security.macLearning.limitPolicy", FieldValueOf("drop"), "", Source{Level: FromBuiltIn}},
		{"security.macLearning.ageing", FieldValueOf(10 * time.Minute), "seconds", Source{Level: FromBuiltIn}},
		{"security.macLearning.unicastFlooding", FieldValueOf(true), "", Source{Level: FromBuiltIn}},
		{"teaming.policy", FieldValueOf("originating-port"), "", Source{Level: FromBuiltIn}},
		{"teaming.active", FieldValueOf([]string{"uplink1", "uplink2", "uplink3"}), "", Source{Level: FromBuiltIn}},
		{"teaming.standby", FieldValueOf([]string{}), "", Source{Level: FromBuiltIn}},
		{"teaming.failback", FieldValueOf(true), "", Source{Level: FromBuiltIn}},
		{"teaming.notifySwitches", FieldValueOf(true), "", Source{Level: FromBuiltIn}},
		{"teaming.failureDetection", FieldValueOf("link"), "", Source{Level: FromBuiltIn}},
		{"monitoring.ipfix", FieldValueOf(false), "", Source{Level: FromBuiltIn}},
		{"monitoring.observe", FieldValueOf("both"), "", Source{Level: FromBuiltIn}},
		{"stormControl.broadcast", FieldValueOf(0), "frames/s", Source{Level: FromBuiltIn}},
		{"stormControl.multicast", FieldValueOf(0), "frames/s", Source{Level: FromBuiltIn}},
		{"stormControl.unknownUnicast", FieldValueOf(0), "frames/s", Source{Level: FromBuiltIn}},
		{"stormControl.burst", FieldValueOf(time.Second), "seconds", Source{Level: FromBuiltIn}},
	}
	if diff := cmp.Diff(want, port(t, "", "", "").Rows()); diff != "" {
		t.Error(diff)
	}
}

func TestS8_AnInheritedValueFollowsTheSwitchDefault(t *testing.T) {
	const policy = "security.forgedTransmits"
	wantRow(t, port(t, "security: {forgedTransmits: accept}", "", ""), policy, "accept", "switch lab")
	wantRow(t, port(t, "security: {forgedTransmits: reject}", "", ""), policy, "reject", "switch lab")
	wantRow(t, port(t, "security: {forgedTransmits: accept}", "security: {forgedTransmits: reject}", ""), policy,
		"reject", "port group web")
}

func TestS9_APortsOwnValueNeedsItsGroupsLeave(t *testing.T) {
	categories := []struct{ flag, own, policy, value string }{
		{"vlan", "vlan: {access: 7}", "vlan", "access 7"},
		{"security", "security: {promiscuous: accept}", "security.promiscuous", "accept"},
		{"teaming", "teaming: {active: []}", "teaming.active", "none"},
		{"blocked", "blocked: true", "blocked", "true"},
		{"monitoring", "monitoring: {ipfix: true}", "monitoring.ipfix", "true"},
		{"stormControl", "stormControl: {broadcast: 1000}", "stormControl.broadcast", "1000"},
	}
	for _, c := range categories {
		text := func(allowed string) string {
			return "switches: [{name: lab, uplinks: [{name: u}], portGroups: [{name: web, overrides: {" + c.flag +
				": " + allowed + "}}]}]\n" +
				"ports: [{name: vm1, switch: lab, portGroup: web, " + c.own + "}]\n"
		}
		p := mustResolve(t, mustParse(t, text("true")), nil).Port(PortID{"lab", "vm1"})
		wantRow(t, p, c.policy, c.value, "port vm1")
		_, err := spec.Parse("test.yaml", []byte(text("false")))
		if err == nil || !strings.Contains(err.Error(), "overrides: {"+c.flag+": true}") {
			t.Errorf("%s not allowed: got %v, want a fault that names the flag", c.flag, err)
		}
	}
}

func TestS9_ResolveRefusesAnOverrideThatIsNotAllowed(t *testing.T) {
	blocked := true
	cfg := &spec.Config{
		Switches: []spec.Switch{{Name: "lab", PortGroups: []spec.PortGroup{{Name: "web"}}}},
		Ports:    []spec.Port{{Name: "vm1", Switch: "lab", PortGroup: "web", Policy: spec.Policy{Blocked: &blocked}}},
	}
	wantRow(t, mustResolve(t, cfg, nil).Port(PortID{"lab", "vm1"}), "blocked", "true", "port vm1")
	cfg.Ports[0].VLAN = &spec.VLAN{Access: 5}
	if p, err := Resolve(cfg, nil); err == nil || p != nil {
		t.Errorf("got %v, %v, want an error alone", p, err)
	}
}

func TestS11_SettingOnlyMACLearningLeavesTheOtherSecurityFieldsInherited(t *testing.T) {
	p := port(t, "security: {promiscuous: accept, macChanges: accept, macLearning: {limit: 8}}",
		"security: {macLearning: {enabled: true}}", "")
	wantRow(t, p, "security.promiscuous", "accept", "switch lab")
	wantRow(t, p, "security.macChanges", "accept", "switch lab")
	wantRow(t, p, "security.forgedTransmits", "reject", "built-in default")
	wantRow(t, p, "security.macLearning.enabled", "true", "port group web")
	wantRow(t, p, "security.macLearning.limit", "8", "switch lab")
}

func TestResolve_TeamingLists(t *testing.T) {
	p := port(t, "", "teaming: {standby: [uplink2]}", "")
	wantRow(t, p, "teaming.active", "uplink1, uplink3", "built-in default")
	wantRow(t, p, "teaming.standby", "uplink2", "port group web")
	p = port(t, "teaming: {active: [uplink3, uplink1]}", "teaming: {standby: [uplink2]}", "teaming: {active: []}")
	wantRow(t, p, "teaming.active", "none", "port vm1")
	p = port(t, "teaming: {active: [uplink3, uplink1]}", "", "")
	wantRow(t, p, "teaming.active", "uplink3, uplink1", "switch lab")
}

func TestResolve_VLANs(t *testing.T) {
	p := port(t, "vlan: {access: 5}", `vlan: {trunk: [0, "10-12", 11, "4094"], outer: 802.1ad}`, "")
	wantRow(t, p, "vlan", "trunk 0,10-12,4094 outer 802.1ad", "port group web")
	wantRow(t, port(t, "vlan: {access: 5}", "", "vlan: {none: true}"), "vlan", "none", "port vm1")
}

func TestResolve_SwitchesUplinksAndHostPorts(t *testing.T) {
	p := mustResolve(t, mustParse(t, `switches:
  - name: old
    kind: standard
    checks: {reversePath: false, blockGuestBPDU: false}
    uplinks: [{name: uplink1, device: eno1, vlans: ["1-4094"], blocked: true}, {name: uplink2}]
    portGroups: [{name: mgmt}]
  - {name: new, mtu: 9000}
ports:
  - {name: vmk0, switch: old, portGroup: mgmt, role: host, addresses: [192.0.2.1/24]}
  - {name: vm1, switch: old, portGroup: mgmt, mac: 02:00:00:00:01:01, txUplink: true}
`), nil)
	var trunk VLANSet
	trunk.AddRange(1, 4094)
	old := p.Switch("old")
	if old.Kind != spec.Standard || old.MTU != 1500 || old.ReversePath || !old.ReversePathPromiscuous ||
		old.BlockGuestBPDU {
		t.Errorf("old: %+v", old)
	}
	if s := p.Switch("new"); s.Kind != spec.Distributed || s.MTU != 9000 || !s.ReversePath || !s.BlockGuestBPDU {
		t.Errorf("new: %+v", s)
	}
	off := Monitoring{IPFIX: Value[bool]{false, FromBuiltIn}, Observe: Value[spec.Observe]{spec.ObserveBoth,
		FromBuiltIn}}
	if diff := cmp.Diff([]*Uplink{
		{ID: PortID{"old", "uplink1"}, Number: 3, Device: "eno1", VLANs: trunk, Blocked: true, Monitoring: off},
		{ID: PortID{"old", "uplink2"}, Number: 4, VLANs: AllVLANs(), Monitoring: off},
	}, old.Uplinks); diff != "" {
		t.Error(diff)
	}
	if u := p.Uplink(PortID{"old", "uplink2"}); u != old.Uplinks[1] {
		t.Errorf("uplink2 is %+v", u)
	}
	vmk := p.Port(PortID{"old", "vmk0"})
	if vmk.Role != spec.Host || vmk.Device != "vmk0" || vmk.MTU != 1500 ||
		!slices.Equal(vmk.Addresses, []string{"192.0.2.1/24"}) {
		t.Errorf("vmk0: %+v", vmk)
	}
	vm := p.Port(PortID{"old", "vm1"})
	if vm.Role != spec.VNIC || vm.InitialMAC != (MAC{2, 0, 0, 0, 1, 1}) || !vm.TxUplink || vm.MTU != 0 {
		t.Errorf("vm1: %+v", vm)
	}
	if p.Switch("x") != nil || p.Port(PortID{"old", "uplink1"}) != nil || p.Port(PortID{"x", "vm1"}) != nil ||
		p.Uplink(PortID{"old", "vm1"}) != nil {
		t.Error("something is found that is not there")
	}
}

func TestResolve_Numbers(t *testing.T) {
	cfg := mustParse(t,
		`switches: [{name: a, uplinks: [{name: u}], portGroups: [{name: g}]}, {name: b, uplinks: [{name: u}], portGroups: [{name: g}]}]
ports:
  - {name: p1, switch: b, portGroup: g}
  - {name: p2, switch: a, portGroup: g}
  - {name: p3, switch: b, portGroup: g}
  - {name: p4, switch: a, portGroup: g}
`)
	numbers := func(given map[PortID]uint32) []uint32 {
		p := mustResolve(t, cfg, given)
		var got []uint32
		for _, sp := range cfg.Ports {
			got = append(got, p.Port(PortID{sp.Switch, sp.Name}).Number)
		}
		return append(got, p.Uplink(PortID{"a", "u"}).Number, p.Uplink(PortID{"b", "u"}).Number)
	}
	if got, want := numbers(nil), []uint32{1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("without any given: %v, want %v", got, want)
	}
	given := map[PortID]uint32{{"a", "p4"}: 1, {"b", "p1"}: 9, {"a", "gone"}: 2, {"b", "u"}: 5}
	if got, want := numbers(given), []uint32{9, 3, 4, 1, 6, 5}; !slices.Equal(got, want) {
		t.Errorf("given %v: %v, want %v", given, got, want)
	}
	for _, bad := range []map[PortID]uint32{{{"a", "p2"}: 0}, {{"a", "p2"}: 5, {"b", "p1"}: 5}} {
		if p, err := Resolve(cfg, bad); err == nil || p != nil {
			t.Errorf("given %v: no error", bad)
		}
	}
}

func TestPlan_JSONReadsBackAndIsInTheUsersWords(t *testing.T) {
	data, err := os.ReadFile("../spec/testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := mustResolve(t, mustParse(t, string(data)), nil)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back *Plan
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		`"id":"lab/vm1/eth0"`, `"vlan":{"value":{"mode":"none"},"from":"port"}`, `"initialMAC":"02:00:00:00:01:01"`,
		`"value":{"mode":"trunk","trunk":[{"first":0,"last":0},{"first":10,"last":10},{"first":20,"last":30}],"outer":"802.1ad"}`, `"ageing":{"value":"10m","from":"built-in default"}`,
		`"vlans":[{"first":0,"last":4094}]`, `"active":{"value":["uplink2"],"from":"switch"}`,
		`"standby":{"value":[],"from":"port group"}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestFacts_JSONReadsBack(t *testing.T) {
	f := Facts{{"lab", "vm1/eth0"}: {Up: true, MTU: 1500, SeenMAC: MAC{2, 0, 0, 0, 0, 1}, Promiscuous: AsksNo}}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back Facts
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, back); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"lab": {}}`), &back); err == nil {
		t.Error("an id without a port is read")
	}
	if err := json.Unmarshal([]byte(`{"lab/x": {"promiscuous": "perhaps"}}`), &back); err == nil {
		t.Error("a wrong answer is read")
	}
}
