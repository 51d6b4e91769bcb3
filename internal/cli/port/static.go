package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newPortStatic(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("static", "Static ports of a cluster, at a controller",
		"  heddle port static list --port-group db\n  heddle port static release 33\n"+
			"  heddle port static settle --adapter net0 --host esx2 \\\n"+
			"    --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc96401")
	c.Long = "A static port belongs to an adapter of a VM, known by the VM's UUID, and stays so while the VM is off. " +
		"The " +
		"controllers keep whose it is."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newPortStaticList(d, t), newPortStaticRelease(d, t), newPortStaticSettle(d, t))
	return c
}

func newPortStaticList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, q, conflicts := &cli.Output{Wide: true}, api.StaticPortQuery{}, false
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the static ports, bound or not, and the conflict ports",
		Long: "List the static ports, bound or not, and the conflict ports: those that run without a static port of " +
			"their " +
			"own, or whose adapter another host has too. STATE is free, bound (to an adapter that is not connected), " +
			"or " +
			"that of the port on its host; what a host that is away reported last has a ? behind it. -o wide also " +
			"shows the binding, which \"heddle port static settle --binding\" rests on.",
		Example: "  heddle port static list --port-group db\n  heddle port static list --conflicts",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			all, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.StaticPorts, error) {
				return f.StaticPorts(ctx, q)
			})
			if err != nil {
				return err
			}
			list := make([]api.StaticPort, 0, len(all.Ports))
			for _, p := range all.Ports {
				if !conflicts || p.Conflict != "" {
					list = append(list, p)
				}
			}
			err = o.Print(d, list, func(w io.Writer) error { return staticTable(list, o.Format == "wide").Write(w) })
			return errors.Join(err, cli.PrintFleetNotes(d.Stderr, nil, all.Stale))
		},
	}
	f := c.Flags()
	f.StringVar(&q.Switch, "switch", "", "only those of this switch")
	f.StringVar(&q.PortGroup, "port-group", "", "only those of this port group")
	f.StringVar(&q.Host, "host", "", "only those on this host")
	f.BoolVar(&conflicts, "conflicts", false, "only those in conflict")
	o.Flag(c)
	return c
}

// staticTable is the table of static ports, with their bindings where that is asked for.
func staticTable(list []api.StaticPort, bindings bool) *cli.Table {
	head := []string{"PORT", "SWITCH", "PORT GROUP", "STATE", "HOST", "NAME", "VM", "ADAPTER", "CONFLICT"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "PORT"), Keep: cli.Columns(head, "PORT", "STATE"),
		Names:  cli.Columns(head, "SWITCH", "PORT GROUP", "HOST", "NAME", "VM", "ADAPTER"),
		Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH"), cli.LeaveOut("ADAPTER")}}
	labels := slices.ContainsFunc(list, func(p api.StaticPort) bool { return p.Label != "" })
	if labels {
		tab.Head = slices.Insert(head, 1, "LABEL")
		tab.Right, tab.Keep = cli.Columns(tab.Head, "PORT"), cli.Columns(tab.Head, "PORT", "STATE")
		tab.Names = cli.Columns(tab.Head, "LABEL", "SWITCH", "PORT GROUP", "HOST", "NAME", "VM", "ADAPTER")
	}
	if bindings {
		tab.Head = append(tab.Head, "BINDING")
	}
	for _, p := range list {
		cells := []string{cli.Dash(p.Port), p.Switch, p.PortGroup, staticState(p), cli.Dash(p.Host), cli.Dash(p.Name),
			cli.Dash(p.VM),
			cli.Dash(p.Adapter), cli.Dash(p.Conflict)}
		if labels {
			cells = slices.Insert(cells, 1, cli.Dash(p.Label))
		}
		if bindings {
			cells = append(cells, cli.Dash(p.Binding))
		}
		tab.Add(cells...)
	}
	return tab
}

// staticState is how a static port stands.
func staticState(p api.StaticPort) string {
	switch {
	case p.State != "" && p.Stale:
		return p.State + "?"
	case p.State != "":
		return p.State
	case p.Bound:
		return "bound"
	}
	return "free"
}

func newPortStaticRelease(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, q := &cli.Output{}, api.ReleaseStatic{}
	c := &cobra.Command{
		Use: "release PORT", Short: "Make a static port nobody's, as when its VM was deleted",
		Long: "Make a static port nobody's, as when its VM was deleted. PORT is its number, as \"heddle port static " +
			"list\" " +
			"shows it. A port that a running guest uses is not released. One of a host that has lost its controllers " +
			"is not for a minute (--port-lease of heddle-controller), but by --force. A script says with --vm-uuid " +
			"and --adapter whose port it means: it is not taken from another VM that has got it since.",
		Example: "  heddle port static release 33\n  heddle port static release 33 --force\n" +
			"  heddle port static release 33 --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc96401", Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			p, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.StaticPort, error) {
				q.Port = args[0]
				return f.ReleasePort(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, p, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "port %s of port group %s/%s is free\n", p.Port, p.Switch, p.PortGroup)
				return err
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&q.Force, "force", false, "also where a host that is lost holds the port by its lease")
	f.StringVar(&q.VM, "vm-uuid", "", "only if it is this VM's")
	f.StringVar(&q.Adapter, "adapter", "", "only if it is the adapter's with this name")
	o.Flag(c)
	return c
}

func newPortStaticSettle(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, q := &cli.Output{}, api.SettlePort{}
	c := &cobra.Command{
		Use: "settle", Short: "Say on which host an adapter has its static port",
		Long: "Bind the static port of a VM's adapter on the host that is named, where the VM runs. Where another " +
			"adapter has " +
			"the port that it was to have, it gets a free one. No guest is cut off: a VM that runs on another host " +
			"too goes on there, and both stay marked until one of them is stopped. A host that has lost its " +
			"controllers holds its ports for a minute (--port-lease of heddle-controller): --force takes them at " +
			"once. " +
			"A port that is bound elsewhere or anew while the command runs is left alone, and the command says so. " +
			"--from names the host that \"heddle port static list\" has shown: the port is taken from no other one. " +
			"--binding is what the list shows with -o wide or -o json: also a port that its host has claimed anew " +
			"since is left alone then, and the command says how it is bound now.",
		Example: "  heddle port static settle --adapter net0 --host esx2 --from esx1 \\\n" +
			"    --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc96401\n" +
			"  heddle port static settle --adapter net0 --host esx2 \\\n" +
			"    --binding 9c1f0a73be52d846 --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc96401",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if q.VM == "" || q.Adapter == "" || q.Host == "" {
				return cli.Usagef("say which adapter and which host: --vm-uuid, --adapter and --host")
			}
			p, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.StaticPort, error) {
				return f.SettlePort(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, p, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "adapter %s of VM %s has port %s of port group %s/%s on host %s\n", p.Adapter,
					p.VM,
					p.Port, p.Switch, p.PortGroup, p.Host)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&q.VM, "vm-uuid", "", "UUID of the VM")
	f.StringVar(&q.Adapter, "adapter", "", "name of the adapter")
	f.StringVar(&q.Host, "host", "", "the host where it has its port")
	f.StringVar(&q.From, "from", "", "only if the port is bound on this host so far")
	f.StringVar(&q.Binding, "binding", "", "only if the port has this binding so far, or none for \"none\"")
	f.BoolVar(&q.Force, "force", false, "also where a host that is lost holds the port by its lease")
	o.Flag(c)
	return c
}
