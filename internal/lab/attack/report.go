package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/internal/lab/report"
)

// The nodes: the attackers and one victim are on the first host.
const (
	attacked      = "esx1"
	client        = "va"
	server        = "vb"
	serverAddress = "192.0.2.2"
	members       = 2 // of the LAG
)

func hosts() []string { return []string{attacked, "esx2"} }

// labFile is the lab: two hosts, joined by two cables that both bundle.
const labFile = `
name: hostile-guest
title: a guest speaks the protocols of the link
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          lags: [{name: lag1, uplinks: [uplink1, uplink2], timeout: slow}]
          discovery: {lldp: both}
          portGroups:
            - {name: victims, vlan: {access: 100}}
            - {name: access, vlan: {access: 300}}
            - {name: none}
            - {name: trunk, vlan: {trunk: ["0-4094"]}}
      ports:
        - {name: va, switch: lab, portGroup: victims, device: vm-va}
        - {name: access, switch: lab, portGroup: access, device: vm-access, mac: "02:00:00:00:03:01"}
        - {name: none, switch: lab, portGroup: none, device: vm-none, mac: "02:00:00:00:03:02"}
        - {name: trunk, switch: lab, portGroup: trunk, device: vm-trunk, mac: "02:00:00:00:03:03"}
  - name: esx2
    config:
      switches:
        - name: lab
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          lags: [{name: lag1, uplinks: [uplink1, uplink2], timeout: slow}]
          discovery: {lldp: both}
          portGroups:
            - {name: victims, vlan: {access: 100}}
      ports:
        - {name: vb, switch: lab, portGroup: victims, device: vm-vb}
vms:
  - {name: va, host: esx1, addresses: [192.0.2.1/24]}
  - {name: access, host: esx1}
  - {name: none, host: esx1}
  - {name: trunk, host: esx1}
  - {name: vb, host: esx2, addresses: [192.0.2.2/24]}
links:
  - {a: esx1/eno1, b: esx2/eno1}
  - {a: esx1/eno2, b: esx2/eno2}
`

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
		{Name: "refused", Value: m.reasons()},
	})
	r.Budgets = append(r.Budgets, report.Hold(m.row.name+": packets lost", float64(lost), report.Count, report.Exactly, 0),
		report.Hold(m.row.name+": changes at uplinks", float64(m.changes), report.Count, report.Exactly, 0))
}

// lag says how many members each host uses.
func (m *measured) lag() string {
	var out []string
	for _, h := range hosts() {
		out = append(out, fmt.Sprintf("%d/%d", m.lags[h].used, members))
	}
	return strings.Join(out, ", ")
}

// reasons are those that frames were refused for.
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
		"Attacks: frames sent by three guests with default policies, in an access port group, one without a VLAN, and a trunk; each without a tag, with a priority tag and with VLAN tags.",
		"Sent, received, lost: numbered packets of two VMs in another VLAN, one on each host, over a LAG of two links. LAG: members in use on each host afterwards. Changes: events of links, neighbours and failover.",
		"Refused: reasons for which frames of the attackers were dropped. Frames to everybody that are not refused are forwarded; the listeners at the other host do not take them for their neighbour's.",
	}
}
