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
)

func uplinkRules() []Rule {
	return []Rule{
		{"reflection-check", api.FindingWrong, "two uplinks bring frames, and the check that keeps out doubles is off",
			"broadcast and multicast frames that each of the uplinks received",
			"what the physical network floods comes by every uplink, and ports get it as often; their own frames " +
				"come back to them",
			"Set checks.reversePath to true.",
			reflectionCheck},
		{"uplink-vlan", api.FindingWrong, "no uplink of its team carries a port group's VLAN, or not every one does",
			"copies refused as `uplink-vlan`",
			"the frames end at the host; where only some uplinks carry the VLAN, they end there with the next " +
				"failover, or for half of the ports",
			"Add the VLAN to the uplinks' vlans, and to the ports of the physical switches.",
			uplinkVLAN},
		{"ip-hash", api.FindingWrong, "IP hash on uplinks that are no channel at the other end",
			"copies refused as `reflected`, or different devices at the other ends by LLDP",
			"the physical switches see a guest's MAC now on one port, now on the other, and send its own broadcasts " +
				"back",
			"Make the uplinks a LAG, or one channel on the physical switch; or use originating-port.",
			ipHash},
		{"lacp-without-lag", api.FindingWrong, "the physical switch speaks LACP at an uplink that is in no LAG",
			"LACPDUs that arrive",
			"the switch takes its ports for a bundle: it uses one of the links, or none, or sends by any of them; " +
				"guests whose uplink it does not use reach nobody",
			"Make a LAG of the uplinks that lead to that bundle (lags), or take its ports out of the " +
				"bundle on the physical switch.",
			lacpWithoutLAG},
		{"stp", api.FindingWrong, "spanning tree keeps the port of the physical switch from forwarding",
			"rapid BPDUs of a designated port that does not forward",
			"the link is up, so that ports use it, and their guests reach nobody for up to 30 s after each time that " +
				"it comes up",
			"Make the port of the physical switch an edge port (portfast), or give the switch an upDelay of 30 s.",
			discarding},
		{"storm", api.FindingWrong, "the physical network has a storm of broadcasts",
			"more than 1,000 broadcasts a second by the uplink, for 3 s and more",
			"they take the place of other frames on the links, and the time of everybody who receives them",
			"Find the loop of the physical network, or who sends these broadcasts: by its switches' counters, " +
				"or heddle capture at the uplink. Turn on spanning tree and storm control there.",
			storms},
		{"half-open", api.FindingWrong, "an uplink sends and never receives",
			"frames received and sent: none against 10 and more, in 5 s and more with `--for`",
			"one direction of the link is lost, and link state does not show it: what answers by this uplink never " +
				"arrives",
			"Look at cable, optics and the physical port; failureDetection: beacon takes such an " +
				"uplink out of use.",
			halfOpen},
	}
}

// busiest returns the two of the links that received the most frames of a kind, and how many.
func (l *look) busiest(of []link, count func(*counts) uint64) (most [2]link, n [2]uint64) {
	for _, k := range of {
		var got uint64
		for _, u := range k.members {
			got += count(l.of(u.ID))
		}
		switch {
		case got > n[0]:
			most, n = [2]link{k, most[0]}, [2]uint64{got, n[0]}
		case got > n[1]:
			most[1], n[1] = k, got
		}
	}
	return most, n
}

func reflectionCheck(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		usable := l.usable(links(sw, choices(sw)))
		guarded, looking := true, false
		for _, p := range sw.Ports {
			e := p.Policy
			guarded = guarded && (!l.connected(p.ID) || e.Teaming.Policy.V == spec.IPHash)
			looking = looking || l.connected(p.ID) && (e.Promiscuous.V || e.Learning.Enabled.V &&
				e.Learning.UnicastFlooding.V)
		}
		if len(usable) < 2 || guarded { // the check ignores IP hash, whose uplinks are one channel
			continue
		}
		for _, c := range []struct {
			off        bool
			name, what string
			count      func(*counts) uint64
		}{
			{!sw.ReversePath, "reversePath", "broadcast and multicast", (*counts).groupIn},
			{!sw.ReversePathPromiscuous && looking, "reversePathPromiscuous", "unicast", func(c *counts) uint64 {
				return c.named["packetsInUnicast"]
			}},
		} {
			by, n := l.busiest(usable, c.count)
			first, second := by[0].vlans(), by[1].vlans()
			if !c.off || n[1] == 0 || !overlap(&first, &second) {
				continue
			}
			f := api.Finding{Switch: sw.Name, Sign: fmt.Sprintf("checks.%s is off, and %s frames came by %s (%s) and "+
				"by %s (%s) %s", c.name, c.what, by[0].name, frames(n[0]), by[1].name, frames(n[1]), l.periodOfMany())}
			found = append(found, remedy(f, l.explain.FixSwitch(sw.Name, "Switch the check on.", "checks: {"+c.name+
				": true}")))
		}
	}
	return found
}

// choices returns the names that teams of a switch can have: its LAGs, and the uplinks that are in none.
func choices(sw *plan.Switch) (list []string) {
	for _, g := range sw.LAGs {
		list = append(list, g.Name)
	}
	for _, u := range sw.Uplinks {
		if sw.LAGOf(u.ID.Name) == nil {
			list = append(list, u.ID.Name)
		}
	}
	return list
}

func uplinkVLAN(l *look) (found []api.Finding) {
	for _, t := range l.teams() {
		vlans := vlansOf(&t.first.Policy.VLAN.V)
		worst, carried, refused, active := (*plan.Uplink)(nil), false, uint64(0), false
		for i, k := range t.all() {
			for _, u := range k.members {
				switch n := l.refusedVLAN(u); {
				case !l.connected(u.ID):
				case overlap(&u.VLANs, &vlans):
					carried = true
				case worst == nil || n > l.refusedVLAN(worst):
					worst, active = u, i < len(t.active)
					refused += n
				default:
					refused += n
				}
			}
		}
		sent := l.sum(t, (*counts).in)
		if worst == nil || !carried && (refused == 0 || sent == 0) {
			continue
		}
		f := t.on("VLAN %s: none of its uplinks carries it; its ports sent %s %s, and %s %s refused at the uplinks",
			vlans, frames(sent), l.periodOfMany(), frames(refused), were(refused))
		if n := l.refusedVLAN(worst); carried {
			f.Sign = fmt.Sprintf("VLAN %s: others carry it, %s carries %s; %s %s refused there %s", vlans,
				worst.ID.Name, nothing(worst.VLANs.String()),
				frames(n), were(n), l.period(worst.ID, refusedOf(abi.ReasonUplinkVLAN)))
			if !active || n == 0 {
				f.Level = api.FindingNote
			}
		}
		cause, _ := l.explain.Explain(worst.ID, abi.ReasonUplinkVLAN, trace.Known{VLAN: lowest(vlans)})
		f = l.dated(f, worst.ID, refusedOf(abi.ReasonUplinkVLAN))
		if carried && l.old(&f) { // the uplink still lacks the VLAN, but no frame has needed it lately
			f.Level, f.FirstSeen, f.LastSeen, f.Undated = api.FindingNote, time.Time{}, time.Time{}, false
		}
		found = append(found, remedy(f, cause))
	}
	return found
}

// refusedVLAN returns how many frames could not leave by an uplink because it does not carry their VLAN. Received
// frames do not count: a physical switch may send more VLANs than this host uses.
func (l *look) refusedVLAN(u *plan.Uplink) uint64 { return l.of(u.ID).kept(abi.ReasonUplinkVLAN) }

func nothing(s string) string {
	if s == "" {
		return "no VLAN"
	}
	return s
}

func overlap(a, b *plan.VLANSet) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return true
		}
	}
	return false
}

func lowest(s plan.VLANSet) uint16 {
	for v := range uint16(4095) {
		if s.Has(v) {
			return v
		}
	}
	return 0
}

func ipHash(l *look) (found []api.Finding) {
	for _, t := range l.teams() {
		usable := l.usable(t.active)
		if t.policy().Policy.V != spec.IPHash || len(usable) < 2 ||
			slices.ContainsFunc(usable, func(k link) bool { return k.lag }) {
			continue
		}
		back := l.sum(t, func(c *counts) uint64 { return c.kept(abi.ReasonReflected) })
		others := l.differ(usable)
		var f api.Finding
		switch {
		case back > 0:
			f = t.on("%s that its own ports had sent came back by another of %s %s%s", frames(back), linkNames(usable),
				l.periodOfMany(), others)
			for _, p := range t.ports {
				f = l.dated(f, p.ID, refusedOf(abi.ReasonReflected))
			}
		case others != "":
			f = t.on("LLDP%s: a channel over both needs that they act as one", strings.TrimPrefix(others, ";"))
			f.Level = api.FindingNote
		default:
			continue
		}
		found = append(found, remedy(f, l.explain.Fix(t.first, "Make the ports at the other end a channel, best with "+
			"LACP (see lacp.md), or choose a teaming that needs none.",
			plan.Setting{Path: "teaming.policy", Value: string(spec.OriginatingPort)})))
	}
	return found
}

func linkNames(of []link) string {
	list := make([]string, len(of))
	for i, k := range of {
		list[i] = k.name
	}
	return strings.Join(list, ", ")
}

// differ describes the different devices that LLDP shows at the other ends, "" if it does not show different ones.
func (l *look) differ(of []link) string {
	first, at := api.Neighbour{}, ""
	for _, k := range of {
		u := l.uplink[k.members[0].ID]
		if u == nil || u.LLDP == nil || len(u.LLDP.Neighbours) == 0 {
			continue
		}
		n := u.LLDP.Neighbours[0]
		if at != "" && n.By == first.By && n.Chassis != first.Chassis { // ids of two protocols can't be compared
			return fmt.Sprintf("; %s leads to chassis %s, %s to %s", at, first.Chassis, k.name, n.Chassis)
		}
		if at == "" || n.By == first.By {
			first, at = n, k.name
		}
	}
	return ""
}

// How many frames must leave before missing answers are a sign, and for how long they must be missing if a time is
// measured.
const (
	halfOpenFrames = 10
	halfOpenFor    = 5 * time.Second
)

func halfOpen(l *look) (found []api.Finding) {
	if l.Window > 0 && l.Window < halfOpenFor {
		return nil
	}
	l.eachUplink(func(_ *plan.Switch, u *plan.Uplink, c *counts) {
		v := l.uplink[u.ID]
		if !l.up(u.ID) || u.Blocked || c.in() > 0 || c.out() < halfOpenFrames || v != nil && v.LLDP != nil &&
			len(v.LLDP.Neighbours) > 0 {
			return
		}
		f := onUplink(u, "it sent %s %s and received none", frames(c.out()), l.period(u.ID))
		f.Change = "Look at the cable, the optics and the port of the physical switch, and move the ports meanwhile: " +
			"`teaming: {failureDetection: beacon}` does that by itself with three uplinks."
		f.Command = l.command(u.ID, "uplink show")
		found = append(found, f)
	})
	return found
}
