package advise

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

func addressRules() []Rule {
	return []Rule{
		{"mac-limit", api.FindingWrong, "a port holds as many learned MACs as it may",
			"frames dropped as `mac-limit`, or let pass unlearned",
			"stations behind the port that came later get nothing, or are flooded to",
			"Raise macLearning.limit if that many stations are meant to be behind the port.",
			macLimit},
		{"mac-table", api.FindingNote, "a table of learned MACs is nearly full",
			"learned MACs of a port, or of the host, against the limit: 90 % and more",
			"the next stations are not learned",
			"Raise the port's limit, or host.macTable, or lower the limit of ports that need fewer.",
			macTable},
		{"mac-twice", api.FindingWrong, "a MAC is seen on two ports",
			"two adapters that use one address, or an address that moves between two ports 3 times a minute",
			"frames for it reach one of the two, now this, now that",
			"Give one of the two another MAC, or take away the second way to the station.",
			macTwice},
		{"mac-flaps", api.FindingWrong, "a MAC goes to and fro between hosts",
			"an address that this host and others learn again and again, as the controllers say",
			"frames for it reach one of the hosts, now this, now that",
			"Give one of the two guests another MAC, or end the second way to the station: a loop between " +
				"hosts, or a bond of which the physical switches know nothing.",
			macFlaps},
		{"mac-change", api.FindingWrong, "an adapter uses another MAC than its port's, and may not",
			"the adapter's address, and copies refused as `mac-change`",
			"the guest gets nothing",
			"Set macChanges: accept, or set the guest's adapter back to the port's MAC.",
			macChange},
	}
}

func macLimit(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		reason := abi.ReasonMACLimit
		if p.MACShare > 0 {
			reason = abi.ReasonMACTableFull
		}
		lost, allowed := c.dropped(reason), c.named[unlearned]
		if lost+allowed == 0 {
			return
		}
		limit, held := uint64(p.MACRoom()), c.named[macsLearned]
		if late := l.recent(p.ID); held < limit && late.dropped(reason)+late.named[unlearned] == 0 {
			return // there is space again: somebody raised the limit, or stations left
		}
		cause, _ := l.explain.Explain(p.ID, reason, trace.Known{Source: l.lastSource(p.ID)})
		period := l.period(p.ID, dropsOf(reason), unlearned)
		f := onPort(p, "it holds %s of %d, and %s from others %s dropped %s", many(held, "learned MAC"),
			limit, frames(lost), were(lost), period)
		if lost == 0 {
			f.Sign = fmt.Sprintf("it holds %s of %d, and %s from others passed unlearned %s",
				many(held, "learned MAC"), limit, frames(allowed), period)
			f.Level = api.FindingNote
		}
		found = append(found, remedy(l.dated(f, p.ID, dropsOf(reason), unlearned), cause))
	})
	return found
}

// fullPercent is the share of entries, in percent, from which a table is nearly full; a limit below smallest is meant
// to be reached.
const (
	fullPercent = 90
	smallest    = 10
)

func macTable(l *look) (found []api.Finding) {
	var all uint64
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		held, limit := c.named[macsLearned], uint64(p.Policy.Learning.Limit.V)
		all += held
		if !p.Policy.Learning.Enabled.V || limit < smallest || percent(held, limit) < fullPercent ||
			held >= limit && c.dropped(abi.ReasonMACLimit)+c.named[unlearned] > 0 {
			return
		}
		cause, _ := l.explain.Explain(p.ID, abi.ReasonMACLimit, trace.Known{})
		found = append(found, remedy(onPort(p, "it holds %s of %d", many(held, "learned MAC"), limit), cause))
	})
	size := uint64(l.Host.Plan.MACTable)
	if warnings := l.Host.Plan.Warnings(); len(warnings) > 0 {
		found = append(found, api.Finding{Level: api.FindingNote, Switch: l.Host.Plan.Switches[0].Name,
			Sign: warnings[0],
			Change: "Set a larger `host: {macTable: …}` in the configuration, apply it, and restart the agent; or " +
				"lower `security: {macLearning: {limit: …}}` of ports that need fewer.",
			Command: l.explain.Apply()})
	}
	if percent(all, size) >= fullPercent {
		found = append(found, api.Finding{Level: api.FindingWrong, Switch: l.Host.Plan.Switches[0].Name,
			Sign: fmt.Sprintf("the host holds %s of %d", many(all, "learned MAC"), size),
			Change: "Lower `security: {macLearning: {limit: …}}` of the port groups that hold the most, or move " +
				"their guests to another host.",
			Command: "heddle mac list --learned"})
	}
	return found
}

func macTwice(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		users := map[plan.MAC][]*plan.Port{}
		for _, p := range sw.Ports {
			if mac := l.used(p); l.connected(p.ID) && !mac.IsZero() && !mac.IsGroup() {
				users[mac] = append(users[mac], p)
			}
		}
		for _, p := range sw.Ports { // in the order of the file
			mac := l.used(p)
			if list := users[mac]; len(list) > 1 && list[0] == p && !oneFamily(list) {
				f := onPort(p, "the adapters of ports %s use one address, %s", names(list), mac)
				f.Change = "Give all but one of the adapters another address."
				f.Command = "heddle mac show " + mac.String()
				found = append(found, f)
			}
		}
	}
	return append(found, l.moving()...)
}

func macFlaps(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, _ *counts) {
		v := l.port[p.ID]
		if v == nil {
			return
		}
		for _, m := range v.Flapping {
			f := onPort(p, "%s", m)
			f.Change = "Give one of the two stations another address; or, if it is one station, let it run on one of " +
				"the hosts alone."
			f.Command = "heddle mac show " + m.MAC
			found = append(found, f)
		}
	})
	return found
}

// oneFamily reports whether the ports are siblings, as those of a bond in a guest are: they may have one address.
func oneFamily(ports []*plan.Port) bool {
	one := ports[0].Family()
	return one != "" && !slices.ContainsFunc(ports, func(p *plan.Port) bool { return p.Family() != one })
}

// used returns the address that a port's adapter uses, if it can be seen.
func (l *look) used(p *plan.Port) plan.MAC {
	if seen := l.Host.Facts[p.ID].SeenMAC; !seen.IsZero() {
		return seen
	}
	return p.InitialMAC
}

func names(ports []*plan.Port) string {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = p.ID.Name
	}
	return strings.Join(list, " and ")
}

// How often an address must move for it to be on two ports: the address of a guest that migrates moves once, or there
// and back.
const (
	movingTimes = 3
	movingFor   = time.Minute
)

// moving finds learned addresses that move back and forth.
func (l *look) moving() (found []api.Finding) {
	type key struct{ sw, mac, vlan string }
	times, last := map[key]uint64{}, map[key]event.Event{}
	var order []key
	for _, e := range l.Events {
		if e.Kind != event.Moved || l.Now.Sub(e.Time) > max(movingFor, l.Window) || e.From == "" || e.From == e.To {
			continue
		}
		k := key{e.Switch, e.MAC, e.VLAN.String()}
		if times[k]++; times[k] == movingTimes {
			order = append(order, k)
		}
		last[k] = e
	}
	for _, k := range order {
		e := last[k]
		found = append(found, api.Finding{Switch: k.sw, Port: e.To,
			Sign: fmt.Sprintf("%s (VLAN %s) moved %s in the last %v, to and fro between ports %s and %s", k.mac,
				k.vlan, many(times[k], "time"), max(movingFor, l.Window), e.From, e.To),
			Change: "Give one of the two stations another address; or, if it is one station, take away one of its " +
				"two ways, such as a bridge in a guest.",
			Command: "heddle mac show " + k.mac})
	}
	return found
}

func macChange(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		v := l.port[p.ID]
		if v == nil || v.Violation == "" || p.Policy.MACChanges.V || l.usedByAnother(p) {
			return
		}
		cause, _ := l.explain.Explain(p.ID, abi.ReasonMACChange, trace.Known{})
		found = append(found, remedy(onPort(p, "%s; %s for it %s refused %s", v.Violation,
			many(c.kept(abi.ReasonMACChange), "copy"),
			were(c.kept(abi.ReasonMACChange)), l.period(p.ID, refusedOf(abi.ReasonMACChange))), cause))
	})
	return found
}

// usedByAnother reports whether another port's adapter uses the same address: then another finding says so.
func (l *look) usedByAnother(p *plan.Port) bool {
	return slices.ContainsFunc(l.Host.Plan.Switches, func(sw *plan.Switch) bool {
		return sw.Name == p.ID.Switch && slices.ContainsFunc(sw.Ports, func(q *plan.Port) bool {
			return q != p && l.connected(q.ID) && l.used(q) == l.used(p)
		})
	})
}
