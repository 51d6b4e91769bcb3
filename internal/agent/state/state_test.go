package state

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/teaming/failover"
)

func TestStateComesBackAsItWasSaved(t *testing.T) {
	dir := t.TempDir()
	s := &Store{dir: dir}
	yes := true
	want := &State{
		Format: stateFormat, Config: Source{File: "f", Content: "switches: []\n", Seen: "x"},
		Ports: []spec.Port{{Name: "vm1/eth0", Switch: "lab", PortGroup: "web", Device: "tap0", MAC: "02:00:00:00:00:01",
			Policy: spec.Policy{VLAN: &spec.VLAN{Access: 7}, Security: spec.Security{Promiscuous: spec.Accept}}}},
		Overrides: map[string]Override{"vm1/eth0": {Blocked: &yes, PortGroup: "other"}},
		Numbers:   []Number{{plan.PortID{Switch: "lab", Name: "vm1/eth0"}, 7}},
		Devices: Devices{Place: "here", Held: []Held{{ID: plan.PortID{Switch: "lab", Name: "vm1/eth0"}, Device: "tap0",
			Index: 5,
			MAC:   plan.MAC{2, 0, 0, 0, 0, 1}, Prepared: true}},
			Departed: []Held{{ID: plan.PortID{Switch: "lab", Name: "uplink1"}, Device: "eno1", Index: 3, Uplink: true,
				Own: plan.MAC{2, 0, 0, 0, 0, 9}}}},
	}
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := (&Store{dir: dir}).Load()
	if err != nil || !cmp.Equal(want, got, cmpopts.IgnoreUnexported(Devices{})) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got, cmpopts.IgnoreUnexported(Devices{})))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
}

// The text that is reused equals the text that would be encoded.
func TestEveryStateIsWrittenWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st, was := &State{Format: stateFormat}, &written{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			i := rapid.IntRange(0, 3).Draw(t, "which")
			id := plan.PortID{Switch: "lab", Name: strings.Repeat("x", i+1)}
			switch rapid.SampledFrom([]string{"port", "number", "use", "hold", "change", "drop", "nothing"}).Draw(t,
				"change") {
			case "port":
				st.Ports = append(slices.Clone(st.Ports), spec.Port{Name: id.Name})
			case "number":
				st.Numbers = append(slices.Clone(st.Numbers), Number{id, uint32(i)})
			case "use":
				st.Uses = append(slices.Clone(st.Uses),
					failover.PortUse{ID: id, Use: failover.Use{Using: []string{id.Name}}})
			case "hold":
				st.Held = append(st.Held, Held{ID: id})
			case "change":
				if i < len(st.Held) {
					st.Held[i].Prepared = !st.Held[i].Prepared
				}
			case "drop":
				st.MoveTo(id.Name)
			}
			now, err := encode(was, st)
			if err != nil {
				t.Fatal(err)
			}
			var got State
			if err := json.Unmarshal(now.text, &got); err != nil {
				t.Fatalf("%s: %v", now.text, err)
			}
			if diff := cmp.Diff(st, &got, cmpopts.IgnoreUnexported(Devices{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
			if rapid.Bool().Draw(t, "committed") {
				was = now
			}
		}
	})
}

// A field of Held that sameHeld does not compare would be lost.
func TestEveryFieldOfADeviceInHandIsCompared(t *testing.T) {
	of := reflect.TypeFor[Held]()
	for i := range of.NumField() {
		var other Held
		f := reflect.ValueOf(&other).Elem().Field(i)
		switch f.Kind() {
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Uint32:
			f.SetUint(1)
		case reflect.Array:
			f.Index(0).SetUint(1)
		case reflect.Struct:
			f.Field(0).SetString("x")
		default:
			t.Fatalf("%s is of a kind this test does not know", of.Field(i).Name)
		}
		if sameHeld(Held{}, other) || !sameHeld(other, other) {
			t.Errorf("%s is not compared", of.Field(i).Name)
		}
	}
}

func TestHalfWrittenStateOfACrashIsNotRead(t *testing.T) {
	dir := t.TempDir()
	s := &Store{dir: dir}
	if err := s.Save(&State{Format: stateFormat, Devices: Devices{Place: "old"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path()+".new", []byte(`{"format": 1, "pla`), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := (&Store{dir: dir}).Load(); err != nil || st.Place != "old" {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestDamagedOrNewerStateIsAnErrorAndNotForgotten(t *testing.T) {
	for content, want := range map[string]string{"{": "damaged", "": "damaged", "null": "damaged",
		`{"format": 99}`: "newer"} {
		s := &Store{dir: t.TempDir()}
		if err := os.WriteFile(s.path(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}
