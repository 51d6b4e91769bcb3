package agent

import (
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// report logs what changed for each port: up and down, blocked (S41), violations (S3, D2), and why one is not connected.
func (a *Agent) report() {
	now := make(map[plan.PortID]observation, len(a.last))
	for _, sw := range a.plan.Switches {
		for _, u := range sw.Uplinks {
			f, ok := a.applied.Facts[u.ID]
			o := observation{up: ok && f.Up, blocked: u.Blocked, problem: a.problems[u.ID]}
			a.logChange("uplink", u.ID, o)
			now[u.ID] = o
		}
		own := dataplane.EffectiveMACs(sw, a.applied.Facts)
		for _, p := range sw.Ports {
			f, ok := a.applied.Facts[p.ID]
			o := observation{up: ok && f.Up, blocked: p.Policy.Blocked.V, problem: a.problems[p.ID]}
			if ok {
				o.violation = own[p.ID].Violation
			}
			a.logChange("port", p.ID, o)
			now[p.ID] = o
		}
	}
	for id := range a.last {
		if _, ok := now[id]; !ok {
			a.log.Info("port removed", "port", id.String())
		}
	}
	a.last = now
}

func (a *Agent) logChange(what string, id plan.PortID, o observation) {
	old, known := a.last[id]
	if known && old == o {
		return
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
	case o.violation != "" && old.violation != o.violation:
		log.Warn("security violation", "what", o.violation)
	case o.violation == "" && old.violation != "":
		log.Info("security violation over")
	}
}
