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

func newPortMove(d cli.Deps, t *cli.Target) *cobra.Command {
	var q api.Move
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "move PORT", Short: "Move a port to another port group, or to another switch",
		Example: "  heddle port move vm7/eth0 --port-group quarantine\n" +
			"  heddle port move vm7/eth0 --switch dmz --port-group web\n" +
			"  heddle --context lab port move vm7/eth0 --switch dmz", Args: cli.Exactly("PORT"),
		Long: "Move a port to another port group of its switch while it runs. A port of the configuration file stays " +
			"there until " +
			"it is moved back or, where the port group resets its ports, until its owner disconnects.\n\n" +
			"With --switch a port that was connected by command goes to another switch of this host, in one step of " +
			"the kernel: its device stays attached, and its counters go on. Without --port-group it goes to the port " +
			"group of the same name there. A static port is bound anew; where that can't be, the port stays.\n\n" +
			"With --controller or --context the port is moved on whichever host its guest runs. PORT may be " +
			"VM/ADAPTER then; --host says which one is meant where several hosts have a port of that name. It takes " +
			"the right to operate the ports of both port groups.",
	}
	t = t.Looking(d, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if q.PortGroup == "" && q.Switch == "" {
			return cli.Usagef("say where to move to, with --port-group or --switch")
		}
		q.Port = args[0]
		fleet, err := t.Fleet()
		switch {
		case err != nil:
			return err
		case fleet != nil && q.ConfirmWithin != 0:
			return cli.Usagef("--confirm-within is for the host's own command: leave it out with --controller")
		case fleet != nil:
			return reassign(d, c, t, o, api.ReassignPort{Port: q.Port, Host: t.Host, Switch: q.Switch,
				PortGroup: q.PortGroup})
		}
		q.ReadAt = cli.ReadAt()
		return changePort(d, c, t, o, portChange{port: args[0], window: q.Window, done: movedTo(q.Switch, q.PortGroup)},
			func(ctx context.Context, s api.Service) (*api.Applied, error) { return s.Move(ctx, q) })
	}
	c.Flags().StringVar(&q.PortGroup, "port-group", "", "port group to move to")
	c.Flags().StringVar(&q.Switch, "switch", "", "switch to move to; default: the one that the port is on")
	cli.WindowFlag(c, &q.Window)
	o.Flag(c)
	return c
}

// movedTo says where a port is now.
func movedTo(sw, group string) string {
	switch {
	case group == "":
		return "is on switch " + sw
	case sw == "":
		return "is in port group " + group
	}
	return "is in port group " + group + " of switch " + sw
}

// reassign moves a port on the host that it is on, by way of a controller.
func reassign(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, q api.ReassignPort) error {
	if err := o.Check(); err != nil {
		return err
	}
	out, err := cli.AskFleet(c, t.Controllers(), 0, func(ctx context.Context, f *api.Fleet) (
		*api.ReassignedPort, error) {
		return f.Reassign(ctx, q)
	})
	if err != nil {
		return err
	}
	for _, w := range out.Warnings {
		d.Warn(printable.Text(w))
	}
	return o.Print(d, out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "port %s %s on host %s\n", printable.Text(out.Port),
			printable.Text(movedTo(out.Switch, out.PortGroup)), printable.Text(out.Host))
		return err
	})
}
