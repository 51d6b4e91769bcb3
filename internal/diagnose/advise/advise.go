package advise

import (
	"cmp"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/observe/event"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
)

// Snapshot is the input of the rules, which do not change it.
type Snapshot struct {
	// Host is the plan with its port groups, the facts of the devices, and the ports connected by command.
	Host *trace.Host
	// State is the state of the same host for the command line.
	State *api.State
	// Stats are the counters since each port was connected or, with a Window, the result of Since.
	Stats  []api.Stats
	Window time.Duration
	// Recent are the counters of the last moments, RecentFor is how long those lasted; with a Window they are Stats and
	// Window.
	Recent    []api.Stats
	RecentFor time.Duration
	MACs      []api.MAC
	// Flows are the state of metering and export; with a Window, the result of FlowsSince. nil if it is not known.
	Flows *api.FlowStatus
	// Membership is the host's part in a cluster; nil if it is not known.
	Membership *api.Membership
	// StateFault says why no change can be kept on the host's disk; "" where it can.
	StateFault string
	// Past are the devices that send past the switches, in the order of the ports and uplinks on whose devices they
	// are.
	Past []Past
	// Abilities are the offloads and queues of devices, if known.
	Abilities map[plan.PortID]Ability
	// Events are the events that the agent keeps, in order.
	Events []event.Event
	// Seen dates the counters, Absent says since when ports and uplinks have had no device.
	Seen   sightings.Seen
	Absent map[plan.PortID]sightings.Absence
	// Since is the largest age, since it was last seen, of a finding that is shown; All shows every finding.
	Since time.Duration
	All   bool
	Now   time.Time
}

// Past is a device that sends and receives past a switch, on a device of that switch.
type Past struct {
	// At is the port or uplink that the device below serves.
	At plan.PortID
	// Device and Driver are the device's own; Where says on which device it is and of which it is a member.
	Device, Driver, Where string
}

// Rule is one rule. Its texts are also its line in the how-to.
type Rule struct {
	ID    string
	Level api.FindingLevel
	// About says in a few words what is misconfigured, Sign what the rule measures, Why what the consequence is, Fix
	// what to do in general; a finding has the command or the lines for its case.
	About, Sign, Why, Fix string
	find                  func(*look) []api.Finding
}

// mostOfARule bounds the findings of one rule: one wrong line of a port group shows on all its ports.
const mostOfARule = 16

// Examine asks every rule.
func Examine(s *Snapshot) *api.Advice {
	l := newLook(s)
	a := &api.Advice{MeasuredSeconds: s.Window.Seconds(), SinceSeconds: s.Since.Seconds(),
		Ports: len(s.State.Ports), Uplinks: len(s.State.Uplinks),
		Findings: []api.Finding{}}
	for _, r := range Rules() {
		a.Rules++
		found, older := s.showing(r.find(l))
		a.Older += older
		if more := len(found) - mostOfARule; more > 0 {
			if a.More == nil {
				a.More = map[string]int{}
			}
			a.More[r.ID], found = more, found[:mostOfARule]
		}
		for _, f := range found {
			f.Rule, f.Why = r.ID, cmp.Or(f.Why, r.Why)
			f.Level = cmp.Or(f.Level, r.Level)
			a.Findings = append(a.Findings, f)
		}
	}
	slices.SortStableFunc(a.Findings, func(x, y api.Finding) int { return rank(x.Level) - rank(y.Level) })
	return a
}

func rank(l api.FindingLevel) int {
	if l == api.FindingWrong {
		return 0
	}
	return 1
}

// Rules returns all rules, in the order in which their findings are listed.
func Rules() []Rule {
	return slices.Concat(controllerRules(), securityRules(), learningRules(), guardRules(), loopRules(), floodRules(),
		addressRules(), vlanRules(), neighbourVLANRules(), uplinkRules(), redundancyRules(), deviceRules(),
		offloadRules(), guestRules(), flowRules(), tunnelRules(), twinRules())
}
