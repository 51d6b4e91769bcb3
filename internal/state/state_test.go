package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heddle/internal/plan"
	"heddle/internal/spec"
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
		Place:     "here", Held: []Held{{ID: plan.PortID{Switch: "lab", Name: "vm1/eth0"}, Device: "tap0", Index: 5, MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Prepared: true}},
		Departed: []Held{{ID: plan.PortID{Switch: "lab", Name: "uplink1"}, Device: "eno1", Index: 3, Uplink: true, Own: plan.MAC{2, 0, 0, 0, 0, 9}}},
	}
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := (&Store{dir: dir}).Load()
	if err != nil || !cmp.Equal(want, got, cmpopts.IgnoreUnexported(State{})) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got, cmpopts.IgnoreUnexported(State{})))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
}

func TestHalfWrittenStateOfACrashIsNotRead(t *testing.T) {
	dir := t.TempDir()
	s := &Store{dir: dir}
	if err := s.Save(&State{Format: stateFormat, Place: "old"}); err != nil {
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
	for content, want := range map[string]string{"{": "damaged", "": "damaged", "null": "damaged", `{"format": 99}`: "newer"} {
		s := &Store{dir: t.TempDir()}
		if err := os.WriteFile(s.path(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}
