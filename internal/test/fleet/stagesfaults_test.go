package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// newRolledFleet is three hosts at three controllers, each with a guest in two port groups of which a change of bothTo
// sets the VLANs. Each host has a label of its own, by which it gets a stage.
func newRolledFleet(t *testing.T) (*fleet, [3]*realhost.Controller) {
	t.Helper()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	all := f.controllers()
	for n, h := range f.hosts {
		all[n].Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a", "n": fmt.Sprint(n)})
	}
	all[0].Await("all are connected", func() bool { return len(where(all[0])) == 3 })
	if out := all[0].Define(bothTo(0)); len(out.Hosts) != 3 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
		f.connect(n, 4, "p-db", "db")
	}
	return f, all
}

// bothTo is fleetText with other VLANs of two port groups: who has half of a change has numbers that do not match.
func bothTo(n int) string {
	text := strings.Replace(fleetText, "access: 10", fmt.Sprintf("access: %d", 100+n), 1)
	return strings.Replace(text, "access: 20", fmt.Sprintf("access: %d", 300+n), 1)
}

// clashing is what the first host can't make: the device of its uplink is the one of its own switch.
const clashing = "hosts: [{name: esx0, switches: [{name: dvs, uplinks: [{name: uplink1, device: eno1}]}]}]\n"

// hasBoth is which change of bothTo a host has active; half is what else it has, where it has no whole one.
func (f *fleet) hasBoth(n int) (change int, half string, err error) {
	s, err := f.hosts[n].State(f.t.Context())
	if err != nil {
		return 0, "", err
	}
	has := map[string]int{}
	for _, p := range s.Ports {
		var vlan int
		if _, err := fmt.Sscanf(p.VLAN.String(), "access %d", &vlan); err == nil {
			has[p.Name] = vlan
		}
	}
	if web, db := has["p-web"]-100, has["p-db"]-300; web != db {
		return 0, fmt.Sprintf("p-web has VLAN %d and p-db VLAN %d", has["p-web"], has["p-db"]), nil
	}
	return has["p-db"] - 300, "", nil
}

// having are the hosts that have that change of bothTo.
func (f *fleet) having(change int) (names []string) {
	f.t.Helper()
	for n := range f.hosts {
		has, half, err := f.hasBoth(n)
		switch {
		case err != nil:
			f.t.Log(err)
		case half != "":
			f.t.Errorf("host esx%d is as no revision describes it: %s", n, half)
		case has == change:
			names = append(names, fmt.Sprintf("esx%d", n))
		}
	}
	return names
}

// neverHalf looks at the hosts until it is stopped: none is ever as no revision describes it.
func (f *fleet) neverHalf() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for looks := 0; ; looks++ {
			select {
			case <-end:
				f.t.Logf("looked %d times", looks)
				return
			case <-time.After(10 * realhost.Poll):
				f.having(-1)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// described makes sure that each host comes to be listed with a revision that says what it has: until a host has
// answered that it has a later one, it is listed with the one before.
func (f *fleet) described(c *realhost.Controller) {
	f.t.Helper()
	for n := range f.hosts {
		c.Await(fmt.Sprintf("esx%d has what its revision says", n), func() bool {
			list, err := c.Hosts(f.t.Context())
			if err != nil {
				return false
			}
			i := slices.IndexFunc(list.Hosts, func(h api.FleetHost) bool { return h.Name == fmt.Sprintf("esx%d", n) })
			if i < 0 {
				return false
			}
			d, err := c.Past(f.t.Context(), list.Hosts[i].Revision)
			has, half, errHas := f.hasBoth(n)
			return err == nil && errHas == nil && half == "" &&
				strings.Contains(d.Content, fmt.Sprintf("access: %d\n", 300+has))
		})
	}
}

// listed is a rollout as it is kept, whatever its hosts do.
func listed(c *realhost.Controller, id string) api.Rollout {
	list, err := c.Rollouts(c.T.Context())
	if err != nil {
		return api.Rollout{}
	}
	if i := slices.IndexFunc(list, func(r api.Rollout) bool { return r.ID == id }); i >= 0 {
		return list[i]
	}
	return api.Rollout{}
}

// staged is a rollout that a test drives into a phase.
type staged struct {
	*fleet
	all    [3]*realhost.Controller
	id     string
	change int
	// driver drives it, asked does not and is asked, third is neither.
	driver, asked, third *realhost.Controller
}

// stands is the rollout as it is kept.
func (s *staged) stands() api.Rollout { return listed(s.asked, s.id) }

// isIn waits until the rollout stands so.
func (s *staged) isIn(what string, holds func(api.Rollout) bool) {
	s.t.Helper()
	s.asked.Await(what, func() bool { return holds(s.stands()) })
}

// driverPhase is where a rollout is when its driver is killed.
type driverPhase struct {
	name string
	// bad: the host of the first stage can't make the change.
	bad  bool
	halt string
	// reach returns when the rollout is there; after is done when the driver is killed, nil for nothing.
	reach func(*staged) (after func())
	// want is how the rollout ends, or stands in the end.
	want api.RolloutState
}

func driverPhases() []driverPhase {
	begun := func(n int) func(api.Rollout) bool {
		return func(r api.Rollout) bool { return r.Begun >= n }
	}
	return []driverPhase{
		{name: "before the first stage begins", want: api.RolloutDone, reach: func(s *staged) func() {
			if r := s.stands(); r.Begun != 0 {
				s.t.Logf("%d stages have begun: this shows less than it should", r.Begun)
			}
			return nil
		}},
		{name: "while a stage is applied", want: api.RolloutDone, reach: func(s *staged) func() {
			s.hosts[0].Signal(syscall.SIGSTOP)
			s.isIn("the first stage has begun", begun(1))
			return func() { s.hosts[0].Signal(syscall.SIGCONT) }
		}},
		{name: "while the hosts of a stage are watched", want: api.RolloutDone, reach: func(s *staged) func() {
			s.isIn("they are watched", func(r api.Rollout) bool {
				return r.Begun > 1 || r.Begun == 1 && !r.Settled.IsZero() // a busy machine may look late
			})
			return nil
		}},
		{name: "while it halts", bad: true, halt: "stop", want: api.RolloutHalted, reach: func(s *staged) func() {
			s.asked.Await("the host refuses the change", func() bool {
				return s.asked.StateOf("esx0") == api.HostOutOfSync
			})
			return nil
		}},
		{name: "while it takes the change back", bad: true, halt: "rollback", want: api.RolloutTakenBack,
			reach: func(s *staged) func() { // which takes longer while a controller does not answer
				thaw := s.third.Freeze()
				s.isIn("it takes the change back", func(r api.Rollout) bool {
					return r.State == api.RolloutTakingBack || r.State == api.RolloutTakenBack
				})
				return thaw
			}},
		{name: "between two stages", want: api.RolloutDone, reach: func(s *staged) func() {
			s.isIn("the second stage has begun", begun(2))
			return nil
		}},
		{name: "at its end", want: api.RolloutDone, reach: func(s *staged) func() {
			s.asked.Await("all hosts have the change", func() bool { return len(s.having(s.change)) == 3 })
			return nil
		}},
	}
}

// Whenever the controller is killed that drives a rollout, another one goes on, and it ends as it would have. No host
// is ever as no revision describes it, and none is ahead of its stage.
func TestS102_TheDriverIsKilledInEachPhase(t *testing.T) {
	testkit.Long(t, "kills the driver of stages in each of its phases; TestS102_ABadChangeStopsAtTheFirstHost has "+
		"stages")
	t.Parallel()
	f, all := newRolledFleet(t)
	change := 0
	for _, p := range driverPhases() {
		t.Run(p.name, func(t *testing.T) {
			row := *f
			row.t = t
			s := &staged{fleet: &row, all: all, change: change + 1}
			s.losesDriver(p)
			if p.want == api.RolloutDone {
				change++
			}
			if t.Failed() {
				t.FailNow()
			}
		})
	}
}

// begins begins a rollout, and waits until somebody drives it.
func (s *staged) begins(p driverPhase) {
	s.t.Helper()
	text := bothTo(s.change)
	if p.bad {
		text += clashing
	}
	s.id = s.all[0].Stages(api.Define{File: "fleet.yaml", Content: text, Message: p.name,
		Stages: &api.InStages{Stages: "n=0,n=1,100%", Wait: 4 * time.Second, Watch: 4 * time.Second, Halt: p.halt}})
	s.asked = s.all[0]
	var driver string
	s.isIn("somebody drives it", func(r api.Rollout) bool { driver = r.Driver; return driver != "" })
	at := slices.IndexFunc(s.all[:], func(c *realhost.Controller) bool { return c.Name == driver })
	s.driver, s.asked, s.third = s.all[at], s.all[(at+1)%3], s.all[(at+2)%3]
}

// losesDriver has a rollout's driver be killed in a phase.
func (s *staged) losesDriver(p driverPhase) {
	stop := s.neverHalf()
	defer stop()
	s.begins(p)
	after := p.reach(s)
	at := s.stands()
	s.driver.End(syscall.SIGKILL)
	if after != nil {
		after()
	}
	s.t.Logf("%s is killed; %d stages have begun, it is %s", s.driver.Name, at.Begun, at.State)
	s.ends(p.want)
	want := s.change
	if p.want != api.RolloutDone {
		if want--; p.want == api.RolloutHalted {
			if _, err := s.asked.AbortRollout(s.t.Context(), s.id, "a test", false); err != nil {
				s.t.Error(err)
			}
		}
	}
	s.driver.Start()
	for n := range s.hosts {
		name := fmt.Sprintf("esx%d", n)
		s.driver.Await(name+" is up", func() bool { return s.driver.StateOf(name) == api.HostUp })
	}
	s.driver.Await("all hosts have what is defined", func() bool { return len(s.having(want)) == 3 })
	if d := s.driver.Certain(); !strings.Contains(d.Content, fmt.Sprintf("access: %d", 300+want)) {
		s.t.Errorf("the definition is %v: change %d is wanted", d, want)
	}
	s.described(s.driver)
}

// ends waits until another controller has brought the rollout to its end. Until then a host that is in no stage that
// has begun lacks the change.
func (s *staged) ends(want api.RolloutState) {
	s.t.Helper()
	s.isIn("another controller ends it", func(r api.Rollout) bool {
		before := s.having(s.change)
		if now := s.stands(); now.Begun == r.Begun && now.State == r.State && now.State == api.RolloutRunning &&
			len(before) > r.Begun {
			s.t.Errorf("%v have the change after %d stages", before, r.Begun)
		}
		if r.State == api.RolloutHalted && want == api.RolloutDone { // its hosts were without a controller for long
			s.t.Logf("it halts, on a machine that is busy: %v", r.Found)
			if _, err := s.asked.ResumeRollout(s.t.Context(), s.id, false); err != nil {
				s.t.Log(err)
			}
		}
		return r.State == want
	})
	if r := s.stands(); want != api.RolloutDone && (len(r.Found) == 0 || !strings.Contains(r.Found[0].What,
		"can't make the change")) {
		s.t.Errorf("it does not say what it has found: %+v", r)
	}
}
