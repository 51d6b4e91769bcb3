package teams

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/uplinks/teaming/failover"
)

func id(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }

func TestS52_MembersOfALAGAreOneEntry(t *testing.T) {
	p := &plan.Port{ID: id("p"), Number: 1, Policy: &plan.Effective{}}
	p.Policy.Teaming.Policy.V, p.Policy.Teaming.Active.V = spec.ExplicitOrder, []string{"lag1"}
	sw := &plan.Switch{Name: "lab", Ports: []*plan.Port{p},
		LAGs: []*plan.LAG{{Name: "lag1", Uplinks: []string{"u1", "u2"}}}}
	d := binding.Desired{Plan: &plan.Plan{Switches: []*plan.Switch{sw}}, Facts: plan.Facts{p.ID: {Up: true}}}
	for _, u := range []string{"u1", "u2"} {
		sw.Uplinks = append(sw.Uplinks, &plan.Uplink{ID: id(u)})
	}
	for _, c := range []struct {
		one, two plan.Fact
		want     []string
	}{
		{plan.Fact{Up: true}, plan.Fact{Up: true}, []string{"lag1"}},
		{plan.Fact{Up: true}, plan.Fact{}, []string{"lag1"}},
		{plan.Fact{Up: true, Out: &problem.Problem{Code: problem.LACPNotInSync}}, plan.Fact{Up: true},
			[]string{"lag1"}},
		{plan.Fact{Up: true, Out: &problem.Problem{Code: problem.LACPNotInSync}}, plan.Fact{}, nil},
	} {
		d.Facts[id("u1")], d.Facts[id("u2")] = c.one, c.two
		if got := Form(&d, Remembered(nil)).Of(p.ID).Using; !slices.Equal(got, c.want) {
			t.Errorf("members %+v and %+v: uses %q, want %q", c.one, c.two, got, c.want)
		}
	}
}

// The teams that the agent computes and those in the kernel's tables come from two pieces of code: they agree.
func TestS42_S45_WhatIsFollowedIsWhatTheKernelDoes(t *testing.T) {
	names := []string{"u1", "u2", "u3", "u4"}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Permutation(names).Draw(t, "order")
		active := rapid.IntRange(0, 4).Draw(t, "active")
		p := &plan.Port{ID: id("p"), Number: rapid.Uint32Range(1, 40).Draw(t, "number"), Policy: &plan.Effective{}}
		team := &p.Policy.Teaming
		team.Policy.V = rapid.SampledFrom([]spec.TeamingPolicy{spec.OriginatingPort, spec.ExplicitOrder, spec.SourceMAC,
			spec.IPHash}).Draw(t, "policy")
		team.Active.V, team.Standby.V = all[:active], all[active:]
		team.Failback.V = rapid.Bool().Draw(t, "failback")
		sw := &plan.Switch{Name: "lab", Ports: []*plan.Port{p}}
		d := binding.Desired{Plan: &plan.Plan{Switches: []*plan.Switch{sw}},
			Attachments: map[plan.PortID]binding.Attachment{p.ID: {Ifindex: 9}}}
		for i, u := range names {
			sw.Uplinks = append(sw.Uplinks, &plan.Uplink{ID: id(u)})
			d.Attachments[id(u)] = binding.Attachment{Ifindex: uint32(i + 1)}
		}
		was := Remembered(nil)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			d.Facts = plan.Facts{p.ID: {Up: true}}
			for _, u := range names {
				d.Facts[id(u)] = plan.Fact{Up: rapid.Bool().Draw(t, u)}
			}
			now := Form(&d, was)
			was = now
			want := slices.Sorted(slices.Values(now.Of(p.ID).Using))
			if got := compile.UplinksInUse(d, sw, p); !slices.Equal(got, want) {
				t.Fatalf("%+v with %+v: the kernel uses %q, followed is %+v", failover.TeamOf(p, ""), d.Facts, got,
					now.Of(p.ID).Use)
			}
		}
	})
}
