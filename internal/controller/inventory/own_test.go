package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/slice"
	"heddle/internal/spec"
)

// pools is a definition with host ports.
const pools = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: mgmt}
  - {name: vault, labels: {zone: vault}}
  - {name: db, binding: static, overrides: {security: true}}
templates:
- name: racked
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno1}]}]
  hostPorts:
  - {name: vmk0, switch: dvs, portGroup: mgmt, pools: [192.0.2.0/29, "2001:db8::/64"]}
  - {name: vmk1, switch: dvs, portGroup: mgmt, pools: [192.0.2.0/29]}
  - {name: vmk9, switch: dvs, portGroup: vault, pools: [198.51.100.0/24]}
hosts:
- name: fixed
  hostPorts: [{name: vmk1, switch: dvs, portGroup: mgmt, addresses: [203.0.113.1/24], mac: "02:00:00:00:00:01"}]
ports:
- {id: "33", switch: dvs, portGroup: db, security: {promiscuous: accept}}
`

func members(names ...string) (list []Member) {
	for _, name := range names {
		list = append(list, Member{ID: "id-" + name, Name: name, Labels: map[string]string{"rack": "a"}})
	}
	return list
}

// given is what a grant makes of what hosts have, as texts.
func given(t *testing.T, v *Inventory, have map[string][]Granted, hosts ...string) []*Exhausted {
	t.Helper()
	changed, full := v.Grant(members(hosts...), have)
	for name, list := range changed {
		if have[name] = list; len(list) == 0 {
			delete(have, name)
		}
	}
	seen := map[string]bool{}
	for name, list := range have {
		for _, g := range list {
			if seen[g.Address.String()] {
				t.Errorf("%s has %s, which another host port has", name, g.Address)
			}
			seen[g.Address.String()] = true
		}
	}
	return full
}

func textOf(list []Granted) (texts []string) {
	for _, g := range list {
		texts = append(texts, g.Port+" "+g.Address.String())
	}
	return texts
}

func TestGrant_EveryHostPortHasAnAddressOfItsOwn(t *testing.T) {
	v, have := inventoryOf(t, pools), map[string][]Granted{}
	if full := given(t, v, have, "b", "fixed", "a"); len(full) > 0 {
		t.Fatalf("exhausted: %v", full[0])
	}
	for name, want := range map[string][]string{
		"a":     {"vmk0 192.0.2.1", "vmk0 2001:db8::1", "vmk1 192.0.2.2"},
		"b":     {"vmk0 192.0.2.3", "vmk0 2001:db8::2", "vmk1 192.0.2.4"},
		"fixed": {"vmk0 192.0.2.5", "vmk0 2001:db8::3"},
	} {
		if got := textOf(have[name]); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	if changed, _ := v.Grant(members("a", "b", "fixed"), have); len(changed) > 0 {
		t.Errorf("asked again, it changes %v", changed)
	}
	full := given(t, v, have, "c")
	if len(full) != 1 || full[0].Error() != "pool 192.0.2.0/29 has no free address for host port vmk1 of host c: "+
		"make it "+
		"larger, or remove hosts that are no more" {
		t.Errorf("exhausted: %v", full)
	}

	// The pool grows, and another text of it stands for the same: what was given stays.
	larger := inventoryOf(t, strings.ReplaceAll(pools, "192.0.2.0/29", "192.0.2.1-192.0.2.99/24"))
	before := textOf(have["a"])
	if full := given(t, larger, have, "a", "b", "c", "fixed"); len(full) > 0 ||
		!slices.Equal(textOf(have["a"]), before) {
		t.Errorf("a has %q, before %q; %v", textOf(have["a"]), before, full)
	}
	// A host that is removed leaves its addresses; a host port that draws nothing more gives its own back.
	delete(have, "a")
	given(t, larger, have, "z")
	if got := textOf(have["z"]); !slices.Equal(got, []string{"vmk0 192.0.2.1", "vmk0 2001:db8::1", "vmk1 192.0.2.2"}) {
		t.Errorf("the next host has %q", got)
	}
	given(t, inventoryOf(t, strings.ReplaceAll(pools, "portGroup: mgmt, pools: [192.0.2.0/29]", "portGroup: mgmt")),
		have,
		"b", "c", "fixed", "z")
	if got := textOf(have["b"]); !slices.Equal(got, []string{"vmk0 192.0.2.3", "vmk0 2001:db8::2"}) {
		t.Errorf("b has %q", got)
	}
}

func TestOwn_IsTheHostsAlone(t *testing.T) {
	v := inventoryOf(t, pools)
	have := map[string][]Granted{}
	given(t, v, have, "a", "fixed")
	macs := map[string]bool{}
	for host, want := range map[string][]string{
		"a":     {"vmk0 [192.0.2.1/29 2001:db8::1/64]", "vmk1 [192.0.2.2/29]"},
		"fixed": {"vmk0 [192.0.2.3/29 2001:db8::2/64]", "vmk1 [203.0.113.1/24]"},
	} {
		own, without, err := v.Own(members(host)[0], have[host], map[string]string{"33": "dvs/db", "34": "dvs/db"})
		if err != nil || len(without) > 0 {
			t.Fatal(err, without)
		}
		cfg, err := own.Over(sliceOf(t, v, host, map[string]string{"rack": "a"})).Config(nil)
		if err != nil {
			t.Fatalf("a host cannot read it: %v", err)
		}
		var got []string
		for _, p := range cfg.Ports {
			got = append(got, fmt.Sprint(p.Name, " ", p.Addresses))
			if p.Role != spec.Host || macs[p.MAC] || p.MAC == "" {
				t.Errorf("port %+v: role, or a MAC that another host has", p)
			}
			macs[p.MAC] = true
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", host, got, want)
		}
		settings, err := own.Settings()
		if err != nil || len(settings) != 1 || settings["33"].Security.Promiscuous != spec.Accept {
			t.Errorf("settings %+v, %v", settings, err)
		}
	}
	own, without, err := v.Own(members("new")[0], nil, map[string]string{"33": "dvs/mgmt"})
	if err != nil || own.Len() != 0 || len(without) != 2 || !strings.Contains(without[0], "pool 192.0.2.0/29") {
		t.Errorf("without addresses: %d objects, %q, %v", own.Len(), without, err)
	}
}

// A definition with host ports and settings is the same after it was written and read.
func TestOf_HostPortsAndSettingsStay(t *testing.T) {
	v := inventoryOf(t, pools)
	d, err := v.Definition()
	if err != nil {
		t.Fatal(err)
	}
	set, err := Of(d)
	if err != nil || set.Hash() != v.Objects().Hash() {
		t.Errorf("%v: it differs: %+v", err, slice.Between(v.Objects(), set))
	}
	o, _ := set.Get(slice.Key{Kind: slice.StaticPort, Name: "33"})
	if !json.Valid(o.Doc) {
		t.Errorf("settings %s", o.Doc)
	}
}
