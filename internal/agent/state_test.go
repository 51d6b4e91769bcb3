package agent

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heddle/internal/api"
	"heddle/internal/hostdev"
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
		Numbers:   []Number{{id("vm1/eth0"), 7}},
		Place:     "here", Held: []Held{{ID: id("vm1/eth0"), Device: "tap0", Index: 5, MAC: plan.MAC{2, 0, 0, 0, 0, 1}, Prepared: true}},
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

func TestDiffReadsLikeTheChange(t *testing.T) {
	from := parse(t, base)
	to := parse(t, `
switches:
  - name: lab
    mtu: 9000
    portGroups:
      - {name: web, vlan: {trunk: ["0", "10-20"]}}
      - {name: new}
ports:
  - {name: b, switch: lab, portGroup: web, device: px}
`)
	got, err := diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Change{
		{Kind: "-", Object: "uplink lab/u1"},
		{Kind: "-", Object: "port group lab/other"},
		{Kind: "-", Object: "port a"},
		{Kind: "+", Object: "switch lab", Field: "mtu", New: "9000"},
		{Kind: "+", Object: "port group lab/web", Field: "vlan.trunk", New: "[0, 10-20]"},
		{Kind: "-", Object: "port group lab/web", Field: "vlan.access", Old: "100"},
		{Kind: "+", Object: "port group lab/new"},
		{Kind: "~", Object: "port b", Field: "device", Old: "pb", New: "px"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if same, err := diff(from, parse(t, base)); err != nil || len(same) != 0 {
		t.Errorf("equal files differ: %v %v", same, err)
	}
}

func TestSwitchEndNamesFitAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, device := range []string{"vmk0", "vmk1", "123456789012", "1234567890123", "1234567890124", "123456789012345", "äöüäöüä"} {
		end := switchEnd(device)
		if len(end) > hostdev.NameMax || !strings.HasPrefix(end, "sw-") {
			t.Errorf("%s: %q", device, end)
		}
		if other, dup := seen[end]; dup {
			t.Errorf("%s and %s are both %s", device, other, end)
		}
		seen[end] = device
	}
}

func TestD1_D2_FactsOfADevice(t *testing.T) {
	up := hostdev.End{MTU: 1500, AdminUp: true, Carrier: true}
	peer := hostdev.End{MTU: 1400, AdminUp: true, Carrier: true, MAC: plan.MAC{2, 0, 0, 0, 0, 9}, Promiscuous: true}
	down := peer
	down.AdminUp = false
	for _, c := range []struct {
		what string
		d    hostdev.Device
		want plan.Fact
	}{
		{"tap", hostdev.Device{Kind: hostdev.Tap, End: up}, plan.Fact{Up: true, MTU: 1500}},
		{"veth seen", hostdev.Device{Kind: hostdev.Veth, End: up, Peer: hostdev.Peer{Index: 2, Seen: true, End: peer}},
			plan.Fact{Up: true, MTU: 1400, SeenMAC: peer.MAC, Promiscuous: plan.AsksYes}},
		{"guest down, carrier not yet gone", hostdev.Device{Kind: hostdev.Veth, End: up, Peer: hostdev.Peer{Index: 2, Seen: true, End: down}},
			plan.Fact{MTU: 1400, SeenMAC: peer.MAC, Promiscuous: plan.AsksYes}},
		{"veth not seen", hostdev.Device{Kind: hostdev.Veth, End: up, Peer: hostdev.Peer{Index: 2}}, plan.Fact{Up: true, MTU: 1500}},
	} {
		if got := portFact(c.d); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestNamesOfAgents(t *testing.T) {
	for name, ok := range map[string]bool{"default": true, "host-1_a": true, "": false, "../etc": false, "a/b": false, "-x": false, ".": false, strings.Repeat("x", 64): false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestK13_PeerRedirectOnlyIntoAnotherNamespace(t *testing.T) {
	for _, c := range []struct {
		d    hostdev.Device
		want bool
	}{
		{hostdev.Device{Kind: hostdev.Veth, Peer: hostdev.Peer{Index: 2, Elsewhere: true}}, true},
		{hostdev.Device{Kind: hostdev.Veth, Peer: hostdev.Peer{Index: 2}}, false},
		{hostdev.Device{Kind: hostdev.Tap}, false},
	} {
		if got := portAttachment(c.d).PeerRedirect; got != c.want {
			t.Errorf("%+v: %v", c.d, got)
		}
	}
}
