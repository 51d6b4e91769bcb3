package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/event"
	"heddle/internal/plan"
)

// move is a number of ports that changed their uplinks in the same way for the same reason.
type move struct{ sw, from, to, why string }

// moved is called when teams have come into force: it publishes what moved where, and announces every port that moved, was
// connected, or is in other VLANs now (S47, S49, S50).
func (a *Agent) moved(now *teams) {
	was := a.formed()
	a.teaming.inForce = now
	counts := map[move]int{}
	var order []move
	var announced []announcing
	for _, sw := range a.applied.Plan.Switches {
		for _, p := range sw.Ports {
			old, had := was.ports[p.ID]
			u, connected := now.ports[p.ID]
			stayed := had && connected && (!old.known || old.up && old.device == u.device)
			changed := stayed && !slices.Equal(old.Using, u.Using)
			if changed {
				m := move{sw.Name, strings.Join(old.Using, ","), strings.Join(u.Using, ","), a.whyMoved(sw, old, u, was, now)}
				if counts[m]++; counts[m] == 1 {
					order = append(order, m)
				}
			}
			switch {
			case changed:
				announced = append(announced, announcing{sw, p, true})
			case connected && u.up && (!stayed || old.known && old.vlan != u.vlan):
				announced = append(announced, announcing{sw, p, false})
			case had && old.known && old.up && !u.up: // what still waits is forgotten
				announced = append(announced, announcing{sw, p, false})
			}
		}
	}
	a.announce(announced, now)
	took := a.sinceNoted()
	for _, m := range order {
		a.publishMove(m, counts[m], took)
	}
}

// sinceNoted is how long after its notification the change at hand was in force; 0 when there was none.
func (a *Agent) sinceNoted() time.Duration {
	if a.teaming.noted.IsZero() {
		return 0
	}
	clock, err := dataplane.Monotonic()
	if err != nil {
		return 0
	}
	return max(0, time.Since(a.teaming.noted)-time.Duration(clock-a.flip.After))
}

func (a *Agent) publishMove(m move, ports int, took time.Duration) {
	none := func(s string) string {
		if s == "" {
			return "no uplink"
		}
		return s
	}
	who := fmt.Sprintf("%d ports use", ports)
	if ports == 1 {
		who = "1 port uses"
	}
	ms, after := float64(took)/float64(time.Millisecond), ""
	if took > 0 {
		after = fmt.Sprintf(" after %.1f ms", ms)
	}
	text := fmt.Sprintf("%s %s instead of %s%s: %s", who, none(m.to), none(m.from), after, m.why)
	a.events.Publish(event.Event{Kind: event.Failover, Switch: m.sw, From: m.from, To: m.to, Ports: ports, TookMs: ms, Text: text})
	a.log.Info("failover", "switch", m.sw, "from", m.from, "to", m.to, "ports", ports, "what", text)
}

// whyMoved says why a port changed what it uses: what it used failed, what it prefers is back, or somebody wants it so.
func (a *Agent) whyMoved(sw *plan.Switch, old, now portUse, was, is *teams) string {
	for _, e := range old.Using {
		if !is.usable[plan.PortID{Switch: sw.Name, Name: e}] {
			return e + ": " + a.whyUnusable(sw, e)
		}
	}
	for _, e := range now.Using {
		if up, knew := was.usable[plan.PortID{Switch: sw.Name, Name: e}]; knew && !up && !slices.Contains(old.Using, e) {
			return e + " is back"
		}
	}
	if !old.known {
		return "found so at the start of the agent"
	}
	if old.team.Assigned != now.team.Assigned {
		return "load"
	}
	return "the configuration changed"
}

func (a *Agent) whyUnusable(sw *plan.Switch, entry string) string {
	if sw.LAG(entry) != nil {
		return "none of its members is usable"
	}
	u := a.applied.Plan.Uplink(plan.PortID{Switch: sw.Name, Name: entry})
	switch {
	case u == nil:
		return "it is no uplink of the switch any more"
	case a.applied.Facts[u.ID].Out != "":
		return a.applied.Facts[u.ID].Out
	}
	return a.linkState(u.Device)
}
