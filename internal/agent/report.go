package agent

import (
	"fmt"
	"slices"
	"time"

	"heddle/internal/agent/refusals"
	"heddle/internal/api"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// The rate limit of reports, in the log and as events, about the changes of one port or uplink and of its neighbours: a
// guest that sets its link up and down, or a neighbour that changes with every frame, would fill the disk and displace
// all other events.
const (
	tellBurst = 60
	tellEvery = 10 * time.Second
)

// reporter reports the changes of ports and uplinks, in the log and as events.
type reporter struct {
	*shared
	ports  *ports
	chains *chains

	last  map[plan.PortID]observation
	limit event.Limiter[plan.PortID] // of reports about a port or uplink
	held  bool                       // a change of a port or uplink is not reported yet

	refused *refusals.Refusals // frames of guests that the policies of their ports refused
}

// observation is the state of a port as it was last logged.
type observation struct {
	up        bool
	blocked   bool
	problem   problem.Problem
	before    []api.ProgramBefore // programs before the switch on its device
	violation observe.Violation
}

// same reports whether nothing changed, whatever the words.
func (o observation) same(old observation) bool {
	return o.up == old.up && o.blocked == old.blocked && o.problem.Same(old.problem) &&
		slices.Equal(o.before, old.before) && o.violation == old.violation
}

// report logs what changed for each port: up and down, blocked (S41), violations (S3, D2), and why one is not
// connected.
func (rp *reporter) report() {
	now := make(map[plan.PortID]observation, len(rp.last))
	rp.held = false
	for _, sw := range rp.Active().Plan.Switches {
		for _, u := range sw.Uplinks {
			f, ok := rp.Active().Applied.Facts[u.ID]
			o := observation{up: ok && f.Up, blocked: u.Blocked, problem: rp.Active().Problems[u.ID],
				before: rp.chains.before[u.ID]}
			now[u.ID] = rp.logChange("uplink", u.ID, o)
		}
		if t := sw.Tunnel; t != nil {
			o := observation{up: rp.Active().Applied.Facts[t.ID].Up, problem: rp.Active().Problems[t.ID]}
			now[t.ID] = rp.logChange("uplink", t.ID, o)
		}
		own := compile.EffectiveMACs(sw, rp.Active().Applied.Facts)
		for i, p := range sw.Ports {
			f, ok := rp.Active().Applied.Facts[p.ID]
			o := observation{up: ok && f.Up, blocked: p.Policy.Blocked.V, problem: rp.Active().Problems[p.ID],
				before: rp.chains.before[p.ID]}
			if ok {
				o.violation = own[i].Violation
			}
			now[p.ID] = rp.logChange("port", p.ID, o)
		}
	}
	for id := range rp.last {
		if _, ok := now[id]; !ok {
			rp.log.Info("port removed", "port", id.String())
			rp.refused.Forget(id)
		}
	}
	rp.last = now
}

// logChange reports the state of a port if it differs from the last report, and returns what has been reported. For a
// port that changes all the time the report is delayed, and has the state at that time. What an operator does is
// reported at once.
func (rp *reporter) logChange(what string, id plan.PortID, o observation) observation {
	old, known := rp.last[id]
	if known && o.same(old) {
		return o
	}
	if !rp.limit.Allow(id, time.Now()) && known && old.blocked == o.blocked {
		rp.held = true
		return old
	}
	rp.publishChange(what, id, old, o, known)
	log := rp.log.With(what, id.String())
	if !known || old.up != o.up {
		if o.up {
			log.Info("up")
		} else if known || o.problem.None() {
			log.Info("down")
		}
	}
	if old.blocked != o.blocked {
		if o.blocked {
			log.Warn("blocked")
		} else {
			log.Warn("unblocked")
		}
	}
	if !o.problem.None() && !o.problem.Same(old.problem) {
		log.Warn("not in full service", "why", o.problem.Text())
	}
	switch {
	case len(o.before) > 0 && !slices.Equal(old.before, o.before):
		log.Warn("not in full service", "why", api.Before(o.before))
	case len(o.before) == 0 && len(old.before) > 0:
		log.Info("nothing runs before the switch any more")
	}
	switch {
	case !o.violation.None() && old.violation != o.violation:
		log.Warn("security violation", "what", o.violation.Text())
	case o.violation.None() && !old.violation.None():
		log.Info("security violation over")
	}
	return o
}

// publishChange publishes as an event what the log says about a port or uplink.
func (rp *reporter) publishChange(what string, id plan.PortID, old, o observation, known bool) {
	say := func(k event.Kind, from, to, format string, args ...any) {
		e := about(what, id)
		e.Kind, e.From, e.To, e.Text = k, from, to, fmt.Sprintf(format, args...)
		rp.events.Publish(e)
	}
	subject := what + " " + id.Name
	if old.up != o.up && (known || o.up) {
		say(event.Link, upDown(old.up), upDown(o.up), "%s is %s", subject, upDown(o.up))
	}
	if o.up && (old.up || !known) && !toldElsewhere(old.problem) && !toldElsewhere(o.problem) &&
		!o.problem.Same(old.problem) {
		impaired(say, subject, o.problem)
	}
	if old.blocked != o.blocked {
		word := map[bool]string{true: "blocked", false: "unblocked"}
		say(event.Blocked, word[old.blocked], word[o.blocked], "%s is %s", subject, word[o.blocked])
	}
	switch {
	case len(o.before) > 0 && !slices.Equal(old.before, o.before):
		say(event.Program, "", "", "%s: %s", subject, api.Before(o.before))
	case len(o.before) == 0 && len(old.before) > 0:
		say(event.Program, "", "", "%s: no program runs before the switch any more", subject)
	}
	switch {
	case !o.violation.None() && old.violation != o.violation:
		say(event.Violation, "", "", "%s: %s", subject, o.violation.Text())
	case o.violation.None() && !old.violation.None():
		say(event.Violation, "", "", "%s: the violation is over", subject)
	}
}

// impaired publishes that a port or uplink that is up is not in full service, or is again.
func impaired(say func(k event.Kind, from, to, format string, args ...any), subject string, why problem.Problem) {
	if why.None() {
		say(event.Impaired, "", "", "%s is in full service again", subject)
		return
	}
	say(event.Impaired, "", string(why.Code), "%s is not in full service: %s", subject, why.Text())
}

// toldElsewhere reports whether events of other kinds tell of the state, or it passes by itself within moments.
func toldElsewhere(why problem.Problem) bool {
	switch why.Code {
	case problem.AttachQueued, problem.LinkDown, problem.GuestUnsure, problem.GuestArrives, problem.GuestLeft,
		problem.GuestOverdue, problem.RivalGuest, problem.LoopSeen, problem.LoopProbed, problem.NoUplink:
		return true
	}
	return false
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// tellHeld reports the present state of ports whose report was delayed, if the rate limiter allows it by now.
func (rp *reporter) tellHeld() {
	if rp.held {
		rp.report()
	}
}

// tellLimit returns the rate limit of reports about one port, uplink or neighbour.
func tellLimit() event.Limiter[plan.PortID] {
	return event.Limiter[plan.PortID]{Burst: tellBurst, Every: tellEvery}
}
