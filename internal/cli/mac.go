package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	times "heddle/internal/spec/period"
)

func newMAC(d Deps) *cobra.Command {
	t := &target{}
	c := group("mac", "Show the MAC addresses the switches know, and forget learned ones",
		"  heddle mac list\n  heddle mac show 02:00:00:00:01:01\n  heddle mac flush --port vm1/eth0")
	t.flags(d, c)
	c.AddCommand(newMACList(d, t), newMACShow(d, t), newMACFlush(d, t))
	return c
}

func macs(c *cobra.Command, t *target, keep func(api.MAC) bool) ([]api.MAC, error) {
	all, err := ask(c, t, func(ctx context.Context, s api.Service) ([]api.MAC, error) { return s.MACs(ctx) })
	kept := []api.MAC{}
	for _, m := range all {
		if keep(m) {
			kept = append(kept, m)
		}
	}
	return kept, err
}

func macTable(list []api.MAC) func(io.Writer) error {
	return func(w io.Writer) error {
		tab := &table{head: []string{"SWITCH", "VLAN", "MAC", "PORT", "KIND", "IDLE"}, right: map[int]bool{5: true},
			keep: map[int]bool{2: true}, names: map[int]bool{0: true, 3: true},
			narrow: []func(*table){leaveOutTheOnly("SWITCH")}}
		for _, m := range list {
			idle := "-"
			if m.Kind == "learned" {
				idle = times.Age(time.Duration(m.IdleSeconds * float64(time.Second)))
			}
			tab.add(m.Switch, m.VLAN.String(), m.MAC, m.Port, m.Kind, idle)
		}
		return tab.write(w)
	}
}

func newMACList(d Deps, t *target) *cobra.Command {
	o, sw, port, learned := &output{}, "", "", false
	c := &cobra.Command{
		Use: "list", Short: "List the addresses of ports and the learned ones",
		Long: "List the addresses of ports and the learned addresses. Kinds: \"port\" is a port's own address; " +
			"\"learned\" was learned behind a port. Where several ports of one guest share addresses, as with a " +
			"bond in the guest, \"standby\" is a port's own address that the guest uses at another port now, and " +
			"\"sibling\" is another port's address that it uses at this port.",
		Example: "  heddle mac list --switch lab --learned", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if err := t.has(c, sw, port); err != nil {
				return err
			}
			list, err := macs(c, t, func(m api.MAC) bool {
				return (sw == "" || m.Switch == sw) && (port == "" || m.Port == port) &&
					(!learned || m.Kind == "learned")
			})
			if err != nil {
				return err
			}
			return o.print(d, list, macTable(list))
		},
	}
	o.flag(c)
	switchFlag(c, &sw)
	c.Flags().StringVar(&port, "port", "", "only addresses at this port")
	c.Flags().BoolVar(&learned, "learned", false, "only learned addresses")
	return c
}

func newMACShow(d Deps, t *target) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "show MAC", Short: "Show where an address is", Example: "  heddle mac show 02:00:00:00:01:01",
		Args: exactly("MAC"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			want, err := parseMAC(args[0])
			if err != nil {
				return err
			}
			list, err := macs(c, t, func(m api.MAC) bool { return m.MAC == want })
			if err != nil {
				return err
			}
			if len(list) == 0 {
				return fmt.Errorf("no switch knows %s: it has sent nothing lately, or its port does not learn", want)
			}
			return o.print(d, list, macTable(list))
		},
	}
	o.flag(c)
	return c
}
