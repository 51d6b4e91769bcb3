package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newSwitch(d Deps) *cobra.Command {
	t := &target{}
	c := group("switch", "Show the switches of this host", "  heddle switch list\n  heddle switch show lab")
	t.flags(d, c)
	c.AddCommand(newSwitchList(d, t), newSwitchShow(d, t))
	return c
}

func newSwitchList(d Deps, t *target) *cobra.Command {
	return listing[api.Switch]{
		what: "the switches", example: "  heddle switch list\n  heddle switch list -o json",
		of: func(s *api.State) []api.Switch { return s.Switches },
		table: func() *table {
			return &table{head: []string{"SWITCH", "KIND", "MTU", "PORT GROUPS", "PORTS UP", "UPLINKS UP", "UPLINKS"}, right: map[int]bool{2: true, 3: true}}
		},
		row: func(sw api.Switch) []string {
			return []string{sw.Name, string(sw.Kind), strconv.Itoa(sw.MTU), strconv.Itoa(sw.PortGroups), of(sw.PortsUp, sw.Ports),
				of(sw.UplinksUp, len(sw.Uplinks)), dash(strings.Join(sw.Uplinks, ","))}
		},
	}.command(d, t)
}

func of(up, all int) string { return fmt.Sprintf("%d of %d", up, all) }

func newSwitchShow(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "show SWITCH", Short: "Show one switch", Example: "  heddle switch show lab", Args: exactly("SWITCH"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s, err := t.state(c)
			if err != nil {
				return err
			}
			sw, err := pick(s.Switches, "switch", args[0], "", func(v api.Switch) (string, string) { return v.Name, v.Name })
			if err != nil {
				return err
			}
			return o.print(d, sw, func(w io.Writer) error {
				rows := [][2]string{
					{"switch", sw.Name}, {"kind", string(sw.Kind)}, {"mtu", strconv.Itoa(sw.MTU)},
					{"port groups", strconv.Itoa(sw.PortGroups)}, {"ports up", of(sw.PortsUp, sw.Ports)},
					{"uplinks", strings.Join(sw.Uplinks, ", ")}, {"uplinks up", of(sw.UplinksUp, len(sw.Uplinks))},
					{"checks.reversePath", strconv.FormatBool(sw.ReversePath)},
					{"checks.reversePathPromiscuous", strconv.FormatBool(sw.ReversePathPromiscuous)},
					{"checks.blockGuestBPDU", strconv.FormatBool(sw.BlockGuestBPDU)},
				}
				for _, r := range sw.IPFIX {
					rows = append(rows, [2]string{r.Policy, r.Value})
				}
				return properties(w, rows)
			})
		},
	}
	o.flag(c)
	return c
}
