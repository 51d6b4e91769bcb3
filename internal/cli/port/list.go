package port

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/network"
)

// lately is how long a refused frame counts as a problem of its port if no frame of the guest was accepted since: then
// it is unknown whether the refusals continue.
const lately = 10 * time.Minute

func newPortList(d cli.Deps, t *cli.Target) *cobra.Command {
	l := portListing(d)
	l.Wide = func(c *cobra.Command, t *cli.Target) (cli.Listing[api.Port], error) { return widePortListing(c, t, d) }
	l.Away = awayPorts
	return l.Command(d, t)
}

func portListing(d cli.Deps) cli.Listing[api.Port] {
	head := []string{"SWITCH", "PORT", "PORT GROUP", "VLAN", "STATE", "UPLINK", "SOURCE", "PROBLEM"}
	return cli.Listing[api.Port]{
		What: "the ports",
		Long: "List the ports. UPLINK is what a port's frames leave by now. SOURCE is the configuration file, the " +
			"controllers' " +
			"definition or run-time; " +
			"file+command is a port of the file of which a command changed something, such as its port group. " +
			"PROBLEM is what the " +
			"guest does against the port's policy, why the port is not up, that none of its uplinks can be used " +
			"(no-uplink), that it can learn no more MACs (mac-limit), or what the policy refused. What was refused " +
			"is shown until the settings that refused it change, or until the guest's frames have been accepted for " +
			"a minute or two and none was refused; for ten minutes at most. " +
			"-o wide has it in a sentence, besides the MAC, device, MTU, owner, learned MACs and IP addresses.\n\n" +
			"On a terminal that is too narrow, the only switch and SOURCE are left out, and long texts are " +
			"shortened. In a pipe nothing is.",
		Example: "  heddle port list --switch lab\n  heddle port list --port-group web --state down,pending\n" +
			"  heddle port list --uplink uplink1 --sort port-group\n  heddle port list -o wide",
		Of:     func(s *api.State) []api.Port { return s.Ports },
		Owner:  func(p api.Port) string { return p.Switch },
		Filter: portFilters,
		Table: func() *cli.Table {
			return &cli.Table{Head: head, Keep: cli.Columns(head, "STATE", "SOURCE"), Names: cli.Columns(head, "SWITCH",
				"PORT",
				"PORT GROUP", "UPLINK"), Least: map[int]int{3: cli.LeastVLAN, len(head) - 1: cli.LeastProblem},
				Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH"), cli.LeaveOut("SOURCE")},
				Paint:  cli.PaintPort(d, head)}
		},
		Row: func(p api.Port) []string {
			return []string{p.Switch, p.Name, p.PortGroup, cli.Shorten(p.SegmentText(), cli.LongestVLANs),
				string(p.State),
				cli.Dash(strings.Join(p.Uplinks, ",")), portSource(p), cli.Dash(portProblem(p, time.Now()))}
		},
		Notes: func(p api.Port) []string {
			return append(cli.BeforeNotes("port "+p.Switch+"/"+p.Name, p.RunsBefore), cli.OverrideNotes(p)...)
		},
	}
}

// portSource returns where a port comes from, and whether a command changed what the file sets for it.
func portSource(p api.Port) string {
	if p.Origin == api.FromFile && len(p.Overrides) > 0 {
		return string(p.Origin) + "+command"
	}
	return string(p.Origin)
}

// portProblem returns in one word what is wrong with a port; "" for nothing.
func portProblem(p api.Port, now time.Time) string {
	switch {
	case p.Violation != "":
		return cmp.Or(string(p.ViolationCode), p.Violation)
	case p.ReasonCode != "" || p.Reason != "":
		return cmp.Or(string(p.ReasonCode), p.Reason)
	case p.Conflict != "":
		return "conflict"
	}
	if r := refusedLately(p, now); len(r) > 0 {
		return refusalWord(r[0])
	}
	return ""
}

// refusalWord describes a refusal in one word.
func refusalWord(r api.Refusal) string {
	if r.Passed || r.Reason == abi.ReasonMACLimit.String() {
		return r.Reason
	}
	return "refused " + r.Reason
}

// problemSentence returns the same as a sentence.
func problemSentence(p api.Port, now time.Time) string {
	text := cmp.Or(p.Violation, p.Reason, p.Conflict)
	if r := refusedLately(p, now); text == "" && len(r) > 0 {
		return strings.Join(refusals(r, now), "; ")
	}
	return text
}

func refusedLately(p api.Port, now time.Time) (list []api.Refusal) {
	for _, r := range p.Refused {
		if !r.Past && now.Sub(r.Time) <= lately {
			list = append(list, r)
		}
	}
	return list
}

// learnedOf returns how many MACs a port has learned, of how many it may: "3 of 16"; "" for a port that does not learn.
func learnedOf(p api.Port, learned int) string {
	if !learns(p) {
		if learned == 0 {
			return ""
		}
		return strconv.Itoa(learned)
	}
	return strconv.Itoa(learned) + " of " + network.Value(p.Effective, "security.macLearning.limit")
}

// learns reports whether a port learns MACs.
func learns(p api.Port) bool {
	return network.Value(p.Effective, "security.macLearning.enabled") == "true"
}

// learnLimit returns how many MACs a port may learn, 0 if it learns none.
func learnLimit(p api.Port) int {
	if !learns(p) {
		return 0
	}
	n, _ := strconv.Atoi(network.Value(p.Effective,
		"security.macLearning.limit")) // a number, because this program wrote it
	return n
}

// OwnAddresses returns the IP addresses that are configured at a port or listed for its address guard.
func OwnAddresses(p api.Port) (list []string) {
	list = slices.Clone(p.Addresses)
	for _, r := range p.Effective {
		if r.Policy == "security.addressGuard.addresses" {
			list = append(list, strings.FieldsFunc(r.Value.String(), func(c rune) bool {
				return c == ',' || c == ' '
			})...)
			list = slices.DeleteFunc(list, func(a string) bool { return a == "none" }) // the word for an empty list
		}
	}
	return list
}

// awayPorts are the ports of a host that does not answer, as it reported them last. Those that are chosen by what the
// controller does not remember are left out.
func awayPorts(c *cobra.Command, f *api.Fleet, host string) (rows [][]string, objects []any, err error) {
	for _, flag := range []string{"state", "vlan", "uplink"} {
		if c.Flags().Changed(flag) {
			return nil, nil, nil
		}
	}
	ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
	defer cancel()
	list, err := f.Ports(ctx, api.FleetPortQuery{Host: host, Switch: cli.FlagText(c, "switch"),
		PortGroup: cli.FlagText(c, cli.PortGroup)})
	for _, p := range list {
		row := []string{p.Switch, p.Name, p.PortGroup, "-", "stale", "-", "-"}
		if cli.FlagText(c, "output") == "wide" {
			row = append(row, cli.Dash(p.MAC), cli.Dash(p.Device), "-", "-", "-", "-")
		}
		p.Stale = true
		rows, objects = append(rows, append(row, "was "+p.State)), append(objects, p)
	}
	return rows, objects, err
}
