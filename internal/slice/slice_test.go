package slice

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/spec"
)

func object(kind Kind, name, doc string) Object { return Object{Key{kind, name}, []byte(doc)} }

func definition() *Set {
	return Of(
		object(Switch, "dvs", `{"name":"dvs","uplinks":[{"name":"uplink1","device":"eno1"}]}`),
		object(PortGroup, "dvs/web", `{"name":"web","vlan":{"access":10}}`),
		object(PortGroup, "dvs/db", `{"name":"db","vlan":{"access":20}}`),
		object(Port, "vmk0", `{"name":"vmk0","switch":"dvs","portGroup":"db","role":"host"}`),
	)
}

func TestHashIsOfTheContentAlone(t *testing.T) {
	a, b := definition(), &Set{}
	for o := range a.All() {
		b.Put(object(o.Kind, o.Name, "{}"))
	}
	if a.Hash() == b.Hash() {
		t.Error("other documents, the same hash")
	}
	for _, o := range slices.Backward(slices.Collect(a.All())) { // in another order
		b.Put(o)
	}
	if a.Hash() != b.Hash() {
		t.Error("the same content, another hash")
	}
	b.Remove(Key{PortGroup, "dvs/web"})
	b.Put(object(PortGroup, "dvs/we", `b{"name":"web","vlan":{"access":10}}`))
	if a.Hash() == b.Hash() {
		t.Error("parts cut elsewhere give the same hash")
	}
	if (&Set{}).Hash() != (Hash{}) {
		t.Error("the hash of nothing is not zero")
	}
}

func TestBetweenAndApplyMakeOneSetTheOther(t *testing.T) {
	from, to := definition(), definition()
	to.Put(object(PortGroup, "dvs/web", `{"name":"web","vlan":{"access":11}}`))
	to.Put(object(PortGroup, "dvs/new", `{"name":"new"}`))
	to.Remove(Key{PortGroup, "dvs/db"})
	c := Between(from, to)
	if len(c.Put) != 2 || c.Put[0].Name != "dvs/new" || c.Put[1].Name != "dvs/web" || len(c.Removed) != 1 {
		t.Errorf("change %+v", c)
	}
	got := from.Clone()
	got.Apply(c)
	if got.Hash() != to.Hash() || from.Hash() == to.Hash() || !Between(got, to).Empty() {
		t.Error("the change does not make one set the other")
	}
}

func TestConfigIsReadLikeAFile(t *testing.T) {
	cfg, err := definition().Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	sw := cfg.Switches[0]
	if len(cfg.Switches) != 1 || sw.Uplinks[0].Device != "eno1" || len(sw.PortGroups) != 2 || len(cfg.Ports) != 1 {
		t.Errorf("configuration %+v", cfg)
	}
}

func TestConfigSaysWhatItDoesNotUnderstand(t *testing.T) {
	for want, o := range map[string]Object{
		"portGroups[new].later": object(PortGroup, "dvs/new", `{"name":"new","later":true}`),
		"vlan.access":           object(PortGroup, "dvs/new", `{"name":"new","vlan":{"access":5000}}`),
		"there is no switch":    object(PortGroup, "other/new", `{"name":"new"}`),
		"does not know objects": object("segment", "new", `{}`),
		"switch dvs":            object(Switch, "dvs", `[]`),
	} {
		t.Run(want, func(t *testing.T) {
			s := definition()
			s.Put(o)
			if _, err := s.Config(nil); err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), ":1:") {
				t.Errorf("error %v, want one with %q and without positions", err, want)
			}
		})
	}
}

// A host that is handed more than an agent reads says how much that is and what to do, in place of what is said of a
// file: where the size alone tells, and where the values have to be counted.
func TestConfigSaysThatItIsTooMuch(t *testing.T) {
	for _, n := range []int{100_000, 40_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := &Set{}
			s.Put(object(Switch, "dvs", `{"name":"dvs"}`))
			for i := range n {
				s.Put(object(PortGroup, fmt.Sprintf("dvs/g%d", i), fmt.Sprintf(`{"name":"g%d","vlan":{"access":5}}`, i)))
			}
			_, err := s.Config(nil)
			var faults spec.Faults
			if !errors.As(err, &faults) || len(faults) != 1 || !faults[0].TooMuch {
				t.Fatalf("error %.300v, want one fault of a slice that is too much", err)
			}
			if want := fmt.Sprintf("%d port groups", n); !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "labels") || strings.Contains(err.Error(), "file") {
				t.Errorf("error %q, want one with %q and what to do", err, want)
			}
		})
	}
}
