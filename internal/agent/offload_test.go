package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/held"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

func TestUplinkOffloadsAreSwitchedOffOnceAndGivenBack(t *testing.T) {
	r := newRig(t, "")
	r.dev.nic("eno1", 1500)
	r.dev.offload["eno1"] = map[hostdev.Offload]hostdev.OffloadState{hostdev.LRO: {On: true},
		hostdev.VLANFilter: {On: true}, hostdev.VLANFilterAD: {}}
	r.dev.before = func(what string) {
		if strings.HasPrefix(what, "rx-") && strings.HasSuffix(what, "false") && len(r.saved().Held[0].Offloads) != 2 {
			t.Errorf("before %q: written down %v", what, r.saved().Held[0].Offloads)
		}
	}
	if err := r.apply(base); err != nil {
		t.Fatal(err)
	}
	want := []string{"promiscuous eno1 true", "up eno1 true", "rx-lro eno1 false", "rx-vlan-filter eno1 false"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("done %v, want %v", r.dev.changes, want)
	}
	if u := r.answers.view().Uplinks[0]; len(u.Warnings) != 0 ||
		!slices.Equal(u.Changed, []string{"promiscuous mode on", "rx-lro off", "rx-vlan-filter off"}) {
		t.Errorf("shown: %+v", u)
	}
	r.dev.offload["eno1"][hostdev.LRO] = hostdev.OffloadState{On: true} // by an operator
	r.dev.changes = nil
	if err := r.restart(""); err != nil || len(r.dev.changes) != 0 {
		t.Errorf("a restart did %v, %v", r.dev.changes, err)
	}
	if u := r.answers.view().Uplinks[0]; len(u.Warnings) != 1 || !strings.Contains(u.Warnings[0], "rx-lro") {
		t.Errorf("an operator's choice is not warned of: %+v", u)
	}
	if err := r.apply("switches: [{name: lab}]"); err != nil {
		t.Fatal(err)
	}
	want = []string{"promiscuous eno1 false", "rx-lro eno1 true", "rx-vlan-filter eno1 true", "up eno1 false"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("given back %v, want %v", r.dev.changes, want)
	}
}

func TestOffloadsThatCannotBeSwitchedOffAreAWarning(t *testing.T) {
	r := newRig(t, "")
	r.dev.nic("eno1", 1500)
	r.dev.offload["eno1"] = map[hostdev.Offload]hostdev.OffloadState{hostdev.LRO: {On: true},
		hostdev.VLANFilter: {On: true, Fixed: true}}
	r.dev.fail["rx-lro eno1 false"] = errors.New("operation not supported")
	if err := r.apply(base); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(r.dev.changes, "rx-vlan-filter eno1 false") {
		t.Errorf("tried what is fixed: %v", r.dev.changes)
	}
	u := r.answers.view().Uplinks[0]
	if len(u.Warnings) != 2 || !strings.Contains(u.Warnings[0], "rx-lro of device eno1 is on:") ||
		!strings.Contains(u.Warnings[1], "cannot be switched off") {
		t.Errorf("warnings %q", u.Warnings)
	}
	if len(r.kernel.last().Attachments) != 1 {
		t.Error("the uplink is not connected")
	}
}

func TestMembersOfABondOrBridgeAreRefused(t *testing.T) {
	r := newRig(t, base)
	nic := r.dev.nic("eno1", 1500)
	pa := r.dev.veth("pa", "02:00:00:00:00:0a")
	nic.Master, pa.Master = hostdev.Master{Name: "bond0", Driver: "bond"}, hostdev.Master{Name: "br0", Driver: "bridge"}
	r.settler.settle()
	if len(r.kernel.last().Attachments) != 0 || len(r.dev.changes) != 0 {
		t.Errorf("taken all the same: %+v, %v", r.kernel.last().Attachments, r.dev.changes)
	}
	for name, want := range map[string]string{"u1": "member of bond bond0: use bond0 as the uplink's device",
		"a": "in bridge br0: take it out (ip link set pa nomaster)"} {
		t.Run(name, func(t *testing.T) {
			if got := r.Active().Problems[id(name)]; !strings.Contains(got.Text(), want) {
				t.Errorf("%s: %q does not say %q", name, got, want)
			}
		})
	}
	nic.Master, pa.Master = hostdev.Master{Name: "blue", Driver: "vrf"}, hostdev.Master{}
	r.settler.settle()
	if len(r.kernel.last().Attachments) != 2 {
		t.Errorf("not taken: %v", r.Active().Problems)
	}
}

func TestOffloadsOfABondsMembersAreSwitchedOffAndGivenBack(t *testing.T) {
	r := newRig(t, "")
	r.dev.nic("eno1", 1500).Driver = "bond"
	r.dev.nic("port1", 1500).Master = hostdev.Master{Name: "eno1", Driver: "bond"}
	for _, name := range []string{"eno1", "port1"} {
		r.dev.offload[name] = map[hostdev.Offload]hostdev.OffloadState{hostdev.LRO: {On: true}}
	}
	if err := r.apply(base); err != nil {
		t.Fatal(err)
	}
	if u := r.answers.view().Uplinks[0]; !slices.Equal(u.Changed, []string{"promiscuous mode on", "rx-lro off",
		"rx-lro off on its member port1"}) {
		t.Errorf("shown: %+v", u)
	}
	r.dev.changes = nil
	if err := r.apply("switches: [{name: lab}]"); err != nil {
		t.Fatal(err)
	}
	want := []string{"promiscuous eno1 false", "rx-lro eno1 true", "rx-lro port1 true", "up eno1 false"}
	if !slices.Equal(r.dev.changes, want) {
		t.Errorf("given back %v, want %v", r.dev.changes, want)
	}
}

// The offloads of renamed devices are restored, those of a bond's members too. Members are found by their permanent
// address, because they share the bond's address.
func TestOffloadsOfRenamedDevicesAreGivenBack(t *testing.T) {
	r := newRig(t, base)
	bond := r.dev.nic("eno1", 1500)
	bond.Driver = "bond"
	member := r.dev.nic("m0", 1500)
	member.Permanent, member.Master = plan.MAC{2, 1, 1, 1, 1, 1}, hostdev.Master{Name: "eno1", Driver: "bond"}
	for _, name := range []string{"eno1", "m0"} {
		r.dev.offload[name] = map[hostdev.Offload]hostdev.OffloadState{hostdev.LRO: {On: true}}
	}
	r.settler.settle()
	if r.dev.offload["eno1"][hostdev.LRO].On || r.dev.offload["m0"][hostdev.LRO].On {
		t.Fatal("nothing was switched off: this test is void")
	}
	r.dev.rename("eno1", "wan")
	r.dev.rename("m0", "lan")
	member.Master.Name = "wan"
	member.MAC = bond.MAC // as a member of a bond whose MAC the bond now uses
	if err := held.GiveBack(r.dev, &r.state.Devices); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"wan", "lan"} {
		if !r.dev.offload[name][hostdev.LRO].On {
			t.Errorf("LRO of %s stays off", name)
		}
	}
	if bond.FlagPromiscuous {
		t.Error("the bond stays promiscuous")
	}
}

// Another device that now has the index of the held one is left alone.
func TestAnotherDeviceOfTheIndexIsNotGivenBack(t *testing.T) {
	r := newRig(t, base)
	d := r.dev.nic("eno1", 1500)
	r.settler.settle()
	r.dev.rename("eno1", "other")
	d.MAC = plan.MAC{2, 7, 7, 7, 7, 7}
	r.dev.changes = nil
	if err := held.GiveBack(r.dev, &r.state.Devices); err != nil || len(r.dev.changes) > 0 {
		t.Errorf("done to another device: %v, %v", r.dev.changes, err)
	}
}
