package failover

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/spec"
)

// follow moves a team through states of the uplinks ("1 3": those two are usable) and returns what is used in each.
func follow(t Team, states ...string) (got []string) {
	var use Use
	for _, s := range states {
		up := strings.Fields(s)
		use = t.Next(use, func(e string) bool { return slices.Contains(up, e) })
		got = append(got, strings.Join(use.Using, " "))
	}
	return got
}

func TestS42_S43_S44_S45_WhatAPortUses(t *testing.T) {
	list := strings.Fields
	for _, c := range []struct {
		name         string
		team         Team
		states, want []string
	}{
		{"explicit order with failback", Team{Policy: spec.ExplicitOrder, Active: list("1 2 3"), Failback: true},
			[]string{"1 2 3", "2 3", "3", "2 3", "1 2 3", ""}, []string{"1", "2", "3", "2", "1", ""}},
		{"explicit order without: a rolling order", Team{Policy: spec.ExplicitOrder, Active: list("1 2 3")},
			[]string{"1 2 3", "2 3", "1 2 3", "1 3", "1 2 3", "1 2", "1 2 3", "2 3", "3", "1 2 3", ""},
			[]string{"1", "2", "2", "3", "3", "1", "1", "3", "3", "3", ""}},
		{"all fail, one returns, then the others", Team{Policy: spec.ExplicitOrder, Active: list("1 2"),
			Standby: list("3")},
			[]string{"1 2 3", "", "3", "2 3", "1 2 3", "1 2"}, []string{"1", "", "3", "3", "3", "2"}},
		{"standby gives back", Team{Policy: spec.OriginatingPort, Active: list("1"), Standby: list("2"),
			Failback: true},
			[]string{"1 2", "2", "1 2"}, []string{"1", "2", "1"}},
		{"standby keeps without failback", Team{Policy: spec.OriginatingPort, Active: list("1"), Standby: list("2")},
			[]string{"1 2", "2", "1 2", "1", "1 2"}, []string{"1", "2", "2", "1", "1"}},
		{"a standby uplink that flaps meanwhile keeps its place", Team{Policy: spec.ExplicitOrder, Active: list("1"),
			Standby: list("2 3")},
			[]string{"1 2 3", "1 3", "1 2 3", "2 3"}, []string{"1", "1", "1", "2"}},
		{"connected while the first was down, it stays", Team{Policy: spec.ExplicitOrder, Active: list("1 2")},
			[]string{"2", "1 2", "1"}, []string{"2", "2", "1"}},
		{"an unused uplink never serves", Team{Policy: spec.ExplicitOrder, Active: list("2"), Failback: true},
			[]string{"1 2 3", "1 3"}, []string{"2", ""}},
		{"hashing uses all, and takes back", Team{Policy: spec.SourceMAC, Active: list("1 2"), Standby: list("3"),
			Failback: true},
			[]string{"1 2 3", "2 3", "3", "1 3", "1 2"}, []string{"1 2", "2", "3", "1", "1 2"}},
		{"hashing without failback", Team{Policy: spec.IPHash, Active: list("1 2")},
			[]string{"1 2", "2", "1 2", "1"}, []string{"1 2", "2", "2", "1"}},
		{"load-based uses what it is given", Team{Policy: spec.LoadBased, Active: list("1 2"), Assigned: "2",
			Failback: true},
			[]string{"1 2", "1", "1 2"}, []string{"2", "1", "2"}},
		{"load-based: given to what is not active", Team{Policy: spec.LoadBased, Active: list("1 2"),
			Standby: list("3"), Assigned: "3", Failback: true},
			[]string{"1 2 3"}, []string{"1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := follow(c.team, c.states...); !slices.Equal(got, c.want) {
				t.Errorf("%s: used %q, want %q", c.name, got, c.want)
			}
		})
	}
}

// randomTeam draws a team of at most five uplinks.
func randomTeam(t *rapid.T) Team {
	all := rapid.Permutation([]string{"1", "2", "3", "4", "5"}).Draw(t, "uplinks")
	active := rapid.IntRange(0, 5).Draw(t, "active")
	standby := rapid.IntRange(active, 5).Draw(t, "standby")
	return Team{
		Policy: rapid.SampledFrom([]spec.TeamingPolicy{spec.OriginatingPort, spec.ExplicitOrder, spec.SourceMAC,
			spec.IPHash, spec.LoadBased}).Draw(t, "policy"),
		Active: all[:active], Standby: all[active:standby], Failback: rapid.Bool().Draw(t, "failback"),
		Number: rapid.Uint32Range(1, 50).Draw(t, "number"), Assigned: rapid.SampledFrom([]string{"", "1", "2"}).Draw(t,
			"assigned"),
	}
}

// Through any history: the entries in use are usable and in the team, an entry is used if any can be, the kernel's walk
// without the resting entries gives the same result, and a port without failback stays while the entry that it uses
// works.
func TestS42_S44_S45_UseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		team := randomTeam(t)
		var use Use
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			up := map[string]bool{}
			for _, e := range []string{"1", "2", "3", "4", "5"} {
				up[e] = rapid.Bool().Draw(t, e)
			}
			usable := func(e string) bool { return up[e] }
			was := use
			use = team.Next(was, usable)
			any := slices.ContainsFunc(slices.Concat(team.Active, team.Standby), usable)
			if any != (len(use.Using) > 0) {
				t.Fatalf("%+v with %v up uses %v", team, up, use.Using)
			}
			for _, e := range use.Using {
				if !up[e] || slices.Contains(use.Resting, e) ||
					!slices.Contains(slices.Concat(team.Active, team.Standby), e) {
					t.Fatalf("%+v with %v up, resting %v, uses %v", team, up, use.Resting, use.Using)
				}
			}
			if walk := team.choices(func(e string) bool {
				return up[e] && !slices.Contains(use.Resting, e)
			}); !slices.Equal(walk, use.Using) {
				t.Fatalf("%+v: walk %v, using %v", team, walk, use.Using)
			}
			if team.Failback {
				if len(use.Resting) > 0 || !slices.Equal(use.Using, team.choices(usable)) {
					t.Fatalf("%+v: history counts with failback: %+v", team, use)
				}
				continue
			}
			if slices.ContainsFunc(was.Using, usable) && slices.ContainsFunc(use.Using, func(e string) bool {
				return !slices.Contains(was.Using, e)
			}) {
				t.Fatalf("%+v with %v up: moved from %+v to %+v", team, up, was, use)
			}
		}
	})
}
