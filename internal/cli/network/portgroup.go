package network

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

func NewPortGroup(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("port-group", "Show the port groups and the policy their ports inherit",
		"  heddle port-group list\n  heddle port-group show web")
	c.Long = "Show the port groups and the policy their ports inherit. To add, change or remove one, edit the " +
		"configuration file, then run \"heddle apply -f FILE\"; --dry-run shows what that means for ports. " +
		"\"heddle config show\" prints the applied file. A running port goes to another port group with " +
		"\"heddle port move\"."
	t.Flags(d, c)
	c.AddCommand(newPortGroupList(d, t), newPortGroupShow(d, t))
	return c
}

func newPortGroupList(d cli.Deps, t *cli.Target) *cobra.Command {
	return cli.Listing[api.PortGroup]{
		What: "the port groups", Example: "  heddle port-group list --switch lab",
		Of:    func(s *api.State) []api.PortGroup { return s.PortGroups },
		Owner: func(g api.PortGroup) string { return g.Switch },
		Table: func() *cli.Table {
			return &cli.Table{Head: []string{"SWITCH", "PORT GROUP", "VLAN", "PORTS UP", "PROMISCUOUS", "MAC CHANGES",
				"FORGED", "LEARNING"}, Keep: map[int]bool{3: true}, Names: map[int]bool{0: true, 1: true},
				Least: map[int]int{2: cli.LeastVLAN}, Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH"),
					cli.ShortHeadings}}
		},
		Row: func(g api.PortGroup) []string {
			return []string{g.Switch, g.Name, g.SegmentText(), cli.OutOf(g.PortsUp, g.Ports),
				Value(g.Policy, "security.promiscuous"), Value(g.Policy, "security.macChanges"),
				Value(g.Policy, "security.forgedTransmits"), onOff(Value(g.Policy, "security.macLearning.enabled"))}
		},
	}.Command(d, t)
}

func Value(rows []plan.Row, field string) string {
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

func newPortGroupShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o, sw := &cli.Output{}, ""
	c := &cobra.Command{
		Use: "show PORT-GROUP", Short: "Show one port group and where each value comes from",
		Long: "Show one port group and where each value comes from. With --controller it is the port group as all " +
			"hosts " +
			"have it: its values, how many hosts and ports it has, and which hosts differ from the others.",
		Example: "  heddle port-group show web --switch lab\n  heddle --context lab port-group show web",
		Args:    cli.Exactly("PORT-GROUP"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if all, err := t.Everywhere(); err != nil {
				return err
			} else if all {
				return portGroupEverywhere(d, c, t, o, args[0], sw)
			}
			s, err := t.State(c)
			if err != nil {
				return err
			}
			g, err := portGroupOf(s, args[0], sw)
			if err != nil {
				return err
			}
			return o.Print(d, g, func(w io.Writer) error {
				err := cli.Properties(w, [][2]string{
					{"port group", g.Name}, {"switch", g.Switch}, {"overlay segment", VNIText(g.VNI)},
					{"ports up", cli.OutOf(g.PortsUp, g.Ports)},
					{"a port may set", strings.Join(g.Overrides, ", ")},
					{"reset at disconnect", strconv.FormatBool(g.Reset)},
				})
				if err != nil {
					return err
				}
				fmt.Fprintln(w)
				return PrintRows(w, g.Policy)
			})
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	cli.SwitchFlag(c, &sw)
	return c
}

// portGroupOf finds a port group by its name, of one switch where sw says so.
func portGroupOf(s *api.State, name, sw string) (api.PortGroup, error) {
	if err := cli.HasSwitch(s, sw); err != nil {
		return api.PortGroup{}, err
	}
	return cli.Pick(s.PortGroups, known.Names{What: "port group"}, name, sw,
		func(v api.PortGroup) (string, string) { return v.Switch, v.Name })
}

// VNIText names an overlay segment; "" for none.
func VNIText(vni uint32) string {
	if vni == 0 {
		return ""
	}
	return fmt.Sprintf("VNI %d", vni)
}

// PrintRows shows effective values with the level each came from.
func PrintRows(w io.Writer, rows []plan.Row) error {
	tab := &cli.Table{Head: []string{"POLICY", "VALUE", "FROM"}, Keep: map[int]bool{0: true}}
	for _, r := range rows {
		tab.Add(r.Policy, r.Value.String(), r.From.String())
	}
	return tab.Write(w)
}
