package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newUplinkList(d Deps, t *target) *cobra.Command {
	l := uplinkListing(d)
	l.wide = func(*cobra.Command, *target) (listing[api.Uplink], error) { return wideUplinkListing(d), nil }
	return l.command(d, t)
}

func uplinkListing(d Deps) listing[api.Uplink] {
	head := []string{"SWITCH", "UPLINK", "DEVICE", "STATE", "SPEED", "LAG", "PORTS", "NEIGHBOUR", "PROBLEM"}
	return listing[api.Uplink]{
		what: "the uplinks",
		long: "List the uplinks. SPEED is what the device says of its link. PORTS is how many ports' frames leave by " +
			"the uplink now, or " +
			"may leave by it where a policy spreads them. NEIGHBOUR is the physical switch and port that LLDP hears " +
			"there. PROBLEM is why " +
			"the uplink is not used; -o wide has it in a sentence, besides the MTU, MAC and VLANs, and those " +
			"VLANs that the neighbour announces for its port.",
		example: "  heddle uplink list --switch lab\n  heddle uplink list -o wide",
		of:      func(s *api.State) []api.Uplink { return s.Uplinks },
		owner:   func(u api.Uplink) string { return u.Switch },
		table: func() *table {
			return &table{head: head, right: columns(head, "SPEED", "PORTS"), keep: columns(head, "STATE", "SPEED",
				"PORTS"),
				names: columns(head, "SWITCH", "UPLINK", "DEVICE", "LAG"), paint: paintPort(d, head),
				least:  map[int]int{len(head) - 1: leastProblem},
				narrow: []func(*table){leaveOutTheOnly("SWITCH")}}
		},
		row: func(u api.Uplink) []string {
			return []string{u.Switch, u.Name, dash(u.Device), string(u.State), speedText(u.Speed), dash(lagOf(u))}
		},
		tail: func(s *api.State, u api.Uplink) []string {
			return []string{strconv.Itoa(portsBy(s, u)), dash(neighbourText(u)),
				dash(cmp.Or(string(u.ReasonCode), u.Reason))}
		},
		notes: func(u api.Uplink) []string {
			lines := beforeNotes("uplink "+u.Switch+"/"+u.Name, u.RunsBefore)
			for _, w := range u.Warnings {
				lines = append(lines, "warning: uplink "+u.Switch+"/"+u.Name+": "+w)
			}
			if t := u.Tunnel; t != nil && t.Known == 0 && len(t.VNIs) > 0 {
				lines = append(lines, "note: the tunnel of switch "+u.Switch+" knows no endpoint of another host: "+
					"nothing leaves by it")
			}
			return lines
		},
	}
}

func wideUplinkListing(d Deps) listing[api.Uplink] {
	l := uplinkListing(d)
	head := []string{"SWITCH", "UPLINK", "DEVICE", "STATE", "SPEED", "LAG", "PORTS", "NEIGHBOUR",
		"THEIR VLANS", "MTU", "MAC", "VLANS", "PROBLEM"}
	l.table = func() *table {
		return &table{head: head, right: columns(head, "SPEED", "PORTS", "MTU"), keep: columns(head, "STATE", "SPEED",
			"PORTS", "MTU", "MAC"),
			names: columns(head, "SWITCH", "UPLINK", "DEVICE", "LAG"), paint: paintPort(d, head)}
	}
	l.tail = func(s *api.State, u api.Uplink) []string {
		return []string{strconv.Itoa(portsBy(s, u)), dash(neighbourText(u)),
			dash(shorten(neighbourVLANs(u), longestVLANs)), number(u.MTU), dash(u.MAC),
			shorten(u.VLANs.String(), longestVLANs), dash(u.Reason)}
	}
	return l
}

// speedText returns a speed in the units of data sheets: "25 Gb/s"; "-" if it is not known.
func speedText(bits uint64) string {
	switch {
	case bits == 0:
		return "-"
	case bits >= 1e9:
		return fmt.Sprintf("%g Gb/s", float64(bits)/1e9)
	}
	return fmt.Sprintf("%g Mb/s", float64(bits)/1e6)
}

// portsBy returns how many ports' frames leave, or may leave, by an uplink.
func portsBy(s *api.State, u api.Uplink) (n int) {
	for _, p := range s.Ports {
		if p.Switch == u.Switch && slices.Contains(p.Uplinks, u.Name) {
			n++
		}
	}
	return n
}

func lagOf(u api.Uplink) string {
	if u.LAG == nil {
		return ""
	}
	return u.LAG.Name
}

// neighbourText names the first neighbour of an uplink, and counts the others.
func neighbourText(u api.Uplink) string {
	if u.LLDP == nil || len(u.LLDP.Neighbours) == 0 {
		return ""
	}
	n := u.LLDP.Neighbours[0]
	text := cmp.Or(n.SystemName, n.Chassis) + " " + n.Port
	if more := len(u.LLDP.Neighbours) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
