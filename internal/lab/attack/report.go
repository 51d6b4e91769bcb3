package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/internal/lab/report"
)

// report adds the row: no victim may lose a packet, and nothing may change at the uplinks.
func (m *measured) report(r *report.Report) {
	lost := m.sent - m.received
	r.Rows = append(r.Rows, report.Row{
		{Name: "name", Title: "row", Value: m.row.name},
		{Name: "attacks", Title: "attacks", Value: m.attacks, Unit: report.Count},
		{Name: "sent", Value: m.sent, Unit: report.Count},
		{Name: "received", Value: m.received, Unit: report.Count},
		{Name: "lost", Value: lost, Unit: report.Count},
		{Name: "lag", Title: "LAG", Value: m.lag()},
		{Name: "changes", Value: m.changes, Unit: report.Count},
		{Name: "stations", Value: fmt.Sprintf("%d/%d", m.stations, 2*stationsEach)},
		{Name: "neighbours", Value: fmt.Sprintf("%d/%d", m.neighbours, entries)},
		{Name: "routers", Value: m.routers, Unit: report.Count},
		{Name: "blocked", Value: m.ports()},
		{Name: "came", Title: "from them", Value: m.came, Unit: report.Count},
		{Name: "hijacked", Title: "to them", Value: m.hijacked, Unit: report.Count},
		{Name: "refused", Value: m.reasons()},
	})
	if m.row.open {
		return
	}
	r.Budgets = append(r.Budgets, report.Hold(m.row.name+": packets lost", float64(lost), report.Count, report.Exactly,
		0),
		report.Hold(m.row.name+": changes at uplinks", float64(m.changes), report.Count, report.Exactly, 0),
		report.Hold(m.row.name+": stations not known", float64(2*stationsEach-m.stations), report.Count, report.Exactly,
			0))
	ports := 0.0
	if m.row.blocks {
		ports = 1
		r.Budgets = append(r.Budgets, report.Hold(m.row.name+": time until it is open", m.took.Seconds(),
			report.Seconds, report.AtMost, openTime))
	}
	r.Budgets = append(r.Budgets, report.Hold(m.row.name+": ports blocked", float64(len(m.blocked)), report.Count,
		report.Exactly, ports))
	if m.row.spoofs != "" {
		r.Budgets = append(r.Budgets,
			report.Hold(m.row.name+": neighbours deceived", float64(entries-m.neighbours), report.Count, report.Exactly,
				0),
			report.Hold(m.row.name+": routers believed in", float64(m.routers), report.Count, report.Exactly, 0),
			report.Hold(m.row.name+": frames hijacked", float64(m.hijacked), report.Count, report.Exactly, 0))
	}
}

// openTime is how long a loop may last, in seconds (S110).
const openTime = 1.0

// ports are the blocked ports, and when they were blocked.
func (m *measured) ports() string {
	if len(m.blocked) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s after %s", strings.Join(m.blocked, ", "), report.Seconds.Format(m.took.Seconds()))
}

// lag returns how many members each host uses.
func (m *measured) lag() string {
	var out []string
	for _, h := range hosts() {
		out = append(out, fmt.Sprintf("%d/%d", m.lags[h].used, members))
	}
	return strings.Join(out, ", ")
}

// reasons are the reasons for which frames were refused.
func (m *measured) reasons() string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(m.refused)) {
		out = append(out, fmt.Sprintf("%s %d", reason, m.refused[reason]))
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ", ")
}

func notes() []string {
	return []string{
		"Attacks: frames that guests send. Rows named after a protocol of the link: three guests with default " +
			"policies, in an access " +
			"port group, one without a VLAN, and a trunk; each without a tag, with a priority tag and with VLAN tags.",
		"mac-starvation: a guest sends from 10,000 addresses; the limits of the ports exceed the table of 4,096. " +
			"-passing: the policy " +
			"lets pass what is not learned; -limit: the port's own limit is 64.",
		"loop-storm: a guest bridges its two adapters and sends broadcasts. -limited: loop detection is off and " +
			"storm control on; " +
			"-open: both are off, which shows what they are worth, and is held against no budget.",
		"spoofing: a guest of the victims' VLAN sends IPv4, IPv6, ARP replies and neighbour advertisements in the " +
			"victims' names, answers " +
			"DHCP and says that it is a router; its port has the address guard and rejects DHCP servers and router " +
			"advertisements. -open: " +
			"nothing of that is on, which is held against no budget.",
		"Sent, received, lost: numbered packets of two VMs in another VLAN than the other attackers, one on each " +
			"host, over a LAG of two links. LAG: members in " +
			"use on each host afterwards. Changes: events of links, neighbours and failover.",
		"Stations: addresses behind a guest that attacks nobody, half of them heard before the attack and half after " +
			"it, that are known " +
			"at the end. Blocked: ports, and how long after the bridge was made.",
		"Neighbours: entries in the victims' ARP and ND tables that have the other one's MAC afterwards. Routers: " +
			"those that the victims " +
			"believe in. To them: frames to one receiver that reached attackers.",
		"From them: frames that came in from the attackers, those of a loop each time they come round. Refused: " +
			"reasons for which frames " +
			"of theirs were dropped. Frames to everybody that are not refused are forwarded; the listeners at the " +
			"other host do not take " +
			"them for their neighbour's.",
	}
}

// sums is what the rows came to in which the others are protected.
type sums struct {
	rows, attacks, changes int
	sent, lost             uint64
}

func (a *sums) add(m *measured) {
	if m.row.open {
		return
	}
	a.rows, a.attacks, a.changes = a.rows+1, a.attacks+m.attacks, a.changes+m.changes
	a.sent, a.lost = a.sent+m.sent, a.lost+m.sent-m.received
}

// conclusions say what the rows show.
func (a *sums) conclusions() []string {
	if a.rows == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Under %d attacks of %d kinds by guests, the victims lost %d of %d packets, and %d "+
		"things changed at the uplinks.", a.attacks, a.rows, a.lost, a.sent, a.changes)}
}
