package vsphere

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"heddle/internal/spec"
)

var update = flag.Bool("update", false, "write the golden files")

func readLab(t *testing.T) *Inventory {
	t.Helper()
	f, err := os.Open("testdata/lab.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inv := &Inventory{}
	if err := inv.Read("lab.json", f); err != nil {
		t.Fatal(err)
	}
	return inv
}

// A dump of a switch with most of what vSphere has becomes this definition, with these notes. The definition is read
// back as strictly as a file.
func TestTranslate_ADumpBecomesADefinition(t *testing.T) {
	r, err := readLab(t).Translate(Options{HostPorts: true, Devices: map[string]string{"vmnic0": "eno1"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := spec.FormatDefinition(r.Definition)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.ParseDefinition("made", text); err != nil {
		t.Errorf("it can't be read back: %v", err)
	}
	notes, err := json.MarshalIndent(r.Notes, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/lab.yaml", text)
	golden(t, "testdata/lab-notes.json", append(notes, '\n'))
	if r.Switches != 1 || r.PortGroups != 3 || r.LAGs != 1 || r.Hosts != 2 || r.HostPorts != 1 {
		t.Errorf("it counts %d switches, %d port groups, %d LAGs, %d hosts, %d host ports", r.Switches, r.PortGroups,
			r.LAGs, r.Hosts, r.HostPorts)
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s would be\n%s", file, got)
	}
}

// one is a dump of one switch "dvs" and one port group with this configuration.
func one(t *testing.T, ofSwitch, ofGroup string) (*Result, error) {
	t.Helper()
	dump := `{"self":{"type":"VmwareDistributedVirtualSwitch","value":"dvs-1"},"name":"dvs","config":{
		"uplinkPortPolicy":{"uplinkPortName":["u1","u2"]}` + ofSwitch + `}}
		{"self":{"type":"DistributedVirtualPortgroup","value":"dvportgroup-1"},"name":"pg","config":{
		"key":"dvportgroup-1",
		"distributedVirtualSwitch":{"type":"VmwareDistributedVirtualSwitch","value":"dvs-1"},
		"defaultPortConfig":{` + ofGroup + `}}}`
	inv := &Inventory{}
	if err := inv.Read("dump", strings.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	return inv.Translate(Options{})
}

// Each policy of a port group becomes what has its meaning, field by field; what is inherited stays inherited.
func TestTranslate_Policies(t *testing.T) {
	for _, c := range []struct{ what, ofSwitch, ofGroup, want string }{
		{"nothing set", "", "", ""},
		{"VLAN none", "", `"vlan":{"vlanId":0}`, ", vlan: {none: true}"},
		{"VLAN 4095 is guest tagging", "", `"vlan":{"vlanId":4095}`, `, vlan: {trunk: ["0-4094"]}`},
		{"ranges are sorted and merged", "",
			`"vlan":{"vlanId":[{"start":5,"end":9},{"start":1,"end":4},{"start":30,"end":30}]}`,
			`, vlan: {trunk: ["1-9", "30"]}`},
		{"a range beyond the ids", "", `"vlan":{"vlanId":[{"start":4000,"end":5000}]}`,
			`, vlan: {trunk: ["4000-4094"]}`},
		{"a private VLAN passes nothing", "", `"vlan":{"pvlanId":7},"blocked":{"value":false}`,
			", vlan: {access: 7}, blocked: true"},
		{"a private VLAN of the switch is not opened by the port group",
			`,"defaultPortConfig":{"vlan":{"pvlanId":7}}`, `"blocked":{"value":false}`, ""},
		{"nor does it block a port group that has a VLAN",
			`,"defaultPortConfig":{"vlan":{"pvlanId":7}}`, `"vlan":{"vlanId":8}`,
			", vlan: {access: 8}, blocked: false"},
		{"a VLAN that is none passes nothing", "", `"vlan":{"vlanId":70000}`, ", blocked: true"},
		{"inherited as a whole", "", `"vlan":{"inherited":true,"vlanId":9},"securityPolicy":{"inherited":true,
			"macChanges":{"inherited":false,"value":true}}`, ""},
		{"inherited field by field", "", `"securityPolicy":{"macChanges":{"inherited":true,"value":true},
			"forgedTransmits":{"value":true}}`, ", security: {forgedTransmits: accept}"},
		{"MAC management is above the security policy", "", `"securityPolicy":{"macChanges":{"value":true}},
			"macManagementPolicy":{"macChanges":false}`, ", security: {macChanges: reject}"},
		{"a limit of MACs beyond the range", "",
			`"macManagementPolicy":{"macLearningPolicy":{"enabled":true,"limit":9000}}`,
			", security: {macLearning: {enabled: true, limit: 4096}}"},
		{"no failback", "", `"uplinkTeamingPolicy":{"rollingOrder":{"value":true}}`, ", teaming: {failback: false}"},
		{"explicit order", "", `"uplinkTeamingPolicy":{"policy":{"value":"failover_explicit"},
			"uplinkPortOrder":{"activeUplinkPort":["u2"],"standbyUplinkPort":["u1"]}}`,
			", teaming: {policy: explicit, active: [u2], standby: [u1]}"},
		{"an uplink that is not there", "",
			`"uplinkTeamingPolicy":{"uplinkPortOrder":{"activeUplinkPort":["u9","u1"]}}`,
			", teaming: {active: [u1], standby: []}"},
		{"IP hash has no standby uplinks", "", `"uplinkTeamingPolicy":{"policy":{"value":"loadbalance_ip"},
			"uplinkPortOrder":{"activeUplinkPort":["u1"],"standbyUplinkPort":["u2"]}}`,
			", teaming: {policy: ip-hash, active: [u1], standby: []}"},
		{"nor those of the switch", `,"defaultPortConfig":{"uplinkTeamingPolicy":{
			"uplinkPortOrder":{"activeUplinkPort":["u1"],"standbyUplinkPort":["u2"]}}}`,
			`"uplinkTeamingPolicy":{"policy":{"value":"loadbalance_ip"}}`, ", teaming: {policy: ip-hash, standby: []}"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, err := one(t, c.ofSwitch, c.ofGroup)
			if err != nil {
				t.Fatal(err)
			}
			want, err := spec.ParseDefinition("want", []byte("switches: [{name: dvs, uplinks: [{name: u1}, "+
				"{name: u2}], portGroups: [{name: pg"+c.want+"}]}]"))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Definition.Switches[0].PortGroups[0].Policy
			if w := want.Switches[0].PortGroups[0].Policy; !same(&got, &w) {
				g, _ := json.Marshal(got)
				t.Errorf("it is %s, want %s", g, c.want)
			}
		})
	}
}

// What has no counterpart is noted with the object and what to do.
func TestTranslate_NothingIsDroppedSilently(t *testing.T) {
	r, err := one(t, `,"description":"mine","maxMtu":9190,"multicastFilteringMode":"snooping"`,
		`"outShapingPolicy":{"enabled":{"value":true}},"qosTag":{"value":3},"txUplink":{"value":true},
		"filterPolicy":{"filterConfig":[{"key":"1"}]},"networkResourcePoolKey":{"value":"pool-7"},
		"uplinkTeamingPolicy":{"policy":{"value":"loadbalance_later"},"reversePolicy":{"value":false},
		"failureCriteria":{"checkBeacon":{"value":true},"checkDuplex":{"value":true}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range r.Notes {
		if n.Advice == "" || n.Object == "" {
			t.Errorf("%+v says nothing", n)
		}
		got = append(got, n.Setting)
	}
	for _, want := range []string{"description", "MTU", "multicast filtering mode", "egress traffic shaping",
		"priority tag (802.1p)", "forward all traffic to the uplink", "traffic filtering and marking",
		"network resource pool", "load balancing", "inbound frames follow the teaming policy", "beacon probing",
		"failure detection by duplex"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not noted: %q", want, got)
		}
	}
}

// Whatever names there are in vSphere, the definition is valid, its names differ, and equal inventories give equal
// definitions.
func TestTranslate_HostileNames(t *testing.T) {
	long := strings.Repeat("ä", 80)
	hostile := []string{"a/b", "a%2fb", `a\b`, "a%5cb", "\x00\x1b[31m", "yes", "null", "- x", "{}", "&a", "*a", "#",
		"'", `"`, "a: b", "\u202e", "", " ", "..", long + "1", long + "2", "~", "%25", "\xff\xfe", "0x1", "1e3",
		"web", "web ", "a-b"}
	var dump strings.Builder
	put := func(v any) {
		if err := json.NewEncoder(&dump).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	type m = map[string]any
	var hosts []any
	for i, n := range hostile {
		id := fmt.Sprint("host-", i)
		put(m{"self": m{"type": "HostSystem", "value": id}, "name": n})
		hosts = append(hosts, m{"config": m{"host": m{"value": id}, "backing": m{"pnicSpec": []any{
			m{"pnicDevice": n, "uplinkPortKey": "1"}, m{"pnicDevice": n, "uplinkPortKey": "2"}}}}})
	}
	for i, n := range hostile {
		id := fmt.Sprint("dvs-", i)
		put(m{"port": []any{m{"key": "1", "dvsUuid": id, "config": m{"name": n}},
			m{"key": "2", "dvsUuid": id, "config": m{"name": "lag"}}}})
		put(m{"self": m{"type": "VmwareDistributedVirtualSwitch", "value": id}, "name": n, "config": m{"uuid": id,
			"uplinkPortPolicy": m{"uplinkPortName": hostile}, "host": hosts,
			"lacpGroupConfig": []any{m{"name": n, "uplinkNum": 2}, m{"name": "lag", "uplinkName": hostile},
				m{"name": "x", "uplinkNum": 1 << 30}, m{"name": "x", "uplinkNum": -1}},
			"defaultPortConfig": m{"uplinkTeamingPolicy": m{"uplinkPortOrder": m{"activeUplinkPort": hostile,
				"standbyUplinkPort": hostile}}}}})
	}
	for i, n := range hostile {
		put(m{"self": m{"type": "DistributedVirtualPortgroup", "value": fmt.Sprint("dvportgroup-", i)}, "name": n,
			"config": m{"key": n, "distributedVirtualSwitch": m{"value": "dvs-0"}, "description": n}})
	}
	var before string
	for range 3 {
		inv := &Inventory{}
		if err := inv.Read("dump", strings.NewReader(dump.String())); err != nil {
			t.Fatal(err)
		}
		r, err := inv.Translate(Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := spec.FormatDefinition(r.Definition)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.ParseDefinition("made", text); err != nil {
			t.Fatalf("it can't be read back: %v", err)
		}
		if before != "" && before != string(text) {
			t.Error("the same dump gives another definition")
		}
		before = string(text)
		if r.Switches != len(hostile) || r.PortGroups != len(hostile) || r.Hosts != len(hostile) {
			t.Errorf("it has %d switches, %d port groups, %d hosts", r.Switches, r.PortGroups, r.Hosts)
		}
		for _, n := range r.Notes {
			if strings.ContainsAny(n.Object+n.Setting+n.Value+n.Advice, "\x00\x1b\n") {
				t.Errorf("a note has control characters: %q", n)
			}
		}
	}
}

// Objects as govc object.collect writes them are read like any.
func TestRead_ObjectUpdates(t *testing.T) {
	inv := &Inventory{}
	if err := inv.Read("dump", strings.NewReader(`{"kind":"enter","obj":{"type":"DistributedVirtualSwitch",
		"value":"dvs-1"},"changeSet":[{"name":"name","op":"assign","val":"dvs"},{"name":"config","op":"assign",
		"val":{"maxMtu":9000}}]}{"kind":"enter","obj":{"type":"ResourcePool","value":"r"},"changeSet":[{"name":"config",
		"val":{"host":1}}]}`)); err != nil {
		t.Fatal(err)
	}
	r, err := inv.Translate(Options{})
	if err != nil || len(r.Definition.Switches) != 1 || r.Definition.Switches[0].MTU != 9000 {
		t.Errorf("%+v (%v)", r, err)
	}
}

// Objects are read in lists, with the capital letters of older versions of govc, and whatever stands beside what is
// wanted.
func TestRead_Spellings(t *testing.T) {
	inv := &Inventory{}
	if err := inv.Read("dump", strings.NewReader(` [{"Self":{"Type":"DistributedVirtualSwitch","Value":"dvs-1"},
		"Parent":{"a":[1,{"b":null}]},"Config":{"MaxMtu":9000}} , {"self":{"type":"Folder"},"name":"x"}]
		[] {"self":{"type":"DistributedVirtualSwitch","value":"dvs-2"},"config":null,"name":"b%2fc"}`)); err != nil {
		t.Fatal(err)
	}
	r, err := inv.Translate(Options{})
	if err != nil || len(r.Definition.Switches) != 2 || r.Definition.Switches[1].MTU != 9000 ||
		r.Definition.Switches[0].Name != "b-c" {
		t.Errorf("%+v (%v)", r, err)
	}
}

// A dump that breaks off, is of another kind or has no switch gives an error that says where or what to do.
func TestRead_WhatIsNoDump(t *testing.T) {
	for _, c := range []struct{ what, dump, want string }{
		{"nothing", "", "there is no distributed switch"},
		{"YAML", "switches: []", "this is no dump in JSON"},
		{"cut off", `{"self":{"type":"VmwareDistributedVirtualSwitch","val`, "this is no dump in JSON"},
		{"a number", "5", "neither an object nor a list"},
		{"a list of numbers", "[5]", "5 is where { was expected"},
		{"a list that is cut off", `[{"self":{}},`, "unexpected EOF"},
		{"an object that is cut off", `{"self":{}`, "unexpected EOF"},
		{"changes that are cut off", `{"obj":{},"changeSet":[{"name":"config"`, "unexpected EOF"},
		{"changes that are no list", `{"obj":{},"changeSet":{}}`, "{ is where [ was expected"},
		{"a mark too many", `{"self":{}}}`, "this is no dump in JSON"},
		{"other objects", `{"self":{"type":"VirtualMachine","value":"vm-1"}}`, "there is no distributed switch"},
		{"another type", `{"self":{"type":"VmwareDistributedVirtualSwitch"},"config":{"maxMtu":"big"}}`, "maxMtu"},
	} {
		t.Run(c.what, func(t *testing.T) {
			inv := &Inventory{}
			err := inv.Read("dump", strings.NewReader(c.dump))
			if err == nil {
				_, err = inv.Translate(Options{})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := readLab(t).Translate(Options{Switches: []string{"nope"}}); err == nil ||
		!strings.Contains(err.Error(), "there is no switch nope") {
		t.Errorf("a switch that is not there: %v", err)
	}
}

// An import beside what is defined adds; what is there and different is named, or replaced; hosts keep what they have.
func TestMerge(t *testing.T) {
	defined := func(text string) *spec.Definition {
		d, err := spec.ParseDefinition("defined", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	now := func() *spec.Definition {
		return defined("switches: [{name: other}, {name: dvs, mtu: 1500}]\n" +
			"hosts: [{name: h, labels: {site: a, 'uplinks/dvs': '2'}}]\n")
	}
	imported := defined("switches: [{name: dvs, mtu: 9000}]\nhosts: [{name: h, labels: {'uplinks/dvs': '1'}}, " +
		"{name: i}]\n")
	want := []string{"switch dvs", "host h, label uplinks/dvs"}
	if got := Merge(now(), imported, false); !slices.Equal(got, want) {
		t.Errorf("in the way are %q, want %q", got, want)
	}
	onto := now()
	if got := Merge(onto, imported, true); len(got) > 0 {
		t.Errorf("in the way of a replacement are %q", got)
	}
	merged := defined("switches: [{name: other}, {name: dvs, mtu: 9000}]\n" +
		"hosts: [{name: h, labels: {site: a, 'uplinks/dvs': '1'}}, {name: i}]\n")
	if !same(onto, merged) {
		t.Errorf("it is %+v", onto)
	}
	if got := Merge(onto, imported, false); len(got) > 0 || !same(onto, merged) {
		t.Errorf("a second import: %q, %+v", got, onto)
	}
}
