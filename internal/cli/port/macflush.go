package port

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func newMACFlush(d cli.Deps, t *cli.Target) *cobra.Command {
	o, q, vlan, all := &cli.Output{}, api.ForgetMACs{}, 0, false
	c := &cobra.Command{
		Use: "flush [MAC]", Short: "Forget learned addresses, until they are heard again",
		Long: "Forget learned addresses: one, those of a port, a switch or a VLAN, or all. What several flags say " +
			"must all hold. Each is learned again as soon as it sends; until then frames for it go where frames for " +
			"unknown addresses go. Addresses of ports are not learned, and stay.",
		Example: "  heddle mac flush --port vm1/eth0\n  heddle mac flush 02:00:00:00:01:01\n" +
			"  heddle mac flush --switch lab --vlan 10 --dry-run",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if err := chooseMACs(c, &q, args, vlan, all); err != nil {
				return err
			}
			if err := t.Has(c, q.Switch, q.Port); err != nil {
				return err
			}
			list, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.MAC, error) {
				return s.ForgetMACs(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, list, func(w io.Writer) error { return flushed(w, list, q.DryRun) })
		},
	}
	o.Flag(c)
	cli.SwitchFlag(c, &q.Switch)
	f := c.Flags()
	f.StringVar(&q.Port, "port", "", "only addresses at this port")
	vlanFlag(c, &vlan, "only addresses in this VLAN")
	f.BoolVar(&all, "all", false, "every learned address of the host")
	f.BoolVar(&q.DryRun, "dry-run", false, "only list what would be forgotten")
	return c
}

// chooseMACs makes the request from the command line. An empty command line is an error: it is easily typed by mistake.
func chooseMACs(c *cobra.Command, q *api.ForgetMACs, args []string, vlan int, all bool) (err error) {
	chosen := len(args) > 0 || q.Switch != "" || q.Port != "" || c.Flags().Changed("vlan")
	switch {
	case !chosen && !all:
		return cli.Usagef("say which addresses: a MAC, --port, --switch, --vlan or --all")
	case chosen && all:
		return cli.Usagef("--all is every learned address: it goes with no other choice")
	}
	if err := vlanGiven(c, vlan); err != nil {
		return err
	}
	if c.Flags().Changed("vlan") {
		v := uint16(vlan)
		q.VLAN = &v
	}
	if len(args) > 0 {
		q.MAC, err = cli.ParseMAC(args[0])
	}
	return err
}

func flushed(w io.Writer, list []api.MAC, dry bool) error {
	if dry {
		if err := macTable(bareMACs(list), false)(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "%s would be forgotten (dry run)\n",
			printable.Count(len(list), "learned address", "learned addresses"))
		return err
	}
	_, err := fmt.Fprintf(w, "forgot %s\n", printable.Count(len(list), "learned address", "learned addresses"))
	return err
}
