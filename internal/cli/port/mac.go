package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	times "heddle/internal/spec/period"
)

func NewMAC(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("mac", "Show the MAC addresses the switches know, and forget learned ones",
		"  heddle mac list\n  heddle mac show 02:00:00:00:01:01\n  heddle mac flush --port vm1/eth0")
	t.Flags(d, c)
	c.AddCommand(newMACList(d, t), newMACShow(d, t), newMACFlush(d, t))
	return c
}

func MACsOf(c *cobra.Command, t *cli.Target, keep func(api.MAC) bool) ([]api.MAC, error) {
	all, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.MAC, error) { return s.MACs(ctx) })
	kept := []api.MAC{}
	for _, m := range all {
		if keep(m) {
			kept = append(kept, m)
		}
	}
	return kept, err
}

// ShownMAC is an address with what else is known about its station.
type ShownMAC struct {
	api.MAC
	// Addresses are the station's IP addresses: those configured at its port, and the sources of its metered flows.
	Addresses []string `json:"addresses,omitempty"`
	// PortGroup and Owner are the port's.
	PortGroup string `json:"portGroup,omitempty"`
	Owner     string `json:"owner,omitempty"`
}

// bareMACs returns the addresses without further information.
func bareMACs(list []api.MAC) []ShownMAC {
	out := make([]ShownMAC, len(list))
	for i, m := range list {
		out[i].MAC = m
	}
	return out
}

// ShownMACs adds what else is known.
func ShownMACs(c *cobra.Command, t *cli.Target, list []api.MAC) ([]ShownMAC, error) {
	s, err := t.State(c)
	if err != nil {
		return nil, err
	}
	flows, err := sentFrom(c, t)
	if err != nil {
		return nil, err
	}
	seen := map[station][]string{}
	for _, f := range flows {
		at := station{place{f.Switch, f.Port}, f.SourceMAC.String()}
		seen[at] = append(seen[at], f.Source.String())
	}
	out := make([]ShownMAC, len(list))
	for i, m := range list {
		out[i] = ShownMAC{MAC: m, Addresses: seen[station{place{m.Switch, m.Port}, m.MAC}]}
		for _, p := range s.Ports {
			if p.Switch != m.Switch || p.Name != m.Port {
				continue
			}
			out[i].PortGroup, out[i].Owner = p.PortGroup, p.Owner
			if m.Kind == "port" {
				out[i].Addresses = append(OwnAddresses(p), out[i].Addresses...)
			}
		}
		out[i].Addresses = distinct(out[i].Addresses)
	}
	return out, nil
}

// station is a MAC at a port.
type station struct {
	at  place
	mac string
}

// macTable shows addresses; wide adds the columns of -o wide.
func macTable(list []ShownMAC, wide bool) func(io.Writer) error {
	return macsOfHosts([]cli.Said[[]ShownMAC]{{Answer: list}}, wide, false)
}

// macsOfHosts shows the addresses that hosts know; hosts says that it has their names.
func macsOfHosts(all []cli.Said[[]ShownMAC], wide, hosts bool) func(io.Writer) error {
	return func(w io.Writer) error {
		head := []string{"SWITCH", "VLAN", "MAC", "PORT", "KIND", "IDLE"}
		if wide {
			head = append(head, "PORT GROUP", "OWNER")
		}
		head = append(head, "ADDRESSES")
		tab := &cli.Table{Head: head, Right: cli.Columns(head, "IDLE"), Keep: cli.Columns(head, "MAC", "IDLE"),
			Names:  cli.Columns(head, "SWITCH", "PORT", "PORT GROUP", "OWNER"),
			Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH")}}
		addressed := func(s cli.Said[[]ShownMAC]) bool {
			return slices.ContainsFunc(s.Answer, func(m ShownMAC) bool { return len(m.Addresses) > 0 })
		}
		if !slices.ContainsFunc(all, addressed) && !wide {
			cli.LeaveOut("ADDRESSES")(tab)
		}
		if hosts {
			tab.WithHosts()
		}
		for _, s := range all {
			for _, m := range s.Answer {
				row := macRow(m, wide)
				if hosts {
					row = append([]string{s.Host}, row...)
				}
				tab.Add(row...)
			}
		}
		return tab.Write(w)
	}
}

func macRow(m ShownMAC, wide bool) []string {
	idle := "-"
	if m.Kind == "learned" {
		idle = times.Age(time.Duration(m.IdleSeconds * float64(time.Second)))
	}
	row := []string{m.Switch, m.VLAN.String(), m.MAC.MAC, m.Port, m.Kind, idle}
	if wide {
		row = append(row, cli.Dash(m.PortGroup), cli.Dash(m.Owner))
	}
	return append(row, cli.Dash(addressText(m.Addresses)))
}

// printMACs prints the addresses that one gives of a host, of all hosts where all are asked.
func printMACs(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, one func(*cli.Target) ([]ShownMAC,
	error)) error {
	all, err := t.Everywhere()
	if err != nil {
		return err
	}
	if !all {
		shown, err := one(t)
		if err != nil {
			return err
		}
		return o.Print(d, shown, macTable(shown, o.Format == "wide"))
	}
	list, away, err := cli.AskHosts(c, t, one)
	if err != nil {
		return err
	}
	err = o.Print(d, cli.OfHosts(list), macsOfHosts(list, o.Format == "wide", true))
	return errors.Join(err, away.Report(d))
}

func newMACList(d cli.Deps, t *cli.Target) *cobra.Command {
	o, sw, port, learned := &cli.Output{Wide: true}, "", "", false
	c := &cobra.Command{
		Use: "list", Short: "List the addresses of ports and the learned ones",
		Long: "List the addresses of ports and the learned addresses. Kinds: \"port\" is a port's own address; " +
			"\"learned\" was learned behind a port. Where several ports of one guest share addresses, as with a " +
			"bond in the guest, \"standby\" is a port's own address that the guest uses at another port now, and " +
			"\"sibling\" is another port's address that it uses at this port.\n\n" +
			"ADDRESSES are the IP addresses of the station, where the agent knows them: those of host ports and of " +
			"address guards, and those that flows of metered ports show it to send from. -o wide has them always, " +
			"besides the port group and the owner.",
		Example: "  heddle mac list --switch lab --learned\n  heddle mac list -o wide", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			return printMACs(d, c, t, o, func(t *cli.Target) ([]ShownMAC, error) {
				if err := t.Has(c, sw, port); err != nil {
					return nil, err
				}
				list, err := MACsOf(c, t, func(m api.MAC) bool {
					return (sw == "" || m.Switch == sw) && (port == "" || m.Port == port) &&
						(!learned || m.Kind == "learned")
				})
				if err != nil {
					return nil, err
				}
				return ShownMACs(c, t, list)
			})
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	cli.SwitchFlag(c, &sw)
	c.Flags().StringVar(&port, "port", "", "only addresses at this port")
	c.Flags().BoolVar(&learned, "learned", false, "only learned addresses")
	return c
}

func newMACShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{Wide: true}
	c := &cobra.Command{
		Use: "show MAC", Short: "Show where an address is", Example: "  heddle mac show 02:00:00:00:01:01",
		Args: cli.Exactly("MAC"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			want, err := cli.ParseMAC(args[0])
			if err != nil {
				return err
			}
			return printMACs(d, c, t, o, func(t *cli.Target) ([]ShownMAC, error) {
				list, err := MACsOf(c, t, func(m api.MAC) bool { return m.MAC == want })
				if err == nil && len(list) == 0 {
					err = &cli.MissingError{Text: fmt.Sprintf("no switch knows %s: it has sent nothing lately, or "+
						"its port "+
						"does not learn", want)}
				}
				if err != nil {
					return nil, err
				}
				return ShownMACs(c, t, list)
			})
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}
