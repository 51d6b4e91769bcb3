package beacon

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Interval is the time between two beacons of an uplink.
const Interval = time.Second

// missedRounds is the number of silent rounds after which an uplink counts as cut off.
const missedRounds = 3

// Machine watches one group. Its owner calls Cycle every interval, sends the beacons that Cycle returns, and passes
// received beacons to Heard. It is for one goroutine.
//
// A round is the number of cycles that it takes to send in every VLAN: one, as long as VLANs times uplinks are at most
// MaxPerCycle. At the end of a round each uplink is judged by which beacons of the last rounds arrived where.
type Machine struct {
	group Group
	// delay is how long an uplink must be heard again without a break before it is used again.
	delay time.Duration
	round uint64 // 0 until the first cycle
	cycle int    // number within the round
	by    map[plan.PortID]*uplink
	state State
}

// uplink is the state of a member.
type uplink struct {
	up bool
	// hears has, for each other uplink, the last round in which its beacon arrived here; heardBy the last round in
	// which a beacon of this uplink arrived there. Absent: never.
	hears map[plan.PortID]uint64
	since uint64          // the first whole round during which its link has been up
	well  time.Time       // since when it has been heard again without a break; zero: it is not heard
	out   problem.Problem // why it is out of use
}

// State is the state of a group.
type State string

// The states of a group.
const (
	// Fine: every uplink hears another and is heard, or those that do not are out of use.
	Fine State = "fine"
	// Ambiguous: uplinks are cut off from each other, and it is unknown which of them is at fault (two uplinks, or all
	// silent). All stay in use.
	Ambiguous State = "ambiguous"
	// Split: the uplinks fall into parts; uplinks of one part hear each other, those of different parts do not. All
	// stay in use.
	Split State = "split"
)

// Change is a result of a cycle: an uplink that is out of use from now on, or used again, or a group in another state.
type Change struct {
	Uplink plan.PortID // zero if the change is about the group
	// Why is the reason why the uplink is out of use; none when it is used again.
	Why   problem.Problem
	State State // of the group, if the change is about it
	Text  string
}

// New returns a machine for a group, with every uplink in use.
func New(g Group, delay time.Duration) *Machine {
	m := &Machine{by: map[plan.PortID]*uplink{}, state: Fine}
	m.Set(g, delay)
	return m
}

// Set changes the group's VLANs, members and up-delay; new members are in use.
func (m *Machine) Set(g Group, delay time.Duration) {
	m.group, m.delay = g, delay
	keep := map[plan.PortID]bool{}
	for _, u := range g.Members {
		keep[u.ID] = true
		if m.by[u.ID] == nil {
			m.by[u.ID] = &uplink{hears: map[plan.PortID]uint64{}}
		}
	}
	for id := range m.by {
		if !keep[id] {
			delete(m.by, id)
		}
	}
}

// Link sets whether an uplink's link is up; at first it is down. An uplink whose link is down takes no part, and when
// the link comes up again its history does not count.
func (m *Machine) Link(id plan.PortID, up bool) []Change {
	u := m.by[id]
	if u == nil || u.up == up {
		return nil
	}
	u.up, u.out, u.since, u.well = up, problem.Problem{}, m.round+1, time.Time{}
	clear(u.hears)
	return m.rescue(m.linked())
}

// Heard records a beacon that arrived on an uplink. It counts if it belongs to this round or the last one, so that a
// beacon that was recorded and replayed proves nothing, and if another member sent it.
func (m *Machine) Heard(on plan.PortID, b Beacon) {
	u, from := m.by[on], m.by[b.Uplink]
	if u == nil || from == nil || on == b.Uplink || !u.up || !from.up {
		return
	}
	if b.Round > m.round || b.Round+1 < m.round {
		return
	}
	u.hears[b.Uplink] = m.round
}

// Out returns why an uplink is out of use, none if it is used.
func (m *Machine) Out(id plan.PortID) problem.Problem {
	if u := m.by[id]; u != nil {
		return u.out
	}
	return problem.Problem{}
}

// State returns the state of the group.
func (m *Machine) State() State { return m.state }

// Cycle ends the previous cycle, judges the uplinks if that ended a round, and returns the beacons to send in the next
// cycle.
func (m *Machine) Cycle(now time.Time) ([]Beacon, []Change) {
	up := m.linked()
	var changes []Change
	if m.cycle++; m.cycle >= m.group.cycles(len(up)) {
		changes = m.judge(up, now)
		m.cycle = 0
		m.round++
	}
	per := m.group.perCycle(len(up))
	first := min(m.cycle*per, len(m.group.VLANs))
	vlans := m.group.VLANs[first:min(first+per, len(m.group.VLANs))]
	var probes []Beacon
	for _, u := range up {
		for _, v := range vlans {
			if u.VLANs.Has(v) {
				probes = append(probes, Beacon{Uplink: u.ID, VLAN: v, Round: m.round})
			}
		}
	}
	return probes, changes
}

// linked returns the members whose links are up.
func (m *Machine) linked() []Member {
	return slices.DeleteFunc(slices.Clone(m.group.Members), func(u Member) bool { return !m.by[u.ID].up })
}

// reaches reports whether a beacon of one uplink arrived on another within the last rounds.
func (m *Machine) reaches(from, to plan.PortID, rounds uint64) bool {
	last, ok := m.by[to].hears[from]
	return ok && last+rounds > m.round
}

// cutOff returns what is wrong with an uplink, "" if it hears one of the others and is heard by one.
func (m *Machine) cutOff(id plan.PortID, up []Member, rounds uint64) problem.Code {
	hears, heard := false, false
	for _, o := range up {
		if o.ID != id {
			hears = hears || m.reaches(o.ID, id, rounds)
			heard = heard || m.reaches(id, o.ID, rounds)
		}
	}
	switch {
	case !hears && !heard:
		return problem.BeaconsLost
	case !hears:
		return problem.BeaconsDeaf
	case !heard:
		return problem.BeaconsUnheard
	}
	return ""
}

// othersHear reports whether two uplinks other than this one hear each other: the network between them works.
func (m *Machine) othersHear(id plan.PortID, up []Member, rounds uint64) bool {
	for i, a := range up {
		for _, b := range up[i+1:] {
			if a.ID != id && b.ID != id && m.reaches(a.ID, b.ID, rounds) && m.reaches(b.ID, a.ID, rounds) {
				return true
			}
		}
	}
	return false
}

func (m *Machine) judge(up []Member, now time.Time) (changes []Change) {
	settled := true
	for _, member := range up {
		u := m.by[member.ID]
		if u.since+missedRounds > m.round+1 { // it has not taken part for long enough
			settled = false
			continue
		}
		if c, ok := m.judgeOne(member.ID, u, up, now); ok {
			changes = append(changes, c)
		}
	}
	changes = append(changes, m.rescue(up)...)
	if !settled {
		return changes
	}
	if s, text := m.stateOf(up); s != m.state {
		m.state = s
		changes = append(changes, Change{State: s, Text: text})
	}
	return changes
}

func (m *Machine) judgeOne(id plan.PortID, u *uplink, up []Member, now time.Time) (c Change, changed bool) {
	if u.out.None() {
		cut := m.cutOff(id, up, missedRounds)
		if cut == "" || !m.othersHear(id, up, missedRounds) {
			return c, false
		}
		why := problem.Problem{Code: cut, Want: missedRounds}
		u.out, u.well = why, time.Time{}
		return Change{Uplink: id, Why: why, Text: fmt.Sprintf("uplink %s is taken out of use: %s", id.Name, why)}, true
	}
	inUse := slices.DeleteFunc(slices.Clone(up), func(o Member) bool { return !m.by[o.ID].out.None() })
	if m.cutOff(id, inUse, 1) != "" {
		u.well = time.Time{}
		return c, false
	}
	if u.well.IsZero() {
		u.well = now
	}
	if now.Sub(u.well) < m.delay {
		return c, false
	}
	u.out = problem.Problem{}
	return Change{Uplink: id, Text: fmt.Sprintf("uplink %s is used again: its beacons are heard", id.Name)}, true
}

// rescue takes every uplink back into use if beacons tell against all that have a link: a bad uplink is better than
// none.
func (m *Machine) rescue(up []Member) (changes []Change) {
	if len(up) == 0 || slices.ContainsFunc(up, func(u Member) bool { return m.by[u.ID].out.None() }) {
		return nil
	}
	for _, u := range up {
		m.by[u.ID].out = problem.Problem{}
		changes = append(changes, Change{Uplink: u.ID,
			Text: fmt.Sprintf("uplink %s is used again: no other one is left", u.ID.Name)})
	}
	return changes
}

// stateOf returns the state of the group, judged by the uplinks in use.
func (m *Machine) stateOf(up []Member) (State, string) {
	parts := m.parts(slices.DeleteFunc(slices.Clone(up), func(u Member) bool { return !m.by[u.ID].out.None() }))
	if len(parts) < 2 {
		return Fine, fmt.Sprintf("no uplink in use of switch %s is cut off from another any more", m.group.Switch)
	}
	var text []string
	alone := 0
	for _, p := range parts {
		text = append(text, "["+strings.Join(p, " ")+"]")
		if len(p) == 1 {
			alone++
		}
	}
	if alone == len(parts) {
		return Ambiguous, fmt.Sprintf("uplinks %s of switch %s do not hear each other's beacons, and it is unknown "+
			"which is at fault: all stay in use", strings.Join(text, " "), m.group.Switch)
	}
	return Split, fmt.Sprintf("the uplinks of switch %s hear each other's beacons only within %s: the physical "+
		"network is split, and all stay in use", m.group.Switch, strings.Join(text, " "))
}

// parts returns the sets of uplinks that hear each other in both directions.
func (m *Machine) parts(up []Member) (parts [][]string) {
	seen := map[plan.PortID]bool{}
	for _, u := range up {
		if seen[u.ID] {
			continue
		}
		seen[u.ID] = true
		part, queue := []string{}, []plan.PortID{u.ID}
		for len(queue) > 0 {
			a := queue[0]
			queue = queue[1:]
			part = append(part, a.Name)
			for _, b := range up {
				if !seen[b.ID] && m.reaches(a, b.ID, missedRounds) && m.reaches(b.ID, a, missedRounds) {
					seen[b.ID] = true
					queue = append(queue, b.ID)
				}
			}
		}
		parts = append(parts, part)
	}
	return parts
}
