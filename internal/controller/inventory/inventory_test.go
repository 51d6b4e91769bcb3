package inventory

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/internal/slice"
	"heddle/internal/spec"
)

const fleet = `
switches:
- name: dvs
  uplinks: [{name: uplink1}, {name: uplink2}]
  portGroups:
  - {name: db, vlan: {access: 20}}
  - {name: web, vlan: {access: 10}}
- name: storage
  uplinks: [{name: uplink1}]
  portGroups: [{name: iscsi}]
templates:
- name: a
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]}]
hosts:
- name: esx2
  labels: {rack: a}
- name: esx3
  labels: {rack: a}
  switches:
  - {name: dvs, uplinks: [{name: uplink1, device: ens3}]}
  - {name: storage, uplinks: [{name: uplink1, device: ens4}]}
`

func inventoryOf(t *testing.T, text string) *Inventory {
	t.Helper()
	d, err := spec.ParseDefinition("fleet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Of(d)
	if err != nil {
		t.Fatal(err)
	}
	v, err := New(objects)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sliceOf(t *testing.T, v *Inventory, host string, labels map[string]string) *slice.Set {
	t.Helper()
	s, err := v.Slice(host, labels)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *slice.Set) (list []string) {
	for o := range s.All() {
		list = append(list, o.String())
	}
	return list
}

func TestDefinitionBecomesObjectsAndBack(t *testing.T) {
	v := inventoryOf(t, fleet)
	d, err := v.Definition()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Of(d)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != v.Objects().Hash() || again.Len() != 8 {
		t.Errorf("objects %v become %v", names(v.Objects()), names(again))
	}
}

func TestAHostIsHandedItsSwitchesWithEveryPortGroup(t *testing.T) {
	v := inventoryOf(t, fleet)
	one := sliceOf(t, v, "esx2", nil)
	if got, want := names(one), []string{"portGroup dvs/db", "portGroup dvs/web", "switch dvs"}; !slices.Equal(got,
		want) {
		t.Errorf("esx2 is handed %v, want %v", got, want)
	}
	cfg, err := one.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []spec.Uplink{{Name: "uplink1", Device: "eno1"}, {Name: "uplink2", Device: "eno2"}}; !reflect.DeepEqual(
		cfg.Switches[0].Uplinks, want) {
		t.Errorf("uplinks %+v, want %+v", cfg.Switches[0].Uplinks, want)
	}
	if sliceOf(t, v, "new", map[string]string{"rack": "a"}) != one {
		t.Error("a host that joined with the labels of the template is handed another set")
	}
	if s := sliceOf(t, v, "new", nil); s.Len() != 0 {
		t.Errorf("a host without switches is handed %v", names(s))
	}
	three, err := sliceOf(t, v, "esx3", nil).Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(three.Switches) != 2 || three.Switches[0].Uplinks[0].Device != "ens3" ||
		three.Switches[0].Uplinks[1].Device != "" || three.Switches[1].Uplinks[0].Device != "ens4" {
		t.Errorf("the host's own entry does not replace the template's: %+v", three.Switches)
	}
}

func TestAChangedPortGroupIsTheOnlyDifference(t *testing.T) {
	before := sliceOf(t, inventoryOf(t, fleet), "esx2", nil)
	after := sliceOf(t, inventoryOf(t, strings.Replace(fleet, "access: 10", "access: 11", 1)), "esx2", nil)
	if c := slice.Between(before, after); len(c.Put) != 1 || c.Put[0].Name != "dvs/web" || len(c.Removed) != 0 {
		t.Errorf("change %+v", c)
	}
}

func TestFieldsThatThisProgramDoesNotKnowReachTheHost(t *testing.T) {
	objects := inventoryOf(t, fleet).Objects().Clone()
	objects.Put(slice.Object{Key: slice.Key{Kind: slice.Switch, Name: "dvs"},
		Doc: []byte(`{"name":"dvs","later":1,"uplinks":[{"name":"uplink1","soon":true}]}`)})
	objects.Put(slice.Object{Key: slice.Key{Kind: "segment", Name: "x"}, Doc: []byte(`{}`)})
	v, err := New(objects)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := sliceOf(t, v, "esx2", nil).Get(slice.Key{Kind: slice.Switch, Name: "dvs"})
	for _, want := range []string{`"later":1`, `"soon":true`, `"device":"eno1"`} {
		if !strings.Contains(string(o.Doc), want) {
			t.Errorf("document %s lacks %s", o.Doc, want)
		}
	}
	if _, err := sliceOf(t, v, "esx2", nil).Config(nil); err == nil || !strings.Contains(err.Error(), "later") {
		t.Errorf("a host that does not know the field: %v", err)
	}
}
