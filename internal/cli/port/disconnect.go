package port

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// Disconnected is the result of "heddle port disconnect".
type Disconnected struct {
	// Disconnected is false if there was no such port, and --if-connected was given.
	Disconnected bool `json:"disconnected"`
	// Port is the port as it was, null if there was none.
	Port *api.Port `json:"port"`
	// Trial is the trial of a change of the path to the host's own addresses.
	Trial *api.Trial `json:"trial,omitempty"`
}

// disconnecting is one run of "heddle port disconnect" with its flags.
type disconnecting struct {
	cli.Output
	q           api.Disconnect
	ifConnected bool
}

func newPortDisconnect(d cli.Deps, t *cli.Target) *cobra.Command {
	g := &disconnecting{}
	c := &cobra.Command{
		Use: "disconnect [PORT]", Short: "Remove a port that was connected by command",
		Long: "Remove a port that was connected by command. Where its port group keeps what a port sets for itself " +
			"(overrides: {resetAtDisconnect: false}), the port gets these settings back when it is connected to " +
			"the same port group again.",
		Example: "  heddle port disconnect vm7/eth0\n  heddle port disconnect --device tap7 --if-connected",
		Args: func(c *cobra.Command, args []string) error {
			if g.q.Device == "" {
				return cli.Exactly("PORT")(c, args)
			}
			if len(args) > 0 {
				return cli.Usagef("say which port by its name or by its device, not both")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := g.Check(); err != nil {
				return err
			}
			if g.q.Device == "" {
				g.q.Port = args[0]
			}
			return g.run(d, c, t)
		},
	}
	g.Flag(c)
	c.Flags().StringVar(&g.q.Device, "device", "", "the port that has this device, instead of a port's name")
	cli.WindowFlag(c, &g.q.Window)
	c.Flags().StringVar(&g.q.VM, "vm-uuid", "", "for scripts: only a port of the VM with this UUID; another one is "+
		"as if it were not there")
	c.Flags().BoolVar(&g.q.Release, "release", false, "give up the static port that it is, as when the VM is deleted; "+
		"without this it stays the adapter's")
	c.Flags().BoolVar(&g.q.Reset, "reset", false,
		"forget the port's own settings, even where its port group keeps them")
	c.Flags().BoolVar(&g.ifConnected, "if-connected", false, "for scripts: a missing port is not an error")
	return c
}

func (g *disconnecting) run(d cli.Deps, c *cobra.Command, t *cli.Target) error {
	before, unknown := t.State(c) // for the output; the command itself reports errors
	_, err := cli.AskTried(d, c, t, g.q.Window, func(ctx context.Context, s api.Service) (struct{}, error) {
		return struct{}{}, s.Disconnect(ctx, g.q)
	})
	if g.ifConnected && cli.IsNotFound(err) {
		return g.Print(d, Disconnected{}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: nothing to disconnect\n", g.asked())
			return err
		})
	}
	if err != nil {
		return err
	}
	out := Disconnected{Disconnected: true}
	if unknown == nil {
		out.Port = g.among(before.Ports)
	}
	if g.q.Window.ConfirmWithin > 0 { // otherwise it is decided
		if v, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Trial, error) {
			return s.Trial(ctx)
		}); err == nil && v.State == api.TrialConfirm {
			out.Trial = v
			cli.PrintTrial(d, v)
		}
	}
	return g.Print(d, out, func(w io.Writer) error {
		text := g.asked() + " is disconnected"
		if p := out.Port; p != nil {
			text = fmt.Sprintf("port %s is disconnected; it was in port group %s of switch %s", p.Name, p.PortGroup,
				p.Switch)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

// asked returns the name of the port as the command gave it.
func (g *disconnecting) asked() string {
	if g.q.Device != "" {
		return "the port of device " + g.q.Device
	}
	return "port " + g.q.Port
}

// among returns the named port, nil if it is not there.
func (g *disconnecting) among(ports []api.Port) *api.Port {
	i := slices.IndexFunc(ports, func(p api.Port) bool {
		return g.q.Device != "" && p.Device == g.q.Device || g.q.Device == "" && p.Name == g.q.Port
	})
	if i < 0 {
		return nil
	}
	return &ports[i]
}
