package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/agent/moves"
	"heddle/internal/agent/state"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// MACs that came with a port in a bundle are announced in their VLANs when they are installed; those that this host
// knows already are not, and neither are those that its kernel does not take.
func TestS50_S79_WhatIsInstalledIsAnnounced(t *testing.T) {
	r := newTeamRig(t, "")
	r.dev.tap("tap0")
	const own = "52:54:00:00:00:0a"
	if err := r.connectIncoming(spec.Port{Name: "vm", PortGroup: "all", Device: "tap0", MAC: own}); err != nil {
		t.Fatal(err)
	}
	from := travelHost(t, strings.Replace(lenient, "vlan: {access: 100}", `vlan: {trunk: ["0-4094"]}`, 1), 0)
	from.arrives()
	macs := []observe.MACEntry{{VLAN: 300, MAC: plan.MAC{2, 0, 0, 0, 0, 0xd1}},
		{VLAN: 301, MAC: plan.MAC{2, 0, 0, 0, 0, 0xd2}}, {VLAN: 300, MAC: plan.MAC{2, 0, 0, 0, 0, 0xd3}}}
	from.kernel.learned = map[plan.PortID][]observe.MACEntry{id("vm"): macs}
	r.keeps(1, from.packs())
	r.kernel.knows = macs[2:]
	if n := r.teaming.announcer.Waiting() + len(r.rarps()); n != 0 {
		t.Fatalf("%d frames for a silent port", n)
	}
	r.arrives()
	u1 := r.dev.byName["eno1"].Index
	want := times(2, fmt.Sprintf("%d 300 d1", u1), fmt.Sprintf("%d 301 d2", u1))
	slices.Sort(want)
	got := slices.DeleteFunc(r.spoken(), func(s string) bool { return !strings.Contains(s, " d") })
	if !slices.Equal(got, want) {
		t.Errorf("announced of what came\n%q, want\n%q", got, want)
	}
}

// The last copy has the MACs that were learned until the guest stopped, and a port whose device goes at once what was
// read for the copy before.
func TestS79_TheLastCopyHasTheMACsOfThen(t *testing.T) {
	r := travelHost(t, lenient, 5)
	r.arrives()
	one := []observe.MACEntry{{VLAN: 100, MAC: plan.MAC{2, 1, 1, 1, 1, 1}}}
	two := append(slices.Clone(one), observe.MACEntry{VLAN: 100, MAC: plan.MAC{2, 1, 1, 1, 1, 2}})
	r.kernel.learned = map[plan.PortID][]observe.MACEntry{id("vm"): two}
	f := &ferrying{moving: r.moving, key: keyOf(movingVM, "net0"), heard: &heard{list: one}}
	r.moving.ferries[f.key] = f
	defer delete(r.moving.ferries, f.key)
	tr := &state.Travel{VM: movingVM, Adapter: "net0", Port: id("vm")}
	tr.Away = &moves.Away{Silent: true}
	macs := func() int {
		t.Helper()
		b, err := f.bundleFor(tr, moves.Send{Copy: moves.Copy{Says: moves.Stops}})
		if err != nil {
			t.Fatal(err)
		}
		return len(b.GetMacs())
	}
	tr.Away.Goods = f.packs(tr)
	if n := macs(); n != 1 {
		t.Errorf("%d MACs at the stop, want those that were read before", n)
	}
	f.gone = true // what is read now may be another port's
	f.renews(tr, &heard{list: two})
	if n := macs(); n != 1 {
		t.Errorf("%d MACs of a table that may be another port's", n)
	}
	f.gone = false
	f.renews(tr, &heard{list: two})
	if n := macs(); n != 2 {
		t.Errorf("%d MACs in the last copy, want 2", n)
	}
	tr.Away.Left = true
	f.renews(tr, &heard{})
	if n := macs(); n != 2 {
		t.Errorf("%d MACs of a port that is gone, want those that it had", n)
	}
}
