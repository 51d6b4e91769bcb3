package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
)

// newPortWhere is a command at a controller, in whatever way that is named.
func newPortWhere(d cli.Deps) *cobra.Command {
	t, o, adapter := &cli.FleetTarget{}, &cli.Output{}, ""
	c := &cobra.Command{
		Use: "where VM|PORT", Short: "Show on which host of a cluster a VM's ports are",
		Long: "Show on which host of a cluster a VM's ports are, at a controller. VM is the VM's UUID, PORT the " +
			"name of a port. The port is where a connected host reports the guest with the highest " +
			"generation, which rises on whatever host the guest begins to run. Other hosts that have a port " +
			"for the same adapter are listed below it: the source of a move, or its target. What a host that " +
			"is away reported last has a ? behind it.",
		Example: "  heddle port where 6f9619ff-8b86-d011-b42d-00c04fc96401\n  heddle port where vm7/eth0 -o json",
		Args:    cli.Exactly("VM or PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q := api.LocateQuery{Port: args[0], Adapter: adapter}
			if spec.ValidUUID(args[0]) {
				q.VM, q.Port = args[0], ""
			}
			list, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.LocatedPorts, error) {
				return f.LocatePorts(ctx, q)
			})
			if err != nil {
				return err
			}
			err = o.Print(d, list, func(w io.Writer) error { return printLocated(w, args[0], list) })
			return errors.Join(err, cli.PrintFleetNotes(d.Stderr, list.Unreachable, list.Stale))
		},
	}
	t.Flag(d, c, cli.DefaultController)
	c.Flags().StringVar(&adapter, "adapter", "", "only the port of this adapter of the VM")
	o.Flag(c)
	return c
}

func printLocated(w io.Writer, wanted string, list *api.LocatedPorts) error {
	if len(list.Ports) == 0 {
		_, err := fmt.Fprintf(w, "no host has reported a port of %s that belongs to a VM\n", wanted)
		return err
	}
	head := []string{"ADAPTER", "HOST", "ACTIVE", "GENERATION", "STATE", "SWITCH", "PORT GROUP", "NAME", "VM"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "GENERATION"), Keep: cli.Columns(head, "HOST", "ACTIVE",
		"STATE"),
		Names: cli.Columns(head, "ADAPTER", "SWITCH", "PORT GROUP", "NAME", "VM")}
	for _, p := range list.Ports {
		for _, i := range p.Instances {
			active := "no"
			switch {
			case i.Active && i.Host == p.Host:
				active = "yes"
			case i.Active:
				active = "says so" // and another host does, with a higher generation, or nobody hears from it
			}
			if i.Stale {
				active += "?"
			}
			tab.Add(p.Adapter, i.Host, active, strconv.FormatUint(i.Generation, 10), i.State, i.Switch, i.PortGroup,
				i.Name, p.VM)
		}
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	for _, p := range list.Ports {
		if p.Conflict != "" {
			if _, err := fmt.Fprintf(w, "conflict: %s\n", p.Conflict); err != nil {
				return err
			}
		}
	}
	return nil
}
