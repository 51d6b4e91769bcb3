package difftest

import (
	"slices"
	"time"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// shrinker makes a failing case smaller as long as it fails.
type shrinker struct {
	fails func(*Case) bool
	until time.Time
}

// Shrink takes a case that fails and returns a smaller one that fails too, after at most the time given. fails plays a
// case.
func Shrink(c *Case, m *Mismatch, atMost time.Duration, fails func(*Case) bool) *Case {
	s := &shrinker{fails: fails, until: time.Now().Add(atMost)}
	if short := withSteps(c, c.Steps[:m.Step+1]); fails(short) {
		c = short
	}
	for {
		before := len(c.Steps) + len(c.State.Members)
		c = s.dropSteps(c)
		c = s.dropMembers(c)
		c = s.dropNames(c)
		if len(c.Steps)+len(c.State.Members) == before || s.late() {
			break
		}
	}
	return s.simplify(c)
}

func (s *shrinker) late() bool { return time.Now().After(s.until) }

// try returns the smaller case when it fails too, else the one at hand.
func (s *shrinker) try(c, smaller *Case) (*Case, bool) {
	if smaller == nil || s.late() || !s.fails(smaller) {
		return c, false
	}
	return smaller, true
}

func withSteps(c *Case, steps []Step) *Case { return &Case{Note: c.Note, State: c.State, Steps: steps} }

// dropSteps leaves out runs of steps, long ones first; the time they took stays.
func (s *shrinker) dropSteps(c *Case) *Case {
	for size := len(c.Steps) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(c.Steps); {
			var dropped bool
			if c, dropped = s.try(c, withSteps(c, without(c.Steps, from, size))); !dropped {
				from += size
			}
		}
	}
	return c
}

func without(steps []Step, from, n int) []Step {
	out := append([]Step(nil), steps[:from]...)
	rest := slices.Clone(steps[from+n:])
	if len(rest) > 0 {
		for _, s := range steps[from : from+n] {
			rest[0].After += s.After
		}
	}
	return append(out, rest...)
}

// dropMembers leaves out ports and uplinks, wherever they are named.
func (s *shrinker) dropMembers(c *Case) *Case {
	for _, m := range c.State.Members {
		c, _ = s.try(c, eachState(c, func(x *State) { x.drop(m.ID) }))
	}
	return c
}

// dropNames leaves out switches and port groups that serve nobody.
func (s *shrinker) dropNames(c *Case) *Case {
	c, _ = s.try(c, eachState(c, func(x *State) {
		for i := range x.Config.Switches {
			sw := &x.Config.Switches[i]
			sw.PortGroups = slices.DeleteFunc(sw.PortGroups, func(g spec.PortGroup) bool {
				return !slices.ContainsFunc(x.Config.Ports, func(p spec.Port) bool {
					return p.Switch == sw.Name &&
						p.PortGroup == g.Name
				})
			})
		}
	}))
	c, _ = s.try(c, eachState(c, func(x *State) {
		x.Config.Switches = slices.DeleteFunc(x.Config.Switches, func(sw spec.Switch) bool {
			return len(sw.Uplinks) == 0 && len(sw.PortGroups) == 0
		})
	}))
	return c
}

// simplify makes what is left easier to read: no waiting where none is needed, short frames.
func (s *shrinker) simplify(c *Case) *Case {
	for i := range c.Steps {
		if c.Steps[i].After > 0 {
			c, _ = s.try(c, withStep(c, i, func(x *Step) { x.After = 0 }))
		}
		if len(c.Steps[i].Frame) > 64 {
			c, _ = s.try(c, withStep(c, i, func(x *Step) { x.Frame = x.Frame[:64] }))
		}
	}
	return c
}

func withStep(c *Case, i int, change func(*Step)) *Case {
	steps := slices.Clone(c.Steps)
	change(&steps[i])
	return withSteps(c, steps)
}

// eachState is the case with a change made to all its states; nil when one of them is no valid state then.
func eachState(c *Case, change func(*State)) *Case {
	out := &Case{Note: c.Note, State: c.State.clone()}
	change(&out.State)
	if _, _, err := out.State.Resolve(); err != nil {
		return nil
	}
	for _, s := range c.Steps {
		if s.Change != nil {
			next := s.Change.clone()
			change(&next)
			if _, _, err := next.Resolve(); err != nil {
				return nil
			}
			s.Change = &next
		}
		out.Steps = append(out.Steps, s)
	}
	return out
}

// drop removes a port or uplink from a state.
func (s *State) drop(id plan.PortID) {
	s.Members = slices.DeleteFunc(s.Members, func(m Member) bool { return m.ID == id })
	s.Config.Ports = slices.DeleteFunc(s.Config.Ports, func(p spec.Port) bool {
		return p.Switch == id.Switch &&
			p.Name == id.Name
	})
	for i := range s.Config.Switches {
		if sw := &s.Config.Switches[i]; sw.Name == id.Switch {
			sw.Uplinks = slices.DeleteFunc(sw.Uplinks, func(u spec.Uplink) bool { return u.Name == id.Name })
			for _, name := range append(dropMember(sw, id.Name), id.Name) {
				forEachTeam(s.Config, sw, func(t *spec.Teaming) { dropName(t.Active, name); dropName(t.Standby, name) })
			}
		}
	}
}

// dropMember removes an uplink from the LAGs, and names those that have none left and are gone as well.
func dropMember(sw *spec.Switch, uplink string) (gone []string) {
	sw.LAGs = slices.DeleteFunc(sw.LAGs, func(g spec.LAG) bool {
		return slices.Equal(g.Uplinks, []string{uplink}) &&
			keep(&gone, g.Name)
	})
	for i := range sw.LAGs {
		dropName(&sw.LAGs[i].Uplinks, uplink)
	}
	return gone
}

func keep(names *[]string, name string) bool {
	*names = append(*names, name)
	return true
}

func forEachTeam(c *spec.Config, sw *spec.Switch, f func(*spec.Teaming)) {
	f(&sw.Defaults.Teaming)
	for i := range sw.PortGroups {
		f(&sw.PortGroups[i].Teaming)
	}
	for i := range c.Ports {
		if c.Ports[i].Switch == sw.Name {
			f(&c.Ports[i].Teaming)
		}
	}
}

func dropName(list *[]string, name string) {
	if list != nil {
		*list = slices.DeleteFunc(*list, func(s string) bool { return s == name })
	}
}
