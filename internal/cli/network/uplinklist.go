package network

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newUplinkList(d cli.Deps, t *cli.Target) *cobra.Command {
	l := uplinkListing(d)
	l.Wide = func(*cobra.Command, *cli.Target) (cli.Listing[api.Uplink], error) { return wideUplinkListing(d), nil }
	return l.Command(d, t)
}

func uplinkListing(d cli.Deps) cli.Listing[api.Uplink] {
	head := []string{"SWITCH", "UPLINK", "DEVICE", "STATE", "SPEED", "LAG", "PORTS", "NEIGHBOUR", "PROBLEM"}
	return cli.Listing[api.Uplink]{
		What: "the uplinks",
		Long: "List the uplinks. SPEED is what the device says of its link. PORTS is how many ports' frames leave by " +
			"the uplink now, or " +
			"may leave by it where a policy spreads them. NEIGHBOUR is the physical switch and port that LLDP hears " +
			"there. PROBLEM is why " +
			"the uplink is not used; -o wide has it in a sentence, besides the MTU, MAC and VLANs, and those " +
			"VLANs that the neighbour announces for its port.",
		Example: "  heddle uplink list --switch lab\n  heddle uplink list -o wide",
		Of:      func(s *api.State) []api.Uplink { return s.Uplinks },
		Owner:   func(u api.Uplink) string { return u.Switch },
		Table: func() *cli.Table {
			return &cli.Table{Head: head, Right: cli.Columns(head, "SPEED", "PORTS"), Keep: cli.Columns(head, "STATE",
				"SPEED",
				"PORTS"),
				Names: cli.Columns(head, "SWITCH", "UPLINK", "DEVICE", "LAG"), Paint: cli.PaintPort(d, head),
				Least:  map[int]int{len(head) - 1: cli.LeastProblem},
				Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH")}}
		},
		Row: func(u api.Uplink) []string {
			return []string{u.Switch, u.Name, cli.Dash(u.Device), string(u.State), speedText(u.Speed),
				cli.Dash(lagOf(u))}
		},
		Tail: func(s *api.State, u api.Uplink) []string {
			return []string{strconv.Itoa(portsBy(s, u)), cli.Dash(neighbourText(u)),
				cli.Dash(cmp.Or(string(u.ReasonCode), u.Reason))}
		},
		Notes: func(u api.Uplink) []string {
			lines := cli.BeforeNotes("uplink "+u.Switch+"/"+u.Name, u.RunsBefore)
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

func wideUplinkListing(d cli.Deps) cli.Listing[api.Uplink] {
	l := uplinkListing(d)
	head := []string{"SWITCH", "UPLINK", "DEVICE", "STATE", "SPEED", "LAG", "PORTS", "NEIGHBOUR",
		"THEIR VLANS", "MTU", "MAC", "VLANS", "PROBLEM"}
	l.Table = func() *cli.Table {
		return &cli.Table{Head: head, Right: cli.Columns(head, "SPEED", "PORTS", "MTU"), Keep: cli.Columns(head,
			"STATE", "SPEED",
			"PORTS", "MTU", "MAC"),
			Names: cli.Columns(head, "SWITCH", "UPLINK", "DEVICE", "LAG"), Paint: cli.PaintPort(d, head)}
	}
	l.Tail = func(s *api.State, u api.Uplink) []string {
		return []string{strconv.Itoa(portsBy(s, u)), cli.Dash(neighbourText(u)),
			cli.Dash(cli.Shorten(neighbourVLANs(u), cli.LongestVLANs)), cli.Number(u.MTU), cli.Dash(u.MAC),
			cli.Shorten(u.VLANs.String(), cli.LongestVLANs), cli.Dash(u.Reason)}
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
