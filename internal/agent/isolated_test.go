package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// A switch whose uplinks are all down is told of once, with why, and once when one is back.
func TestIsolation_IsToldOfWithEveryUplink(t *testing.T) {
	r := newTeamRig(t, "")
	r.follow("isolation", r.membership.isolation)
	said := func() (texts []string) {
		for _, e := range r.told(event.Isolated) {
			texts = append(texts, e.Switch+" "+e.From+">"+e.To+" "+e.Text)
		}
		return texts
	}
	for _, device := range []string{"eno1", "eno2"} {
		r.link(device, false)
	}
	if got := said(); len(got) > 0 {
		t.Errorf("one uplink is left, and it says %q", got)
	}
	r.link("eno3", false)
	r.note()
	r.link("eno2", true)
	r.link("eno1", true)
	got := said()
	if len(got) != 2 || got[1] != "lab down>up an uplink of switch lab is up again" ||
		!strings.HasPrefix(got[0], "lab up>down no uplink of switch lab is up: u1 (eno1): ") ||
		strings.Count(got[0], "; u") != 2 {
		t.Errorf("it says %q", got)
	}
}

// What controllers are told of a switch names each uplink, and says whether its uplinks were taken out of use.
func TestIsolation_IsReported(t *testing.T) {
	r := newTeamRig(t, "")
	lab := func() (text string) {
		r.membership.isolation.Settled(uplinks.InForce{})
		list := r.membership.isolation.hostSwitches(map[string]bool{"lab": true})
		if len(list) != 1 || len(list[0].GetUplinks()) != 3 {
			t.Fatalf("%v", list)
		}
		var states []string
		for _, u := range list[0].GetUplinks() {
			states = append(states, u.GetName()+" "+u.GetDevice()+" "+u.GetState())
		}
		if list[0].GetIsolated() != "" {
			states = append(states, "isolated")
		}
		if list[0].GetMaintained() {
			states = append(states, "maintained")
		}
		return strings.Join(states, ", ")
	}
	for _, step := range []struct {
		name, want string
		do         func()
	}{
		{"all up", "u1 eno1 up, u2 eno2 up, u3 eno3 up", func() {}},
		{"two out of use", "u1 eno1 blocked, u2 eno2 drained, u3 eno3 up",
			func() { r.use("u1", true); r.use("u2", false) }},
		{"the third down", "u1 eno1 blocked, u2 eno2 drained, u3 eno3 down, isolated",
			func() { r.link("eno3", false) }},
		{"the third out of use", "u1 eno1 blocked, u2 eno2 drained, u3 eno3 blocked, isolated, maintained",
			func() { r.link("eno3", true); r.use("u3", true) }},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			if got := lab(); got != step.want {
				t.Errorf("%s, want %s", got, step.want)
			}
		})
	}
	if list := r.membership.isolation.hostSwitches(map[string]bool{"other": true}); len(list) > 0 {
		t.Errorf("of another switch: %v", list)
	}
}

// use takes an uplink out of use.
func (r *teamRig) use(uplink string, block bool) {
	r.t.Helper()
	sw := r.Active().Plan.Switch("lab")
	i := slices.IndexFunc(sw.Uplinks, func(u *plan.Uplink) bool { return u.ID.Name == uplink })
	sw.Uplinks[i].Blocked, sw.Uplinks[i].Drained = block, true
}

// A switch that begins has no uplink for a moment: nothing is told of it unless it stays so.
func TestS178_AStartIsNotCutOff(t *testing.T) {
	for name, stays := range map[string]bool{"its uplink comes": false, "it stays without": true} {
		t.Run(name, func(t *testing.T) {
			r := newTeamRig(t, "")
			is := r.membership.isolation
			for _, device := range []string{"eno1", "eno2", "eno3"} {
				r.link(device, false)
			}
			is.last = nil // as after a start
			is.Settled(uplinks.InForce{})
			if got := r.told(event.Isolated); len(got) > 0 || !is.held {
				t.Fatalf("told %v, to be looked at again: %v", got, is.held)
			}
			if !stays {
				r.link("eno1", true)
			}
			for n := range is.fresh {
				is.fresh[n] = time.Now().Add(-startTime)
			}
			is.tellHeld()
			if got := r.told(event.Isolated); len(got) > 0 != stays {
				t.Errorf("told %v", got)
			}
		})
	}
}
