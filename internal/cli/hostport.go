package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

func newHostPort(d Deps) *cobra.Command {
	t := &target{}
	c := group("host-port", "Show the host's own interfaces, and move its addresses to one", "  heddle host-port "+
		"list\n  heddle host-port adopt eno1 --dry-run\n  heddle host-port adopt eno1\n  heddle host-port confirm")
	t.flags(d, c)
	c.AddCommand(newHostPortList(d, t), newHostPortShow(d, t), newHostPortAdopt(d, t), newHostPortConfirm(d, t),
		newHostPortRelease(d, t))
	return c
}

func (t *target) hostPorts(c *cobra.Command) ([]api.HostPort, error) {
	return ask(c, t, func(ctx context.Context, s api.Service) ([]api.HostPort, error) { return s.HostPorts(ctx) })
}

func newHostPortList(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "list", Short: "List the host's own interfaces",
		Example: "  heddle host-port list\n  heddle host-port list -o json", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			all, err := t.hostPorts(c)
			if err != nil {
				return err
			}
			return o.print(d, all, func(w io.Writer) error {
				tab := &table{head: []string{"PORT", "SWITCH", "PORT GROUP", "DEVICE", "STATE", "ADDRESSES", "ADOPTED"},
					paint: func(col int, text, padded string) string {
						if col == 4 {
							return d.coloured(stateColour(text), padded)
						}
						return padded
					}}
				for _, h := range all {
					tab.add(h.Name, h.Switch, h.PortGroup, h.Device, string(h.State),
						dash(strings.Join(h.Addresses, ",")), dash(adoptionText(h.Adoption)))
				}
				return tab.write(w)
			})
		},
	}
	o.flag(c)
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
		return fmt.Sprintf("%s: confirm within %s", a.Device, left(a.Deadline, time.Now()))
	}
	return fmt.Sprintf("%s: %s", a.Device, a.State)
}

func left(deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return max(0, deadline.Sub(now)).Round(time.Second)
}

func newHostPortShow(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "show PORT", Short: "Show one of the host's own interfaces", Example: "  heddle host-port show vmk0",
		Args: exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			all, err := t.hostPorts(c)
			if err != nil {
				return err
			}
			h, err := pick(all, known.Names{What: "host port"}, args[0], "", func(h api.HostPort) (string, string) {
				return h.Switch, h.Name
			})
			if err != nil {
				return err
			}
			return o.print(d, h, func(w io.Writer) error { return properties(w, hostPortRows(h)) })
		},
	}
	o.flag(c)
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

func newHostPortAdopt(d Deps, t *target) *cobra.Command {
	o := &output{}
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
		Args: exactly("DEVICE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			q.Device = args[0]
			a, err := ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
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
			return o.print(d, a, func(w io.Writer) error { return printAdoption(d, w, a) })
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
	o.flag(c)
	return c
}

// gatewayPoll is how often the agent is asked whether the gateway has answered.
const gatewayPoll = 200 * time.Millisecond

// awaitGateway waits until the gateway has answered or everything has gone back. The agent goes on also when nobody
// waits.
func awaitGateway(c *cobra.Command, t *target, name string, within time.Duration) (*api.Adoption, error) {
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), within+callTimeout)
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

func printAdoption(d Deps, w io.Writer, a *api.Adoption) error {
	for _, text := range a.Warnings {
		d.warn(text)
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
			left(a.Deadline, time.Now()), printable.ShellWord(a.Name))
		return err
	}
	return nil
}

func newHostPortConfirm(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "confirm [PORT]", Short: "Keep what was adopted",
		Example: "  heddle host-port confirm\n  heddle host-port confirm vmk0",
		Args:    atMost("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			q := api.HostPortName{Name: strings.Join(args, "")}
			a, err := ask(c, t, func(ctx context.Context, s api.Service) (*api.Adoption, error) {
				return s.ConfirmAdoption(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.print(d, a, func(w io.Writer) error { return printConfirmed(w, a) })
		},
	}
	o.flag(c)
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
		"and have the host's network configuration put the addresses and routes of %s on %s instead (see the how-to "+
		"host-traffic).\n", a.Name, a.Declaration, a.Device, a.Name)
	return err
}
