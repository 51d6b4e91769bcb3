package hostport

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

func New(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("host-port", "Show the host's own interfaces, and move its addresses to one", "  heddle host-port "+
		"list\n  heddle host-port adopt eno1 --dry-run\n  heddle host-port adopt eno1\n  heddle host-port confirm")
	t.Flags(d, c)
	c.AddCommand(newHostPortList(d, t), newHostPortShow(d, t), newHostPortAdopt(d, t), newHostPortConfirm(d, t),
		newHostPortRelease(d, t))
	return c
}

func hostPortsOf(t *cli.Target, c *cobra.Command) ([]api.HostPort, error) {
	return cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.HostPort, error) { return s.HostPorts(ctx) })
}

func newHostPortList(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "list", Short: "List the host's own interfaces",
		Example: "  heddle host-port list\n  heddle host-port list -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			all, err := hostPortsOf(t, c)
			if err != nil {
				return err
			}
			return o.Print(d, all, func(w io.Writer) error {
				tab := &cli.Table{Head: []string{"PORT", "SWITCH", "PORT GROUP", "DEVICE", "STATE", "ADDRESSES",
					"ADOPTED"},
					Paint: func(col int, text, padded string) string {
						if col == 4 {
							return d.Coloured(cli.StateColour(text), padded)
						}
						return padded
					}}
				for _, h := range all {
					tab.Add(h.Name, h.Switch, h.PortGroup, h.Device, string(h.State),
						cli.Dash(strings.Join(h.Addresses, ",")), cli.Dash(adoptionText(h.Adoption)))
				}
				return tab.Write(w)
			})
		},
	}
	o.Flag(c)
	return c
}

// adoptionText is the adoption in a few words, "" for none.
func adoptionText(a *api.Adoption) string {
	if a == nil {
		return ""
	}
	switch a.State {
	case api.AdoptionGateway:
		return fmt.Sprintf("%s: waits for gateway %s", a.Device, strings.Join(a.Missing, ", "))
	case api.AdoptionReleasing:
		return fmt.Sprintf("%s: has everything again, waits for gateway %s", a.Device, strings.Join(a.Missing, ", "))
	case api.AdoptionConfirm:
		return fmt.Sprintf("%s: confirm within %s", a.Device, cli.Left(a.Deadline, time.Now()))
	}
	return fmt.Sprintf("%s: %s", a.Device, a.State)
}

func newHostPortShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "show PORT", Short: "Show one of the host's own interfaces", Example: "  heddle host-port show vmk0",
		Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			all, err := hostPortsOf(t, c)
			if err != nil {
				return err
			}
			h, err := cli.Pick(all, known.Names{What: "host port"}, args[0], "", func(h api.HostPort) (string, string) {
				return h.Switch, h.Name
			})
			if err != nil {
				return err
			}
			return o.Print(d, h, func(w io.Writer) error { return cli.Properties(w, hostPortRows(h)) })
		},
	}
	o.Flag(c)
	return c
}

func hostPortRows(h api.HostPort) [][2]string {
	rows := [][2]string{{"port", h.Name}, {"switch", h.Switch}, {"port group", h.PortGroup},
		{"origin", string(h.Origin)}, {"device", h.Device},
		{"state", string(h.State)}, {"reason", h.Reason}, {"mac", h.MAC}, {"mtu", strconv.Itoa(h.MTU)},
		{"addresses", strings.Join(h.Addresses, ", ")}, {"adopted", adoptionText(h.Adoption)}}
	if h.Adoption != nil {
		rows = append(rows, [2]string{"gateways", strings.Join(h.Adoption.Gateways, ", ")})
	}
	return rows
}

func newHostPortAdopt(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	q := api.Adopt{}
	c := &cobra.Command{
		Use:   "adopt DEVICE",
		Short: "Move the addresses of an uplink's device to a host port",
		Long: "Move addresses, routes, policy rules, fixed neighbours and the MAC of an uplink's device to a host " +
			"port, in one step. The agent moves everything back by itself when a gateway does not answer in time, " +
			"when \"heddle host-port confirm\" is not given in time, or when a step fails. This also works when the " +
			"connection over which the command was given is lost.",
		Example: "  heddle host-port adopt eno1 --dry-run\n  heddle host-port adopt eno1 --port-group management " +
			"--confirm-within 5m\n  heddle host-port confirm",
		Args: cli.Exactly("DEVICE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q.Device = args[0]
			a, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
				return s.Adopt(ctx, q)
			})
			if err != nil {
				return err
			}
			if !q.DryRun {
				settled, err := awaitGateway(c, t, a.Name, q.GatewayWithin)
				if err != nil {
					return err
				}
				settled.Steps, settled.Warnings = a.Steps, a.Warnings
				a = settled
			}
			return o.Print(d, a, func(w io.Writer) error { return printAdoption(d, w, a) })
		},
	}
	f := c.Flags()
	f.StringVar(&q.PortGroup, "port-group", "", "port group of the host port; may be left out where only one is "+
		"untagged and uses the uplink")
	f.StringVar(&q.Name, "name", "", "name of the host port and its interface; default: the first free vmkN")
	f.StringSliceVar(&q.Gateways, "gateway", nil, "address that must answer ARP or neighbour discovery; default: a "+
		"default gateway of each address family; may be repeated, then each must answer")
	f.DurationVar(&q.GatewayWithin, "gateway-within", 30*time.Second, "how long the gateway has to answer")
	f.DurationVar(&q.ConfirmWithin, "confirm-within", 2*time.Minute, "how long you have to confirm")
	f.BoolVar(&q.DryRun, "dry-run", false, "show what would be done")
	f.BoolVar(&q.Force, "force", false, "do it even if a network manager or DHCP client manages the device")
	o.Flag(c)
	return c
}

// gatewayPoll is how often the agent is asked whether the gateway has answered.
const gatewayPoll = 200 * time.Millisecond

// awaitGateway waits until the gateway has answered or everything has gone back. The agent goes on also when nobody
// waits.
func awaitGateway(c *cobra.Command, t *cli.Target, name string, within time.Duration) (*api.Adoption, error) {
	client, err := t.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), within+cli.CallTimeout)
	defer cancel()
	poll := time.NewTicker(gatewayPoll)
	defer poll.Stop()
	for {
		a, err := client.Adoption(ctx, api.HostPortName{Name: name})
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w; the adoption goes on without this command: see \"heddle host-port show %s\"",
				err, printable.ShellWord(name))
		case a.State == api.AdoptionReverted:
			return nil, fmt.Errorf("device %s has its addresses and routes again: %s", a.Device, a.Reason)
		case a.State == api.AdoptionConfirm, a.State == api.AdoptionConfirmed:
			return a, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("gave up waiting for the gateway; the adoption goes on without this command: see "+
				"\"heddle host-port show %s\"", printable.ShellWord(name))
		}
	}
}

func printAdoption(d cli.Deps, w io.Writer, a *api.Adoption) error {
	for _, text := range a.Warnings {
		d.Warn(text)
	}
	if a.State == api.AdoptionPlanned {
		fmt.Fprintf(w, "host port %s would take the place of %s:\n", a.Name, a.Device)
		for _, s := range a.Steps {
			fmt.Fprintf(w, "  %s\n", s)
		}
		return nil
	}
	fmt.Fprintf(w, "host port %s has taken the place of %s\n", a.Name, a.Device)
	if len(a.Gateways) > 0 {
		fmt.Fprintf(w, "gateways: %s; reached\n", strings.Join(a.Gateways, ", "))
	}
	if a.State == api.AdoptionConfirm {
		_, err := fmt.Fprintf(w, "confirm within %s, or everything goes back: heddle host-port confirm %s\n",
			cli.Left(a.Deadline, time.Now()), printable.ShellWord(a.Name))
		return err
	}
	return nil
}

func newHostPortConfirm(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "confirm [PORT]", Short: "Keep what was adopted",
		Example: "  heddle host-port confirm\n  heddle host-port confirm vmk0",
		Args:    cli.AtMost("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q := api.HostPortName{Name: strings.Join(args, "")}
			a, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
				return s.ConfirmAdoption(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, a, func(w io.Writer) error { return printConfirmed(w, a) })
		},
	}
	o.Flag(c)
	return c
}

func printConfirmed(w io.Writer, a *api.Adoption) error {
	if a.State == api.AdoptionGateway {
		_, err := fmt.Fprintf(w, "noted; host port %s is kept when gateway %s answers\n", a.Name,
			strings.Join(a.Missing, ", "))
		return err
	}
	_, err := fmt.Fprintf(w, "host port %s is kept until it is released or the machine starts again.\nTo keep it for "+
		"good, add to the configuration file:\n\n%s\n"+
		"and have the host's network configuration put the addresses and routes of %s on %s instead (see "+
		"how-to/attach/host-traffic.md of the documentation).\n", a.Name, a.Declaration, a.Device, a.Name)
	return err
}
