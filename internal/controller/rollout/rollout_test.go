package rollout_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"heddle/internal/controller/rollout"
)

func stages(t *testing.T, text string) []rollout.Stage {
	t.Helper()
	list, err := rollout.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func members(n int) (list []rollout.Member) {
	for i := range n {
		list = append(list, rollout.Member{ID: fmt.Sprint("id", i), Labels: map[string]string{
			"rack": fmt.Sprint("r", i%10), "env": []string{"prod", "test"}[i%7/6]}})
	}
	return list
}

func TestParse_WrongStagesAreRefused(t *testing.T) {
	for _, text := range []string{"", "1", "1,10%", "10%,1%,100%", "5,5,100%", "0,100%", "-1,100%", "101%", "x,100%",
		"=a,100%", "env=,100%", "1,,100%", "NaN%,100%", "100%,env=test"} {
		if got, err := rollout.Parse(text); err == nil {
			t.Errorf("%q is taken as %+v", text, got)
		}
	}
}

// Each stage has the hosts that it should, a host stays in its stage whatever other hosts come and go, and the last one
// has all.
func TestOrder_EachHostHasOneStageForGood(t *testing.T) {
	all := members(1000)
	for seed := range 50 {
		o := rollout.NewOrder(fmt.Sprint(seed), "", stages(t, "1,10%,100%"), all)
		for begun, want := range []int{0, 1, 100, 1000} {
			if changed, others := o.Part(all, begun); len(changed) != want || len(others) != 1000-want {
				t.Fatalf("seed %d: %d of %d hosts have the change after stage %d", seed, len(changed), len(all), begun)
			}
		}
		if o.StageOf(rollout.Member{ID: "joins later"}) > 2 {
			t.Error("a host that joins has no stage")
		}
	}
	first := map[string]bool{}
	for seed := range 50 {
		o := rollout.NewOrder(fmt.Sprint(seed), "", stages(t, "1,100%"), all)
		changed, _ := o.Part(all, 1)
		first[changed[0].ID] = true
	}
	if len(first) < 30 {
		t.Errorf("%d different hosts come first in 50 rollouts", len(first))
	}
}

func TestOrder_ByLabel(t *testing.T) {
	all := members(1000)
	o := rollout.NewOrder("s", "rack", stages(t, "1,30%,100%"), all)
	for begun, want := range map[int]int{1: 1, 2: 3, 3: 10} {
		racks := map[string]int{}
		changed, _ := o.Part(all, begun)
		for _, m := range changed {
			racks[m.Labels["rack"]]++
		}
		if len(racks) != want || len(changed) != want*100 {
			t.Errorf("after stage %d %d hosts of %d racks have the change", begun, len(changed), len(racks))
		}
	}
	o = rollout.NewOrder("s", "", stages(t, "env=test,50%,100%"), all)
	changed, _ := o.Part(all, 1)
	for _, m := range changed {
		if m.Labels["env"] != "test" {
			t.Fatalf("%+v is not in the first stage", m)
		}
	}
	if len(changed) == 0 {
		t.Error("no host has the label")
	}
}

// kept is where a rollout is kept: drivers read it and replace what they have read.
type kept struct {
	rollout.Rollout
	version int
}

// Drivers are killed at any time, several drive at once, each by a clock of its own, and people pause and resume:
// stages come one after the other, none before the hosts of the one before had the change for the whole wait, and
// none after something was found.
func TestRollout_WhateverDrivesAStageBeginsAfterTheOneBefore(t *testing.T) {
	outcomes := map[rollout.State]int{}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 102))
		halt := []rollout.Halt{rollout.Stop, rollout.Rollback}[rng.IntN(2)]
		k := kept{Rollout: rollout.Rollout{ID: "r1", State: rollout.Running, Halt: halt, Wait: time.Minute,
			Order: rollout.NewOrder("s", "", stages(t, "1,10%,100%"), members(30))}}
		now := time.Unix(1_000_000, 0)
		pending, settled, found := 0, now, false
		type driver struct {
			read kept
			seen rollout.Seen
			at   time.Time
		}
		var drivers [3]*driver // what each has read; nil for one that was killed
		for step := 0; step < 2000 && k.Open(); step++ {
			now = now.Add(time.Duration(rng.IntN(8)) * time.Second)
			if pending > 0 && rng.IntN(3) == 0 {
				if pending--; pending == 0 {
					settled = now
				}
			}
			if !found && k.Begun > 0 && rng.IntN(200) == 0 {
				found = true
			}
			i := rng.IntN(len(drivers))
			switch d := drivers[i]; {
			case rng.IntN(5) == 0:
				drivers[i] = nil // killed, and started again
			case d == nil:
				d = &driver{read: k, seen: rollout.Seen{Pending: pending}, at: now}
				if found {
					d.seen.Found = []rollout.Finding{{Host: "h", What: "drops"}}
				}
				drivers[i] = d
			default:
				drivers[i] = nil
				next, changed := d.read.Next(d.at, d.seen)
				if !changed || d.read.version != k.version { // somebody else was faster
					continue
				}
				if next.Begun > k.Begun {
					if next.Begun != k.Begun+1 || k.Begun > 0 && (len(d.seen.Found) > 0 || d.at.Sub(settled) < k.Wait) {
						t.Fatalf("seed %d: stage %d begins %s after the one before was settled", seed, next.Begun,
							d.at.Sub(settled))
					}
					pending = 1 + rng.IntN(5)
				}
				k = kept{next, k.version + 1}
			}
			if rng.IntN(60) == 0 {
				if next, err := k.Pause(); err == nil {
					k = kept{next, k.version + 1}
				}
			}
			if rng.IntN(20) == 0 && k.State == rollout.Paused {
				next, err := k.Resume()
				if err != nil {
					t.Fatal(err)
				}
				k = kept{next, k.version + 1}
			}
			if k.State == rollout.Halted {
				break
			}
		}
		outcomes[k.State]++
		if k.State == rollout.Done && k.Begun != 3 || k.State == rollout.TakenBack && halt != rollout.Rollback {
			t.Fatalf("seed %d: %s after %d stages", seed, k.State, k.Begun)
		}
	}
	for _, s := range []rollout.State{rollout.Done, rollout.Halted, rollout.TakenBack} {
		if outcomes[s] < 100 {
			t.Errorf("%v: this test shows less than it says", outcomes)
		}
	}
}

// A change that was taken back can't be taken back again, nor go on.
func TestRollout_WhatIsOverStaysSo(t *testing.T) {
	r := rollout.Rollout{ID: "r1", State: rollout.Running, Begun: 1,
		Order: rollout.NewOrder("s", "", stages(t, "1,100%"), members(3))}
	back, err := r.TakeBack()
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() (rollout.Rollout, error){"taken back again": back.TakeBack,
		"resumed": back.Resume, "paused": back.Pause, "aborted": back.Abort} {
		if _, err := do(); !errors.Is(err, rollout.ErrState) {
			t.Errorf("it is %s: %v", name, err)
		}
	}
	for _, m := range members(3) {
		if back.Has(m) {
			t.Errorf("%s has a change that was taken back", m.ID)
		}
	}
}

// watched is a host over a minute.
func watched(name string, drops, frames uint64) rollout.Watched {
	at := time.Unix(1000, 0)
	return rollout.Watched{Name: name, Before: rollout.Vitals{At: at, LinksUp: 2, Ports: 4},
		After: rollout.Vitals{At: at.Add(time.Minute), LinksUp: 2, Ports: 4, Frames: 60 * frames,
			Drops: map[string]uint64{"vlan": 60 * drops}}}
}

// What rises on hosts with the change alone is found; what rises on the others too has another cause, and what was so
// before is no news.
func TestRollout_WhatTheChangeDoesIsToldFromWhatHappensAnyway(t *testing.T) {
	usual := map[string]rollout.Rates{}
	for _, name := range []string{"a", "b", "c", "d"} {
		usual[name] = rollout.Rates{Frames: 1000}
	}
	dropping := map[string]rollout.Rates{"a": {Frames: 1000, Drops: map[string]float64{"vlan": 90}}}
	fine := []rollout.Watched{watched("b", 0, 1000), watched("c", 1, 1000), watched("d", 0, 1000)}
	stormy := []rollout.Watched{watched("b", 80, 1000), watched("c", 90, 1000), watched("d", 100, 1000)}
	quiet := []rollout.Watched{watched("b", 0, 200), watched("c", 0, 210), watched("d", 0, 190)}
	away, cut := watched("a", 0, 1000), watched("a", 0, 1000)
	away.After.Trouble, cut.After.LinksUp = "it is not connected", 1
	cutEverywhere := []rollout.Watched{watched("b", 0, 1000), watched("c", 0, 1000)}
	for i := range cutEverywhere {
		cutEverywhere[i].After.LinksUp = 1
	}
	again := watched("a", 0, 0)
	again.Before.Frames = 5000
	for name, c := range map[string]struct {
		changed rollout.Watched
		others  []rollout.Watched
		usual   map[string]rollout.Rates
		want    string // "" for nothing
	}{
		"nothing happens":                     {watched("a", 0, 1000), fine, usual, ""},
		"drops":                               {watched("a", 100, 1000), fine, usual, "100 frames a second"},
		"a few drops":                         {watched("a", 4, 1000), fine, usual, ""},
		"drops everywhere":                    {watched("a", 100, 1000), stormy, usual, ""},
		"drops as before":                     {watched("a", 100, 1000), fine, dropping, ""},
		"no traffic":                          {watched("a", 0, 0), fine, usual, "0 frames a second, 1000 before"},
		"less traffic everywhere":             {watched("a", 0, 200), quiet, usual, ""},
		"never much traffic":                  {watched("a", 0, 0), fine, nil, ""},
		"a host is away":                      {away, fine, usual, "it is not connected"},
		"an uplink":                           {cut, fine, usual, "1 of its uplinks went down"},
		"an uplink on every host":             {cut, cutEverywhere, usual, ""},
		"drops where all have the change":     {watched("a", 100, 1000), nil, usual, "dropped for vlan"},
		"a host that has begun to count anew": {again, fine, usual, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := rollout.Compare([]rollout.Watched{c.changed}, c.others, c.usual)
			if c.want == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || c.want == "" || !strings.Contains(found[0].What, c.want) {
				t.Errorf("found %v, want %q", found, c.want)
			}
		})
	}
}
