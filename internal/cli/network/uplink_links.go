package network

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// linkRows returns what LACP and LLDP know about an uplink: the physical switch and port first.
func linkRows(u api.Uplink) [][2]string {
	var rows [][2]string
	if u.LLDP != nil {
		for _, n := range u.LLDP.Neighbours {
			rows = append(rows, neighbourRows(n)...)
		}
		if len(u.LLDP.Neighbours) == 0 {
			rows = append(rows, [2]string{"neighbour", "none heard by LLDP or CDP"})
		}
		rows = append(rows, [2]string{"lldp frames", frameCounts(u.LLDP.In, u.LLDP.Out, u.LLDP.Bad, "refused",
			u.LLDP.Refused)})
	}
	if t := u.SpanningTree; t != nil {
		rows = append(rows, [2]string{"spanning tree", treeText(t)})
	}
	if m := u.LAG; m != nil {
		rows = append(rows, [][2]string{{"lag", m.Name}, {"lacp", memberText(*m)}}...)
		if m.Actor.System == "" { // LACP has not started: no member has a device
			return rows
		}
		rows = append(rows, [2]string{"lacp actor", infoText(m.Actor)})
		if m.Partner != nil {
			rows = append(rows, [2]string{"lacp partner", infoText(*m.Partner)})
		}
		rows = append(rows, [2]string{"lacp frames", frameCounts(m.In, m.Out, m.Bad, "markers", m.Markers)})
	}
	return rows
}

// treeText says what the bridge at the other end says of its port.
func treeText(t *api.SpanningTree) string {
	text := fmt.Sprintf("bridge %s port %d, root %s", t.Bridge, t.Port&0xfff, t.Root)
	switch {
	case t.Discards:
		return text + "; it does not forward by this link yet"
	case t.Rapid:
		return text + "; it forwards, or another link is preferred"
	}
	return text + "; by the old protocol, which does not say whether it forwards"
}

func neighbourRows(n api.Neighbour) [][2]string {
	name := n.SystemName
	if name == "" {
		name = n.Chassis
	}
	port := n.Port
	if n.PortDescription != "" && n.PortDescription != n.Port {
		port += " (" + n.PortDescription + ")"
	}
	if n.By != "" {
		port += ", by " + strings.ToUpper(n.By)
	}
	rows := [][2]string{{"neighbour", name + " port " + port}, {"chassis", n.Chassis + ", from " + n.Source}}
	var more []string
	if n.PVID > 0 {
		more = append(more, fmt.Sprintf("untagged VLAN %d", n.PVID))
	}
	if n.MaxFrame > 0 {
		more = append(more, fmt.Sprintf("frames up to %d bytes", n.MaxFrame))
	}
	if len(n.Capabilities) > 0 {
		more = append(more, strings.Join(n.Capabilities, " and "))
	}
	if len(n.Management) > 0 {
		more = append(more, "managed at "+strings.Join(n.Management, ", "))
	}
	if n.SystemDescription != "" {
		rows = append(rows, [2]string{"system", n.SystemDescription})
	}
	if len(more) > 0 {
		rows = append(rows, [2]string{"reports", strings.Join(more, ", ")})
	}
	if len(n.VLANs) > 0 {
		rows = append(rows, [2]string{"its vlans", vlanNames(n.VLANs)})
	}
	return rows
}

// vlanNames are a neighbour's VLANs with the names it gives them: "10 (web), 20 (db), 30".
func vlanNames(list []api.NeighbourVLAN) string {
	words := make([]string, len(list))
	for i, v := range list {
		if words[i] = strconv.Itoa(int(v.ID)); v.Name != "" {
			words[i] += " (" + v.Name + ")"
		}
	}
	return strings.Join(words, ", ")
}

// neighbourVLANs are the ids of the VLANs that the neighbours of an uplink announce, as ranges.
func neighbourVLANs(u api.Uplink) string {
	if u.LLDP == nil {
		return ""
	}
	var s plan.VLANSet
	for _, n := range u.LLDP.Neighbours {
		for _, v := range n.VLANs {
			s.AddRange(v.ID, v.ID)
		}
	}
	return s.String()
}

// memberText says in one line whether a member is used.
func memberText(m api.LAGMember) string {
	switch {
	case m.Single:
		return "used alone: no partner is heard"
	case m.Used:
		return "used"
	}
	return "not used: " + strings.TrimPrefix(m.Reason, "lacp: ")
}

func infoText(i api.LACPInfo) string {
	return fmt.Sprintf("system %d,%s key %d port %d,%d: %s", i.SystemPriority, i.System, i.Key, i.PortPriority, i.Port,
		strings.Join(i.State, " "))
}

func frameCounts(in, out, bad uint64, more string, n uint64) string {
	return fmt.Sprintf("%d in, %d out, %d bad, %d %s", in, out, bad, n, more)
}
