package advise

import (
	"fmt"
	"heddle/internal/diagnose"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

// look is a snapshot with indexes for the rules.
type look struct {
	*Snapshot
	explain *trace.Explainer
	count   map[plan.PortID]*counts
	port    map[plan.PortID]*api.Port
	uplink  map[plan.PortID]*api.Uplink
}

// counts are the counters of a port or uplink, by name.
type counts struct {
	*api.Stats
	drops, refused, named map[string]uint64
}

func newLook(s *Snapshot) *look {
	l := &look{Snapshot: s, explain: trace.NewExplainer(s.Host), count: map[plan.PortID]*counts{},
		port:   map[plan.PortID]*api.Port{},
		uplink: map[plan.PortID]*api.Uplink{}}
	for i := range s.Stats {
		one := &s.Stats[i]
		if s.Window == 0 {
			one = lessBefore(one, s.Seen)
		}
		l.count[plan.PortID{Switch: one.Switch, Name: one.Name}] = newCounts(one)
	}
	for i := range s.State.Ports {
		p := &s.State.Ports[i]
		l.port[plan.PortID{Switch: p.Switch, Name: p.Name}] = p
	}
	for i := range s.State.Uplinks {
		u := &s.State.Uplinks[i]
		l.uplink[plan.PortID{Switch: u.Switch, Name: u.Name}] = u
	}
	return l
}

func newCounts(s *api.Stats) *counts {
	c := &counts{Stats: s, drops: reasonsOf(s.Drops), refused: reasonsOf(s.Refused), named: map[string]uint64{}}
	for _, n := range slices.Concat(s.Counters, s.Extra) {
		c.named[n.Name] = n.Value
	}
	return c
}

func reasonsOf(list []api.ReasonNo) map[string]uint64 {
	by := make(map[string]uint64, len(list))
	for _, r := range list {
		by[r.Reason] = r.Value
	}
	return by
}

// of returns the counters of a port or uplink; all are 0 if there are none.
func (l *look) of(id plan.PortID) *counts {
	if c := l.count[id]; c != nil {
		return c
	}
	return &counts{Stats: &api.Stats{}}
}

func (c *counts) dropped(r abi.Reason) uint64 { return c.drops[r.String()] }
func (c *counts) kept(r abi.Reason) uint64    { return c.refused[r.String()] }

func (c *counts) in() uint64 { return c.named["packetsInUnicast"] + c.groupIn() }
func (c *counts) groupIn() uint64 {
	return c.named["packetsInMulticast"] + c.named["packetsInBroadcast"]
}
func (c *counts) out() uint64 {
	return c.unicast() + c.named["packetsOutMulticast"] + c.named["packetsOutBroadcast"]
}
func (c *counts) unicast() uint64      { return c.named["packetsOutUnicast"] }
func (l *look) up(id plan.PortID) bool { return l.Host.Facts[id].Up }

// command returns a command about a port, an uplink or a LAG, as it can be typed.
func (l *look) command(id plan.PortID, verb string, more ...string) string {
	return diagnose.Command(l.Host.Plan, id, verb, more...)
}

// connected reports whether a device serves the port or uplink.
func (l *look) connected(id plan.PortID) bool {
	_, ok := l.Host.Facts[id]
	return ok
}

// eachPort calls visit with the connected ports.
func (l *look) eachPort(visit func(*plan.Switch, *plan.Port, *counts)) {
	for _, sw := range l.Host.Plan.Switches {
		for _, p := range sw.Ports {
			if l.connected(p.ID) {
				visit(sw, p, l.of(p.ID))
			}
		}
	}
}

// eachUplink calls visit with the connected uplinks.
func (l *look) eachUplink(visit func(*plan.Switch, *plan.Uplink, *counts)) {
	for _, sw := range l.Host.Plan.Switches {
		for _, u := range sw.Uplinks {
			if l.connected(u.ID) {
				visit(sw, u, l.of(u.ID))
			}
		}
	}
}

// remedy joins a measured finding with its cause.
func remedy(f api.Finding, c diagnose.Cause) api.Finding {
	f.Change, f.Edit, f.Command = c.Change, c.Edit, c.Command
	return f
}

func onPort(p *plan.Port, sign string, args ...any) api.Finding {
	return api.Finding{Switch: p.ID.Switch, Port: p.ID.Name, Sign: fmt.Sprintf(sign, args...)}
}

func onUplink(u *plan.Uplink, sign string, args ...any) api.Finding {
	return api.Finding{Switch: u.ID.Switch, Uplink: u.ID.Name, Sign: fmt.Sprintf(sign, args...)}
}

// refusals returns the findings about frames of ports, or copies for them, that were dropped for one reason.
func (l *look) refusals(why abi.Reason, sign string, known func(*plan.Port) trace.Known) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		if n := c.dropped(why); n > 0 {
			cause, _ := l.explain.Explain(p.ID, why, known(p))
			f := onPort(p, sign, frames(n), were(n), l.period(p.ID, dropsOf(why)))
			found = append(found, remedy(l.dated(f, p.ID, dropsOf(why)), cause))
		}
	})
	return found
}

// frames returns a number of frames in words.
func frames(n uint64) string { return many(n, "frame") }

// many returns a number of things, with a comma before each group of three digits: "1 frame", "12,040 frames".
func many(n uint64, what string) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n == 1 {
		return digits + " " + what
	}
	if rest, ok := strings.CutSuffix(what, "y"); ok {
		return digits + " " + rest + "ies"
	}
	return digits + " " + what + "s"
}

// were returns the verb for a number: 1 frame was dropped, 2 frames were dropped.
func were(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// percent returns a in percent of b, rounded down.
func percent(a, b uint64) uint64 {
	if b == 0 {
		return 0
	}
	return uint64(100 * float64(a) / float64(b))
}

// recent returns the counters of the last moments of a port or uplink.
func (l *look) recent(id plan.PortID) *counts {
	for i := range l.Recent {
		if s := &l.Recent[i]; s.Switch == id.Switch && s.Name == id.Name {
			return newCounts(s)
		}
	}
	return &counts{Stats: &api.Stats{}}
}
