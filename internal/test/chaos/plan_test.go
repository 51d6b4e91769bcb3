package chaos

import (
	"slices"
	"testing"
	"time"
)

// A seed decides everything, each kind of fault occurs, all has ended in time, and nothing is killed that is dead.
func TestAPlanFollowsFromItsSeed(t *testing.T) {
	const length = time.Minute
	fleet := Fleet{Controllers: 3, Hosts: 4, Members: 3}
	for seed := range uint64(50) {
		plan := Plan(seed, length, fleet)
		if !slices.Equal(plan, Plan(seed, length, fleet)) {
			t.Fatalf("seed %d gives two plans", seed)
		}
		kinds := map[Kind]int{}
		for i, f := range plan {
			kinds[f.Kind]++
			if f.Ends() > length {
				t.Errorf("seed %d: %+v has not ended after %v", seed, f, length)
			}
			for _, o := range plan[:i] {
				if o.Kind == f.Kind && o.Who == f.Who && f.At < o.Ends() && o.At < f.Ends() {
					t.Errorf("seed %d: %+v and %+v at a time", seed, o, f)
				}
			}
		}
		for _, kind := range fleet.deck() {
			if kinds[kind] == 0 {
				t.Errorf("seed %d: %d faults, and no %q", seed, len(plan), kind)
			}
		}
	}
	if slices.Equal(Plan(1, length, fleet), Plan(2, length, fleet)) {
		t.Error("two seeds give one plan")
	}
}

func TestAFleetWithoutOutsideMembersLosesNone(t *testing.T) {
	for _, f := range Plan(1, 5*time.Minute, Fleet{Controllers: 3, Hosts: 4}) {
		if f.Kind == KillMember {
			t.Fatalf("%+v", f)
		}
	}
}
