package cli

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newUplink(d Deps) *cobra.Command {
	t := &target{}
	c := group("uplink", "Show the uplinks, and take one out of use for its maintenance",
		"  heddle uplink list\n  heddle uplink show uplink1\n  heddle uplink drain uplink1")
	t.flags(d, c)
	c.AddCommand(newUplinkList(d, t), newUplinkShow(d, t))
	for _, m := range theMaintenance() {
		c.AddCommand(newUplinkMaintain(d, t, m))
	}
	return c
}

// number returns a number as text, "-" for 0.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// maintenanceText returns since when an uplink is drained or blocked, "no" for one that is in use.
func maintenanceText(m *api.UplinkMaintenance) string {
	switch {
	case m == nil:
		return "no"
	case m.ByCommand:
		return string(m.Use) + " by command since " + m.Since.Local().Format(time.DateTime)
	}
	return string(m.Use) + " by the configuration"
}

func newUplinkShow(d Deps, t *target) *cobra.Command {
	o, sw := &output{}, ""
	c := &cobra.Command{
		Use: "show UPLINK", Short: "Show one uplink",
		Long: "Show one uplink. Of a switch's tunnel it shows the endpoints of this host and those that it knows of " +
			"other hosts, with how many segments each of these has in common with this host. With " +
			"--controller it is one of all hosts: where several have one of that name, write HOST:UPLINK, or " +
			"give --host.",
		Example: "  heddle uplink show uplink1 --switch lab\n  heddle --context lab uplink show esx1:uplink1",
		Args:    exactly("UPLINK"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			f, away, err := locate(c, t, wanted[api.Uplink]{name: args[0], what: "uplink", kind: "uplinks",
				list: "heddle uplink list",
				here: func(s *api.State, name string) ([]candidate[api.Uplink],
					error) {
					return uplinksNamed(s, name, sw)
				}})
			if err != nil {
				return away.with(d, err)
			}
			u := f.of
			return o.print(d, f.object(u), func(w io.Writer) error {
				rows := [][2]string{{"uplink", u.Name}, {"switch", u.Switch}, {"device", u.Device},
					{"state", string(u.State)},
					{"reason", u.Reason}, {"out of use", maintenanceText(u.Maintenance)}, {"mac", u.MAC},
					{"mtu", number(u.MTU)}, {"speed", speedText(u.Speed)},
					{"vlans", u.VLANs.String()}, {"monitoring", u.Monitoring},
					{"changed", strings.Join(u.Changed, ", ")}}
				for _, text := range u.Warnings {
					rows = append(rows, [2]string{"warning", text})
				}
				if u.Tunnel != nil {
					return printTunnel(w, f.row(), u)
				}
				return properties(w, slices.Concat(f.row(), rows, linkRows(u)))
			})
		},
	}
	t = t.looking(d, c)
	o.flag(c)
	switchFlag(c, &sw)
	return c
}
