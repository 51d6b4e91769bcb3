package network

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func NewUplink(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("uplink", "Show the uplinks, and take one out of use for its maintenance",
		"  heddle uplink list\n  heddle uplink show uplink1\n  heddle uplink drain uplink1")
	t.Flags(d, c)
	c.AddCommand(newUplinkList(d, t), newUplinkShow(d, t))
	for _, m := range theMaintenance() {
		c.AddCommand(newUplinkMaintain(d, t, m))
	}
	return c
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

func newUplinkShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o, sw := &cli.Output{}, ""
	c := &cobra.Command{
		Use: "show UPLINK", Short: "Show one uplink",
		Long: "Show one uplink. Of a switch's tunnel it shows the endpoints of this host and those that it knows of " +
			"other hosts, with how many segments each of these has in common with this host. With " +
			"--controller it is one of all hosts: where several have one of that name, write HOST:UPLINK, or " +
			"give --host.",
		Example: "  heddle uplink show uplink1 --switch lab\n  heddle --context lab uplink show esx1:uplink1",
		Args:    cli.Exactly("UPLINK"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			f, away, err := cli.Locate(c, t, cli.Wanted[api.Uplink]{Name: args[0], What: "uplink", Kind: "uplinks",
				List: "heddle uplink list",
				Here: func(s *api.State, name string) ([]cli.Candidate[api.Uplink], error) {
					return cli.UplinksNamed(s, name, sw)
				}})
			if err != nil {
				return away.With(d, err)
			}
			u := f.Of
			return o.Print(d, f.Object(u), func(w io.Writer) error {
				rows := [][2]string{{"uplink", u.Name}, {"switch", u.Switch}, {"device", u.Device},
					{"state", string(u.State)},
					{"reason", u.Reason}, {"out of use", maintenanceText(u.Maintenance)}, {"mac", u.MAC},
					{"mtu", cli.Number(u.MTU)}, {"speed", speedText(u.Speed)},
					{"vlans", u.VLANs.String()}, {"monitoring", u.Monitoring},
					{"changed", strings.Join(u.Changed, ", ")}}
				for _, text := range u.Warnings {
					rows = append(rows, [2]string{"warning", text})
				}
				if u.Tunnel != nil {
					return PrintTunnel(w, f.Row(), u)
				}
				return cli.Properties(w, slices.Concat(f.Row(), rows, linkRows(u)))
			})
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	cli.SwitchFlag(c, &sw)
	return c
}
