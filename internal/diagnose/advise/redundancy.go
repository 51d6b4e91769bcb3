package advise

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

func redundancyRules() []Rule {
	return []Rule{
		{"no-uplink", api.FindingWrong, "none of the uplinks that a port group's teaming names can be used",
			"frames refused as `no-uplink`, and the state of each uplink",
			"its ports are cut off from the physical network",
			"Bring one of the uplinks back, or name others in teaming.",
			noUplink},
		{"team-degraded", api.FindingNote, "some uplinks that a port group's teaming names cannot be used",
			"the state of each uplink",
			"it works with what is left, and the next failure cuts the ports off",
			"Bring the uplinks back before the next one fails.",
			teamDegraded},
		{"uplink-drained", api.FindingNote, "an uplink is out of use for its maintenance",
			"that it is drained, or blocked by command, and since when",
			"no team uses it until it is taken back, which is easily forgotten",
			"Take the uplink back when its maintenance is over: heddle uplink restore UPLINK.",
			uplinkDrained},
		{"single-uplink", api.FindingNote, "a port group has one uplink, and the switch has more",
			"uplinks named by the teaming, uplinks that can be used",
			"when that uplink fails, the others that carry its VLAN do not take over",
			"Name a second uplink in teaming.active or teaming.standby.",
			singleUplink},
		{"lag-member", api.FindingWrong, "a member of a LAG is up and not in the bundle",
			"what LACP says of the member, and its PDUs received and sent",
			"the LAG has less than its width, or the other end is set up otherwise",
			"Make the bundle on the physical switch as the LAG is here: the same links, speed and LACP " +
				"mode.",
			lagMember},
		{"lag-degraded", api.FindingNote, "some members of a LAG have no link or no device",
			"the state of each member's device",
			"the LAG has less than its width, and the last member's failure cuts its ports off",
			"Bring the LAG's other members back before the last one fails.",
			lagDegraded},
	}
}

func noUplink(l *look) (found []api.Finding) {
	for _, t := range l.teams() {
		lost := l.sum(t, func(c *counts) uint64 { return c.dropped(abi.ReasonNoUplink) + c.kept(abi.ReasonNoUplink) })
		if len(l.usable(t.all())) > 0 {
			continue
		}
		f := t.on("%s", strings.Join(l.unusable(t.all()), ", "))
		if lost > 0 {
			f.Sign += fmt.Sprintf("; %s found no uplink %s", frames(lost), l.periodOfMany())
		}
		cause, _ := l.explain.Explain(t.first.ID, abi.ReasonNoUplink, trace.Known{})
		found = append(found, remedy(f, cause))
	}
	return found
}

func teamDegraded(l *look) (found []api.Finding) {
	for _, t := range l.teams() {
		out, usable := l.unusable(t.all()), l.usable(t.all())
		if len(out) == 0 || len(usable) == 0 {
			continue
		}
		f := t.on("%d of %d can be used; not %s", len(usable), len(t.all()), strings.Join(out, ", "))
		f.Change = "Bring the uplink back, or take it out of the teaming."
		f.Command = printable.Command("heddle", "uplink", "list", "--switch", t.sw.Name)
		found = append(found, f)
	}
	return found
}

func uplinkDrained(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, u := range sw.Uplinks { // also one whose device is out of use
			v := l.uplink[u.ID]
			if v == nil || v.Maintenance == nil || !v.Maintenance.ByCommand && !u.Drained {
				continue
			}
			f := onUplink(u, "%s by the configuration file", v.Maintenance.Use)
			f.Change = "Take `drained: true` out of the file once the work is done."
			f.Command = l.command(u.ID, "uplink show")
			if v.Maintenance.ByCommand {
				f = onUplink(u, "%s by command for %s", v.Maintenance.Use,
					l.Now.Sub(v.Maintenance.Since).Round(time.Second))
				f.Change, f.Command = "Take it back once the work is done.", l.command(u.ID, "uplink restore")
			}
			found = append(found, f)
		}
	}
	return found
}

func singleUplink(l *look) (found []api.Finding) {
	for _, t := range l.teams() {
		vlans := vlansOf(&t.first.Policy.VLAN.V)
		all, on := t.all(), slices.DeleteFunc(l.usable(links(t.sw, choices(t.sw))), func(k link) bool {
			carries := k.vlans()
			return !overlap(&carries, &vlans)
		})
		if len(all) != 1 || all[0].lag || len(on) < 2 {
			continue
		}
		spare := ""
		for _, k := range on {
			if k.name != all[0].name {
				spare = k.name
				break
			}
		}
		f := t.on("its teaming names %s alone, and %d can be used: %s", all[0].name, len(on), linkNames(on))
		as := plan.Setting{Path: "teaming.standby", Value: spare}
		if t.policy().Policy.V == spec.IPHash { // IP hash has no standby
			as = plan.Setting{Path: "teaming.active", Value: all[0].name + "," + spare}
		}
		found = append(found, remedy(f, l.explain.Fix(t.first, "Name another, too, unless the ports are meant to "+
			"stay on that one.", as)))
	}
	return found
}

func lagMember(l *look) (found []api.Finding) {
	l.eachUplink(func(_ *plan.Switch, u *plan.Uplink, _ *counts) {
		v := l.uplink[u.ID]
		if v == nil || v.LAG == nil || v.LAG.Used || !l.up(u.ID) || u.Drained {
			return
		}
		why := v.LAG.Reason
		if why == "" {
			why = "not bundled"
		}
		f := onUplink(u, "LAG %s: %s; %s received, %s sent", v.LAG.Name, why, many(v.LAG.In, "LACPDU"),
			many(v.LAG.Out, "LACPDU"))
		f.Change = "Put the port at the other end into the same channel, with LACP on."
		f.Command = l.command(u.ID, "uplink show")
		found = append(found, f)
	})
	return found
}

// lagDegraded finds LAGs of which some members are lost. A LAG that has lost all members is reported with its teams.
func lagDegraded(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, g := range sw.LAGs {
			var lost []string
			used := 0
			for _, m := range links(sw, g.Uplinks) {
				u := m.members[0]
				switch f, ok := l.Host.Facts[u.ID]; {
				case u.Blocked: // an operator has blocked it
				case !ok || !f.Up:
					lost = append(lost, u.ID.Name+" ("+l.whyNot(m)+")")
				case f.Usable():
					used++
				}
			}
			if len(lost) == 0 || used == 0 {
				continue
			}
			found = append(found, api.Finding{Switch: sw.Name,
				Sign: fmt.Sprintf("LAG %s: %d of %d members carry traffic; not %s", g.Name, used, len(g.Uplinks),
					strings.Join(lost, ", ")),
				Change:  "Bring the member back, or take it out of the LAG.",
				Command: l.command(plan.PortID{Switch: sw.Name, Name: g.Name}, "lag show")})
		}
	}
	return found
}
