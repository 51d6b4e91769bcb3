package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

func newPortGroup(d Deps) *cobra.Command {
	t := &target{}
	c := group("port-group", "Show the port groups and the policy their ports inherit",
		"  heddle port-group list\n  heddle port-group show web")
	c.Long = "Show the port groups and the policy their ports inherit. To add, change or remove one, edit the " +
		"configuration file, then run \"heddle apply -f FILE\"; --dry-run shows what that means for ports. " +
		"\"heddle config show\" prints the applied file. A running port goes to another port group with " +
		"\"heddle port move\"."
	t.flags(d, c)
	c.AddCommand(newPortGroupList(d, t), newPortGroupShow(d, t))
	return c
}

func newPortGroupList(d Deps, t *target) *cobra.Command {
	return listing[api.PortGroup]{
		what: "the port groups", example: "  heddle port-group list --switch lab",
		of:    func(s *api.State) []api.PortGroup { return s.PortGroups },
		owner: func(g api.PortGroup) string { return g.Switch },
		table: func() *table {
			return &table{head: []string{"SWITCH", "PORT GROUP", "VLAN", "PORTS UP", "PROMISCUOUS", "MAC CHANGES",
				"FORGED", "LEARNING"}, keep: map[int]bool{3: true}, names: map[int]bool{0: true, 1: true},
				least: map[int]int{2: leastVLAN}, narrow: []func(*table){leaveOutTheOnly("SWITCH"), shortHeadings}}
		},
		row: func(g api.PortGroup) []string {
			return []string{g.Switch, g.Name, g.SegmentText(), of(g.PortsUp, g.Ports),
				value(g.Policy, "security.promiscuous"), value(g.Policy, "security.macChanges"),
				value(g.Policy, "security.forgedTransmits"), onOff(value(g.Policy, "security.macLearning.enabled"))}
		},
	}.command(d, t)
}

func value(rows []plan.Row, field string) string {
	for _, r := range rows {
		if r.Policy == field {
			return r.Value.String()
		}
	}
	return "-"
}

func onOff(v string) string {
	switch v {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return v
}

func newPortGroupShow(d Deps, t *target) *cobra.Command {
	o, sw := &output{}, ""
	c := &cobra.Command{
		Use: "show PORT-GROUP", Short: "Show one port group and where each value comes from",
		Long: "Show one port group and where each value comes from. With --controller it is the port group as all " +
			"hosts " +
			"have it: its values, how many hosts and ports it has, and which hosts differ from the others.",
		Example: "  heddle port-group show web --switch lab\n  heddle --context lab port-group show web",
		Args:    exactly("PORT-GROUP"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if all, err := t.everywhere(); err != nil {
				return err
			} else if all {
				return portGroupEverywhere(d, c, t, o, args[0], sw)
			}
			s, err := t.state(c)
			if err != nil {
				return err
			}
			g, err := portGroupOf(s, args[0], sw)
			if err != nil {
				return err
			}
			return o.print(d, g, func(w io.Writer) error {
				err := properties(w, [][2]string{
					{"port group", g.Name}, {"switch", g.Switch}, {"overlay segment", vniText(g.VNI)},
					{"ports up", of(g.PortsUp, g.Ports)},
					{"a port may set", strings.Join(g.Overrides, ", ")},
					{"reset at disconnect", strconv.FormatBool(g.Reset)},
				})
				if err != nil {
					return err
				}
				fmt.Fprintln(w)
				return printRows(w, g.Policy)
			})
		},
	}
	t = t.looking(d, c)
	o.flag(c)
	switchFlag(c, &sw)
	return c
}

// portGroupOf finds a port group by its name, of one switch where sw says so.
func portGroupOf(s *api.State, name, sw string) (api.PortGroup, error) {
	if err := hasSwitch(s, sw); err != nil {
		return api.PortGroup{}, err
	}
	return pick(s.PortGroups, known.Names{What: "port group"}, name, sw,
		func(v api.PortGroup) (string, string) { return v.Switch, v.Name })
}

// vniText names an overlay segment; "" for none.
func vniText(vni uint32) string {
	if vni == 0 {
		return ""
	}
	return fmt.Sprintf("VNI %d", vni)
}

// printRows shows effective values with the level each came from.
func printRows(w io.Writer, rows []plan.Row) error {
	tab := &table{head: []string{"POLICY", "VALUE", "FROM"}, keep: map[int]bool{0: true}}
	for _, r := range rows {
		tab.add(r.Policy, r.Value.String(), r.From.String())
	}
	return tab.write(w)
}
