package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
