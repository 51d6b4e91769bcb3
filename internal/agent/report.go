package agent

import (
	"time"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// report logs what changed for each port: up and down, blocked (S41), violations (S3, D2), and why one is not connected.
func (a *Agent) report() {
	now := make(map[plan.PortID]observation, len(a.last))
	a.quiet.held = false
	for _, sw := range a.plan.Switches {
		for _, u := range sw.Uplinks {
			f, ok := a.applied.Facts[u.ID]
			o := observation{up: ok && f.Up, blocked: u.Blocked, problem: a.problems[u.ID], before: api.Before(a.before[u.ID])}
			now[u.ID] = a.logChange("uplink", u.ID, o)
		}
		own := dataplane.EffectiveMACs(sw, a.applied.Facts)
		for i, p := range sw.Ports {
			f, ok := a.applied.Facts[p.ID]
			o := observation{up: ok && f.Up, blocked: p.Policy.Blocked.V, problem: a.problems[p.ID], before: api.Before(a.before[p.ID])}
			if ok {
				o.violation = own[i].Violation
			}
			now[p.ID] = a.logChange("port", p.ID, o)
		}
	}
	for id := range a.last {
		if _, ok := now[id]; !ok {
			a.log.Info("port removed", "port", id.String())
		}
	}
	a.last = now
}

// logChange tells how a port is now where that is another than was told last, and gives what has been told: of one that changes
// all the time, later, how it is then. What an operator does is told at once.
func (a *Agent) logChange(what string, id plan.PortID, o observation) observation {
	old, known := a.last[id]
	if known && old == o {
		return o
	}
	if !a.quiet.changes.Allow(id, time.Now()) && known && old.blocked == o.blocked {
		a.quiet.held = true
		return old
	}
	a.publishChange(what, id, old, o, known)
	log := a.log.With(what, id.String())
	if !known || old.up != o.up {
		if o.up {
			log.Info("up")
		} else if known || o.problem == "" {
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
	if o.problem != "" && old.problem != o.problem {
		log.Warn("not in full service", "why", o.problem)
	}
	switch {
	case o.before != "" && old.before != o.before:
		log.Warn("not in full service", "why", o.before)
	case o.before == "" && old.before != "":
		log.Info("nothing runs before the switch any more")
	}
	switch {
	case o.violation != "" && old.violation != o.violation:
		log.Warn("security violation", "what", o.violation)
	case o.violation == "" && old.violation != "":
		log.Info("security violation over")
	}
	return o
}
