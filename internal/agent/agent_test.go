package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const base = `
switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}]
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: other, vlan: {access: 200}, overrides: {blocked: false}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb}
`

func (r *rig) connect(p spec.Port) error {
	return r.command(func(ctx context.Context) error { _, err := r.Connect(ctx, p); return err })
}

func (r *rig) apply(content string) error {
	return r.command(func(ctx context.Context) error {
		_, err := r.Apply(ctx, api.Apply{File: "next.yaml", Content: content})
		return err
	})
}

func (r *rig) block(port string, blocked bool) error {
	return r.command(func(ctx context.Context) error { return r.Block(ctx, api.Block{Port: port, Blocked: blocked}) })
}

func invalid(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Kind == api.Invalid
}

func TestDeviceThatAppearsIsConnectedAndGivenBack(t *testing.T) {
	r := newRig(t, base)
	if len(r.kernel.last().Attachments) != 0 || r.problems[id("a")] == "" {
		t.Fatalf("without devices: %+v, %v", r.kernel.last(), r.problems)
	}
	r.dev.nic("eno1", 1500)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settle()
	want := []string{"promiscuous eno1 true", "up eno1 true", "ipv6 pa false", "up pa true"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("done to the devices: %v, want %v", r.dev.changes, want)
	}
	if at := r.kernel.last().Attachments; !at[id("a")].PeerRedirect || at[id("u1")].PeerRedirect || at[id("a")].Ifindex == 0 {
		t.Errorf("attachments %+v", at)
	}
	if f := r.kernel.last().Facts; !f[id("a")].Up || f[id("u1")].DeviceMAC.IsZero() {
		t.Errorf("facts %+v", f)
	}
	n := len(r.kernel.applied)
	r.settle()
	if len(r.kernel.applied) != n || len(r.dev.changes) != len(want) {
		t.Error("something was done though nothing changed")
	}
	r.dev.changes = nil
	if err := r.apply("switches: [{name: lab}]"); err != nil {
		t.Fatal(err)
	}
	want = []string{"promiscuous eno1 false", "up eno1 false", "ipv6 pa true", "up pa false"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("given back: %v, want %v", r.dev.changes, want)
	}
}

func TestRestartDoesNothingToDevicesInHand(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settle()
	if err := r.dev.SetUp(*r.dev.byName["pa"], false); err != nil { // by an operator
		t.Fatal(err)
	}
	r.dev.changes = nil
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if len(r.dev.changes) != 0 {
		t.Errorf("a restart did %v", r.dev.changes)
	}
}

func TestCrashBetweenWritingDownAndPreparing(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	r.dev.fail["promiscuous eno1 true"] = errors.New("crash")
	r.settle()
	h := r.saved().held(id("u1"))
	if h == nil || h.Prepared || h.WasPromiscuous {
		t.Fatalf("written down: %+v", h)
	}
	clear(r.dev.fail) // the mode was set all the same
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if h := r.saved().held(id("u1")); h == nil || !h.Prepared || h.WasPromiscuous || h.WasUp {
		t.Errorf("how it was before is forgotten: %+v", h)
	}
}

func TestS3_InitialMACIsTheOneTheAdapterHadWhenItCameUp(t *testing.T) {
	r := newRig(t, base)
	d := r.dev.veth("pb", "02:00:00:00:00:01")
	d.Peer.AdminUp = false
	r.settle()
	if mac := planned(r.plan, "b").InitialMAC; !mac.IsZero() {
		t.Errorf("taken before the adapter was up: %s", mac)
	}
	d.Peer.MAC, d.Peer.AdminUp = plan.MAC{2, 0, 0, 0, 0, 0xb}, true
	r.settle()
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC.String(); mac != "02:00:00:00:00:0b" {
		t.Errorf("taken: %s", mac)
	}
	d.Peer.MAC = plan.MAC{2, 0, 0, 0, 0, 0x66}
	r.settle()
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC.String(); mac != "02:00:00:00:00:0b" {
		t.Errorf("a change became the initial MAC: %s", mac)
	}
	if r.last[id("b")].violation == "" {
		t.Error("no violation")
	}
	d.Index = 99 // another adapter
	r.settle()
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC.String(); mac != "02:00:00:00:00:66" {
		t.Errorf("a new adapter: %s", mac)
	}
}

func TestD2_MACOfAnotherPortIsNotTakenOver(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pb", "02:00:00:00:00:0a")
	r.settle()
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC; !mac.IsZero() {
		t.Errorf("b has a's MAC %s", mac)
	}
	r.settle()
	if !strings.Contains(r.problems[id("b")], "port a") {
		t.Errorf("problem: %q", r.problems[id("b")])
	}
}

func TestNumbersAreKeptAndGivenOnce(t *testing.T) {
	r := newRig(t, base)
	a, b := planned(r.plan, "a").Number, planned(r.plan, "b").Number
	if a == 0 || a == b {
		t.Fatalf("numbers %d and %d", a, b)
	}
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web"}); err != nil {
		t.Fatal(err)
	}
	c := planned(r.plan, "c").Number
	without := strings.Replace(base, "  - {name: a, switch: lab, portGroup: web, device: pa, mac: \"02:00:00:00:00:0a\"}\n", "", 1)
	if err := r.apply(without); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(""); err != nil {
		t.Fatal(err)
	}
	if got := planned(r.plan, "b").Number; got != b {
		t.Errorf("b had %d, has %d", b, got)
	}
	if got := planned(r.plan, "c").Number; got != c {
		t.Errorf("c had %d, has %d", c, got)
	}
}

func TestFailedChangeLeavesEverythingAsItWas(t *testing.T) {
	r := newRig(t, base)
	before := r.saved()
	r.kernel.fail = errors.New("no room in the kernel")
	if err := r.apply(strings.ReplaceAll(base, "100", "300")); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("apply: %v", err)
	}
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web"}); err == nil {
		t.Error("connect succeeded")
	}
	r.kernel.fail = nil
	r.settle()
	after := r.saved()
	if after.Config != before.Config || len(after.Ports) != 0 || planned(r.kernel.last().Plan, "a").Policy.VLAN.V.ID != 100 {
		t.Errorf("state %+v, VLAN %d", after, planned(r.kernel.last().Plan, "a").Policy.VLAN.V.ID)
	}
}

func TestApplyNeverTouchesWhatWasConnectedByCommand(t *testing.T) {
	r := newRig(t, base)
	port := spec.Port{Name: "c", PortGroup: "web", Device: "pc"}
	for range 2 { // the same once more is no error
		if err := r.connect(port); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.connect(spec.Port{Name: "c", PortGroup: "other"}); !invalid(err) {
		t.Errorf("another port of the name: %v", err)
	}
	if err := r.apply(strings.ReplaceAll(base, "web", "renamed")); !invalid(err) || !strings.Contains(err.Error(), "c") {
		t.Errorf("taking its port group away: %v", err)
	}
	if err := r.apply(strings.Replace(base, "name: b", "name: c", 1)); !invalid(err) || !strings.Contains(err.Error(), "connected by command") {
		t.Errorf("declaring its name: %v", err)
	}
	if err := r.apply("switches: [{name: lab, portGroups: [{name: web}]}]"); err != nil || planned(r.plan, "c") == nil {
		t.Errorf("apply: %v, port %v", err, planned(r.plan, "c"))
	}
}

func TestPortThatNoLongerFitsAtStartIsLeftOutAndSaid(t *testing.T) {
	r := newRig(t, base)
	if err := r.connect(spec.Port{Name: "c", PortGroup: "web"}); err != nil {
		t.Fatal(err)
	}
	edited := strings.ReplaceAll(base, "web", "renamed")
	if err := r.restart(edited); err != nil {
		t.Fatal(err)
	}
	if planned(r.plan, "c") != nil || len(r.misfits) != 1 {
		t.Fatalf("misfits %v", r.misfits)
	}
	if err := r.connect(spec.Port{Name: "d", PortGroup: "other"}); err != nil {
		t.Errorf("a known misfit stands in the way: %v", err)
	}
	if err := r.restart(base); err != nil || planned(r.plan, "c") == nil {
		t.Errorf("fits again and is not back: %v", err)
	}
}

func TestS9_BlockIsAnOverride(t *testing.T) {
	r := newRig(t, base)
	blocked := func() bool { return planned(r.kernel.last().Plan, "a").Policy.Blocked.V }
	if err := r.block("a", true); err != nil || !blocked() {
		t.Fatalf("block: %v", err)
	}
	n := len(r.kernel.applied)
	if err := r.block("a", true); err != nil || len(r.kernel.applied) != n {
		t.Errorf("block twice: %v, %d plans", err, len(r.kernel.applied)-n)
	}
	if err := r.restart(base); err != nil || !blocked() {
		t.Errorf("lost by a restart: %v", err)
	}
	if err := r.block("a", false); err != nil || blocked() || len(r.saved().Overrides) != 0 {
		t.Errorf("unblock: %v, overrides %v", err, r.saved().Overrides)
	}
	if err := r.apply(strings.Replace(base, "portGroups:", "defaults: {blocked: true}\n    portGroups:", 1)); err != nil || !blocked() {
		t.Fatalf("blocked by the switch: %v", err)
	}
	if err := r.block("a", false); err != nil || blocked() {
		t.Errorf("unblock against the switch's default: %v", err)
	}
	if err := r.block("nobody", true); err == nil || invalid(err) {
		t.Errorf("unknown port: %v", err)
	}
	move := api.Move{Port: "a", PortGroup: "other"}
	if err := r.command(func(ctx context.Context) error { return r.Move(ctx, move) }); !invalid(err) {
		t.Errorf("into a port group that forbids the override: %v", err)
	}
}

func TestS10_OverridesEndOnlyWithTheOwner(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settle()
	if err := r.block("a", true); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(base); err != nil || len(r.state.Overrides) != 1 {
		t.Fatalf("%v, overrides %v", err, r.state.Overrides)
	}
	delete(r.dev.byName, "pa")
	r.settle()
	if len(r.saved().Overrides) != 0 || planned(r.kernel.last().Plan, "a").Policy.Blocked.V {
		t.Errorf("after the owner has gone: %v", r.saved().Overrides)
	}
}

func TestFileCountsWhenEditedAndTheLastApplyOtherwise(t *testing.T) {
	r := newRig(t, base)
	applied := strings.ReplaceAll(base, "100", "300")
	if err := r.apply(applied); err != nil {
		t.Fatal(err)
	}
	vlan := func() uint16 { return planned(r.kernel.last().Plan, "a").Policy.VLAN.V.ID }
	for _, c := range []struct {
		what, config string
		want         uint16
	}{
		{"restart", base, 300}, {"restart without a file", "", 300}, {"edited", strings.ReplaceAll(base, "100", "400"), 400}, {"same again", strings.ReplaceAll(base, "100", "400"), 400},
	} {
		if err := r.restart(c.config); err != nil || vlan() != c.want {
			t.Errorf("%s: VLAN %d, want %d (%v)", c.what, vlan(), c.want, err)
		}
	}
}

func TestUplinkDeviceBelowTheSwitchMTUIsAFault(t *testing.T) {
	r := newRig(t, base)
	r.dev.nic("eno1", 1500)
	if err := r.apply(strings.Replace(base, "name: lab\n", "name: lab\n    mtu: 9000\n", 1)); !invalid(err) || !strings.Contains(err.Error(), "next.yaml:5") {
		t.Errorf("apply: %v", err)
	}
}

func TestHostPortOfAnotherNameOfOursIsReplacedAndAForeignDeviceIsNot(t *testing.T) {
	file := base + "  - {name: vmk0, switch: lab, portGroup: web, role: host}\n"
	r := newRig(t, file)
	if !slices.Contains(r.dev.changes, "create vmk0 sw-vmk0") {
		t.Fatalf("%v", r.dev.changes)
	}
	mac := planned(r.plan, "vmk0").InitialMAC
	if mac.IsZero() || mac[0]&3 != 2 {
		t.Errorf("derived MAC %s is not a locally administered unicast address", mac)
	}
	r.dev.changes = nil
	if err := r.apply(strings.Replace(file, "name: vmk0", "name: mgmt, device: vmk0", 1)); err != nil {
		t.Fatal(err)
	}
	if d := r.dev.byName["sw-vmk0"]; d == nil || d.Alias != "heddle/test/lab/mgmt" {
		t.Errorf("renamed port: %+v after %v", d, r.dev.changes)
	}
	r.dev.veth("foreign", "02:00:00:00:00:77")
	if err := r.apply(file + "  - {name: foreign, switch: lab, portGroup: web, role: host}\n"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.problems[id("foreign")], "did not make") || slices.Contains(r.dev.changes, "delete foreign") {
		t.Errorf("problem %q, changes %v", r.problems[id("foreign")], r.dev.changes)
	}
}

func TestStrayPairsOfAKilledAgentAreRemoved(t *testing.T) {
	r := newRig(t, base)
	d := r.dev.veth("sw-old", "02:00:00:00:00:70")
	d.Alias = "heddle/test/lab/old"
	other := r.dev.veth("sw-x", "02:00:00:00:00:71")
	other.Alias = "heddle/test2/lab/x"
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if r.dev.byName["sw-old"] != nil || r.dev.byName["sw-x"] == nil {
		t.Errorf("left: %v", r.dev.byName)
	}
}

func TestAgentStartsWithoutAConfigurationAndTakesOneLater(t *testing.T) {
	r := newRig(t, "")
	if err := r.connect(spec.Port{Name: "c", Switch: "lab", PortGroup: "web"}); !invalid(err) {
		t.Errorf("a port without a switch: %v", err)
	}
	if err := r.apply(base); err != nil || len(r.kernel.last().Plan.Switches) != 1 {
		t.Errorf("apply: %v", err)
	}
}
