package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newPortStatic(d Deps) *cobra.Command {
	t := &fleetTarget{}
	c := group("static", "Static ports of a cluster, at a controller",
		"  heddle port static list --port-group db\n  heddle port static release 33\n"+
			"  heddle port static settle --adapter net0 --host esx2 \\\n"+
			"    --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc96401")
	c.Long = "A static port belongs to an adapter of a VM, known by the VM's UUID, and stays so while the VM is off. " +
		"The " +
		"controllers keep whose it is."
	t.flag(d, c, defaultController)
	c.AddCommand(newPortStaticList(d, t), newPortStaticRelease(d, t), newPortStaticSettle(d, t))
	return c
}

func newPortStaticList(d Deps, t *fleetTarget) *cobra.Command {
	o, q, conflicts := &output{wide: true}, api.StaticPortQuery{}, false
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the static ports, bound or not, and the conflict ports",
		Long: "List the static ports, bound or not, and the conflict ports: those that run without a static port of " +
			"their " +
			"own, or whose adapter another host has too. STATE is free, bound (to an adapter that is not connected), " +
			"or " +
			"that of the port on its host; what a host that is away reported last has a ? behind it. -o wide also " +
			"shows the binding, which \"heddle port static settle --binding\" rests on.",
		Example: "  heddle port static list --port-group db\n  heddle port static list --conflicts", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			all, err := askFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.StaticPorts, error) {
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
			err = o.print(d, list, func(w io.Writer) error { return staticTable(list, o.format == "wide").write(w) })
			return errors.Join(err, printFleetNotes(d.Stderr, nil, all.Stale))
		},
	}
	f := c.Flags()
	f.StringVar(&q.Switch, "switch", "", "only those of this switch")
	f.StringVar(&q.PortGroup, "port-group", "", "only those of this port group")
	f.StringVar(&q.Host, "host", "", "only those on this host")
	f.BoolVar(&conflicts, "conflicts", false, "only those in conflict")
	o.flag(c)
	return c
}

// staticTable is the table of static ports, with their bindings where that is asked for.
func staticTable(list []api.StaticPort, bindings bool) *table {
	head := []string{"PORT", "SWITCH", "PORT GROUP", "STATE", "HOST", "NAME", "VM", "ADAPTER", "CONFLICT"}
	tab := &table{head: head, right: columns(head, "PORT"), keep: columns(head, "PORT", "STATE"),
		names:  columns(head, "SWITCH", "PORT GROUP", "HOST", "NAME", "VM", "ADAPTER"),
		narrow: []func(*table){leaveOutTheOnly("SWITCH"), leaveOut("ADAPTER")}}
	labels := slices.ContainsFunc(list, func(p api.StaticPort) bool { return p.Label != "" })
	if labels {
		tab.head = slices.Insert(head, 1, "LABEL")
		tab.right, tab.keep = columns(tab.head, "PORT"), columns(tab.head, "PORT", "STATE")
		tab.names = columns(tab.head, "LABEL", "SWITCH", "PORT GROUP", "HOST", "NAME", "VM", "ADAPTER")
	}
	if bindings {
		tab.head = append(tab.head, "BINDING")
	}
	for _, p := range list {
		cells := []string{dash(p.Port), p.Switch, p.PortGroup, staticState(p), dash(p.Host), dash(p.Name), dash(p.VM),
			dash(p.Adapter), dash(p.Conflict)}
		if labels {
			cells = slices.Insert(cells, 1, dash(p.Label))
		}
		if bindings {
			cells = append(cells, dash(p.Binding))
		}
		tab.add(cells...)
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

func newPortStaticRelease(d Deps, t *fleetTarget) *cobra.Command {
	o, q := &output{}, api.ReleaseStatic{}
	c := &cobra.Command{
		Use: "release PORT", Short: "Make a static port nobody's, as when its VM was deleted",
		Long: "Make a static port nobody's, as when its VM was deleted. PORT is its number, as \"heddle port static " +
			"list\" " +
			"shows it. A port that a running guest uses is not released. One of a host that has lost its controllers " +
			"is not for a minute (--port-lease of heddle-controller), but by --force. A script says with --vm-uuid " +
			"and --adapter whose port it means: it is not taken from another VM that has got it since.",
		Example: "  heddle port static release 33\n  heddle port static release 33 --force\n" +
			"  heddle port static release 33 --vm-uuid 6f9619ff-8b86-d011-b42d-00c04fc96401", Args: exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			p, err := askFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.StaticPort, error) {
				q.Port = args[0]
				return f.ReleasePort(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.print(d, p, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "port %s of port group %s/%s is free\n", p.Port, p.Switch, p.PortGroup)
				return err
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&q.Force, "force", false, "also where a host that is lost holds the port by its lease")
	f.StringVar(&q.VM, "vm-uuid", "", "only if it is this VM's")
	f.StringVar(&q.Adapter, "adapter", "", "only if it is the adapter's with this name")
	o.flag(c)
	return c
}

func newPortStaticSettle(d Deps, t *fleetTarget) *cobra.Command {
	o, q := &output{}, api.SettlePort{}
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
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if q.VM == "" || q.Adapter == "" || q.Host == "" {
				return usagef("say which adapter and which host: --vm-uuid, --adapter and --host")
			}
			p, err := askFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.StaticPort, error) {
				return f.SettlePort(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.print(d, p, func(w io.Writer) error {
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
	o.flag(c)
	return c
}
