package agent

import (
	"fmt"
	"slices"
	"testing"
)

func TestS49_PortsBehindABondAreAnnouncedWhenItSendsByAnotherMember(t *testing.T) {
	r := newTeamRig(t, "")
	d := r.dev.byName["eno1"]
	d.Driver, d.ActiveMember = "bond", "port1"
	r.note()
	other := r.dev.byName["eno2"] // a bond that no port uses
	other.Driver, other.ActiveMember = "bond", "port3"
	r.note()
	d.ActiveMember = "" // the bond is changing its member
	r.note()
	if got := r.failovers(); len(got) != 0 {
		t.Fatalf("events before the bond changed: %+v", got)
	}
	d.ActiveMember, other.ActiveMember = "port2", "port4"
	r.note()
	var want []string
	for _, s := range []string{"- c", "- d", "10 a", "100 b", "20 c", "21 c"} {
		want = append(want, fmt.Sprintf("%d %s", d.Index, s))
	}
	slices.Sort(want)
	if got := r.announced(len(want)); !slices.Equal(got, want) {
		t.Errorf("announced\n%q, want\n%q", got, want)
	}
	events := r.failovers()
	if len(events) != 2 || events[0].Text != "u1: bond eno1 sends by port2 instead of port1" || events[0].Ports != 5 ||
		events[1].Ports != 0 {
		t.Errorf("events %+v", events)
	}
	d.Index = 99 // another bond of that name: its ports have not moved
	d.ActiveMember = "port1"
	r.note()
	for _, e := range r.failovers()[2:] {
		if e.Uplink != "" {
			t.Errorf("event %+v", e)
		}
	}
}
