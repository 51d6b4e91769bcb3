package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

func TestDeviceThatAppearsIsConnectedAndGivenBack(t *testing.T) {
	// 100 ms have passed before the uplink is used
	r := newRig(t, strings.Replace(base, "name: lab", "name: lab\n    upDelay: 0s", 1))
	if len(r.kernel.last().Attachments) != 0 || r.Active().Problems[id("a")].Code != problem.DeviceMissing {
		t.Fatalf("without devices: %+v, %v", r.kernel.last(), r.Active().Problems)
	}
	r.dev.nic("eno1", 1500)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settler.settle()
	want := []string{"promiscuous eno1 true", "up eno1 true", "ipv6 pa false", "up pa true"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("done to the devices: %v, want %v", r.dev.changes, want)
	}
	if at := r.kernel.last().Attachments; !at[id("a")].PeerRedirect || at[id("u1")].PeerRedirect ||
		at[id("a")].Ifindex == 0 {
		t.Errorf("attachments %+v", at)
	}
	if f := r.kernel.last().Facts; !f[id("a")].Up || f[id("u1")].DeviceMAC.IsZero() {
		t.Errorf("facts %+v", f)
	}
	n := len(r.kernel.applied)
	r.settler.settle()
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
	r.settler.settle()
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
	looked := false
	r.dev.before = func(what string) {
		looked = true
		if h := r.saved().Of(id("u1")); h == nil || h.Prepared || h.WasPromiscuous || h.WasUp {
			t.Errorf("before %q: written down %+v", what, h)
		}
	}
	r.settler.settle()
	if !looked {
		t.Fatal("the device was not touched")
	}
	r.dev.before = func(string) {}
	clear(r.dev.fail) // the mode was set even so
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if h := r.saved().Of(id("u1")); h == nil || !h.Prepared || h.WasPromiscuous || h.WasUp {
		t.Errorf("how it was before is forgotten: %+v", h)
	}
}

func TestS3_InitialMACIsTheOneTheAdapterHadWhenItCameUp(t *testing.T) {
	r := newRig(t, base)
	d := r.dev.veth("pb", "02:00:00:00:00:01")
	d.Peer.AdminUp = false
	r.settler.settle()
	if mac := planned(r.Active().Plan, "b").InitialMAC; !mac.IsZero() {
		t.Errorf("taken before the adapter was up: %s", mac)
	}
	d.Peer.MAC, d.Peer.AdminUp = plan.MAC{2, 0, 0, 0, 0, 0xb}, true
	r.settler.settle()
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC.String(); mac != "02:00:00:00:00:0b" {
		t.Errorf("taken: %s", mac)
	}
	d.Peer.MAC = plan.MAC{2, 0, 0, 0, 0, 0x66}
	r.settler.settle()
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC.String(); mac != "02:00:00:00:00:0b" {
		t.Errorf("a change became the initial MAC: %s", mac)
	}
	if r.reporter.last[id("b")].violation.None() {
		t.Error("no violation")
	}
	d.Index = 99 // another adapter
	r.settler.settle()
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC.String(); mac != "02:00:00:00:00:66" {
		t.Errorf("a new adapter: %s", mac)
	}
}

func TestD2_MACOfAnotherPortIsNotTakenOver(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pb", "02:00:00:00:00:0a")
	r.settler.settle()
	if mac := planned(r.kernel.last().Plan, "b").InitialMAC; !mac.IsZero() {
		t.Errorf("b has a's MAC %s", mac)
	}
	r.settler.settle()
	if p := r.Active().Problems[id("b")]; p.Code != problem.DuplicateMAC || p.Peer != "a" {
		t.Errorf("problem: %q", p)
	}
}

func TestHostPortOfAnotherNameOfOursIsReplacedAndAForeignDeviceIsNot(t *testing.T) {
	file := base + "  - {name: vmk0, switch: lab, portGroup: web, role: host}\n"
	r := newRig(t, file)
	if !slices.Contains(r.dev.changes, "create vmk0 sw-vmk0") {
		t.Fatalf("%v", r.dev.changes)
	}
	mac := planned(r.Active().Plan, "vmk0").InitialMAC
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
	if !strings.Contains(r.Active().Problems[id("foreign")].Text(), "did not make") ||
		slices.Contains(r.dev.changes, "delete foreign") {
		t.Errorf("problem %q, changes %v", r.Active().Problems[id("foreign")], r.dev.changes)
	}
}

func TestDeviceThatGoesWhileGivenBack(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("pa", "02:00:00:00:00:0a")
	r.settler.settle()
	r.dev.fail["up pa false"] = fmt.Errorf("set the state of device pa: %w", unix.ENODEV)
	if err := r.apply("switches: [{name: lab}]"); err != nil {
		t.Fatal(err)
	}
	if len(r.state.Released) != 0 {
		t.Errorf("still to give back: %+v", r.state.Released)
	}
}

// The kernel keeps promiscuous mode and offload settings of a device that is moved to another namespace and back.
func TestADeviceThatWasAwayIsGivenBackAsItWasBefore(t *testing.T) {
	r := newRig(t, base)
	nic := r.dev.nic("eno1", 1500)
	r.settler.settle()
	if !nic.FlagPromiscuous {
		t.Fatal("the uplink's device is not promiscuous")
	}
	for _, c := range []struct{ noticed, restarted bool }{{noticed: true}, {noticed: false},
		{noticed: true, restarted: true}} {
		// the device was back before the agent looked
		if c.noticed {
			delete(r.dev.byName, "eno1")
			r.settler.settle()
		}
		if c.restarted { // another agent finds it, and knows only what is on disk
			if err := r.restart(base); err != nil {
				t.Fatal(err)
			}
		}
		nic.AdminUp, nic.Born = false, nic.Born+1
		r.dev.byName["eno1"] = nic
		r.settler.settle()
	}
	if h := r.state.Of(plan.PortID{Switch: "lab", Name: "u1"}); h == nil || h.WasPromiscuous || !nic.AdminUp {
		t.Errorf("after it came back: %+v, up %v", h, nic.AdminUp)
	}
	if err := r.apply("switches: [{name: lab, portGroups: [{name: web}]}]"); err != nil {
		t.Fatal(err)
	}
	if nic.FlagPromiscuous {
		t.Error("it stays promiscuous though it is no uplink any more")
	}
}
