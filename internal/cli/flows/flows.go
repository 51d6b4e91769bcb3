package flows

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose/stats"
	"heddle/internal/plan"
	times "heddle/internal/spec/period"
	"heddle/internal/spec/printable"
)

func New(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("flows", "Show who talks to whom: the flows of metered ports",
		"  heddle flows list\n  heddle flows top --port vm1/eth0\n  heddle flows watch -o json\n  heddle flows status")
	c.Long = "Flows are metered where monitoring says so, at ports and uplinks (monitoring: {ipfix: true}). Each is " +
		"what was seen at one port, in\n" +
		"one direction, with the same addresses, protocol and ports. Ingress is from the port's owner into the " +
		"switch. No collector is\n" +
		"needed to look at them. What is shown is at most a second old."
	t.Flags(d, c)
	c.AddCommand(newFlowsList(d, t), newFlowsTop(d, t), newFlowsWatch(d, t), newFlowsStatus(d, t))
	return c
}

// flowFilterFlags are the flags that select flows.
func flowFilterFlags(c *cobra.Command, f *api.FlowFilter) {
	flags := c.Flags()
	flags.StringVar(&f.Switch, "switch", "", "only of this switch")
	flags.StringVar(&f.Port, "port", "", "only what was seen at this port or uplink")
	flags.StringVar(&f.Uplink, "uplink", "", "only what was seen at this uplink")
	flags.StringVar(&f.PortGroup, "port-group", "", "only what was seen at ports of this port group")
	flags.StringVar(&f.Address, "address", "", "only flows from or to this address, or prefix such as 192.0.2.0/24")
	flags.StringVar(&f.Protocol, "protocol", "", "only of this protocol: tcp, udp, icmp, icmp6, sctp, arp, llc, a "+
		"number of IP, or an EtherType such as 0x88cc")
	flags.IntVar(&f.L4Port, "l4port", 0, "only from or to this port of TCP, UDP or SCTP")
	flags.StringVar(&f.Direction, "direction", "", "only ingress or egress, seen from the switch")
	_ = c.RegisterFlagCompletionFunc("direction", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return []string{"ingress", "egress"}, cobra.ShellCompDirectiveNoFileComp
	})
}

func newFlowsList(d cli.Deps, t *cli.Target) *cobra.Command {
	o, q, by := &cli.Output{Wide: true}, api.FlowQuery{}, ""
	c := &cobra.Command{
		Use: "list", Short: "List the current flows, the largest first",
		Example: "  heddle flows list --address 192.0.2.0/24\n  heddle flows list --port vm1/eth0 --protocol tcp " +
			"--l4port 443 --sort last\n" +
			"  heddle flows list --port tunnel -o wide\n" +
			"  heddle flows list --by conversation --port-group web\n" +
			"  heddle flows list --by address --sort packets --limit 10\n  heddle flows list --limit 20000 -o json",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err == nil && c.Flags().Changed("by") {
				if !c.Flags().Changed("limit") {
					q.Limit = 20
				}
				return listSums(c, d, t, o, api.FlowSumQuery{FlowFilter: q.FlowFilter, By: by, Of: api.SumsOfFlows,
					Sort: q.Sort, Limit: q.Limit})
			}
			switch {
			case o.Check() != nil:
				return o.Check()
			case !slices.Contains(api.FlowSorts(), q.Sort):
				return cli.Usagef("--sort %q: use one of %s", q.Sort, strings.Join(api.FlowSorts(), ", "))
			case q.Limit < 1 || q.Limit > api.MaxFlowList:
				return cli.Usagef("--limit %d: it is 1–%d", q.Limit, api.MaxFlowList)
			}
			one := func(t *cli.Target) (*api.FlowList, error) {
				return cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.FlowList, error) {
					return s.Flows(ctx, q)
				})
			}
			if all, err := t.Everywhere(); err != nil {
				return err
			} else if all {
				return flowsOfHosts(c, d, t, o, q, one)
			}
			list, err := one(t)
			if err != nil {
				return err
			}
			return o.Print(d, list, func(w io.Writer) error { return flowTable(w, list, o.Format, time.Now()) })
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	flowFilterFlags(c, &q.FlowFilter)
	byFlag(c, &by)
	c.Flags().StringVar(&q.Sort, "sort", "bytes", "what comes first: the most "+strings.Join(api.FlowSorts()[:2],
		" or ")+", or the most recent (last); with --by "+
		strings.Join(api.FlowSumSorts(), ", "))
	_ = c.RegisterFlagCompletionFunc("sort", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		if c.Flags().Changed("by") {
			return api.FlowSumSorts(), cobra.ShellCompDirectiveNoFileComp
		}
		return api.FlowSorts(), cobra.ShellCompDirectiveNoFileComp
	})
	c.Flags().IntVar(&q.Limit, "limit", 50, fmt.Sprintf("how many at most: 1–%d; with --by 1–%d, default 20",
		api.MaxFlowList, api.MaxFlowTop))
	return c
}

// flowTable shows flows as a table, and what it leaves out below.
func flowTable(w io.Writer, list *api.FlowList, format string, now time.Time) error {
	tab := flowRows(format)
	for _, f := range list.Flows {
		tab.Add(flowCells(f, now)...)
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	return flowNotes(w, list)
}

// flowRows is a table for flows; the wide one has the tunnels by which they go to or come from other hosts.
func flowRows(format string) *cli.Table {
	return &cli.Table{
		Head:  []string{"PORT", "DIR", "VLAN", "PROTO", "SOURCE", "DESTINATION", "PACKETS", "BYTES", "LAST", "TUNNEL"},
		Right: map[int]bool{6: true, 7: true, 8: true}, Keep: map[int]bool{1: true, 3: true, 6: true, 7: true, 8: true},
		Hidden: map[int]bool{9: format != "wide"}}
}

func flowCells(f api.Flow, now time.Time) []string {
	return []string{seenAt(f), direction(f), vlanShort(f), protocolText(f),
		flowEnd(f.Source, f.SourceMAC, f.SourcePort),
		flowEnd(f.Destination, f.DestinationMAC, f.DestinationPort),
		countText(f.Packets), countText(f.Bytes), times.Age(now.Sub(f.Last)), tunnelText(f.Tunnel)}
}

// tunnelText is the way of a flow to or from another host: this host's endpoint, where it is known, and the other
// one's.
func tunnelText(t *api.FlowTunnel) string {
	switch {
	case t == nil:
		return "-"
	case t.Local.IsValid():
		return t.Local.String() + " ↔ " + t.Remote.String()
	}
	return "↔ " + t.Remote.String()
}

// flowNotes says below a table what it leaves out.
func flowNotes(w io.Writer, list *api.FlowList) error {
	note := ""
	switch {
	case !list.Note.None() && list.Total == 0:
		note = list.Note.Text
	case list.Total > len(list.Flows):
		note = fmt.Sprintf("%d of %d flows that match; --limit shows more", len(list.Flows), list.Total)
	case list.Total == 0 && list.Kept > 0:
		note = "no flow matches, of " + printable.Count(list.Kept, "flow", "flows") + " kept"
	}
	for _, line := range []string{note, sampled(list.SamplingRate)} {
		if line == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// sampled returns the sampling that counts are based on, "" if they count all packets.
func sampled(rate int) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf("one packet in %d is metered (samplingRate: %d): counts are of those alone", rate+1, rate)
}

// seenAt returns the port where a flow was seen; ^ marks an uplink.
func seenAt(f api.Flow) string {
	if f.Uplink {
		return f.Port + " ^"
	}
	return f.Port
}

// direction returns in or out, seen from the switch.
func direction(f api.Flow) string {
	if f.Direction == "egress" {
		return "out"
	}
	return "in"
}

// most is the largest number that a table shows digit by digit, so that addresses have enough width.
const most = 9_999_999

func countText(n uint64) string {
	if n > most {
		return stats.Short(float64(n))
	}
	return strconv.FormatUint(n, 10)
}

func vlanShort(f api.Flow) string {
	if f.VLAN.Kind == plan.SegmentUntagged {
		return "-"
	}
	return f.VLAN.String()
}

// protocolText returns the protocol, with the type and code of ICMP messages.
func protocolText(f api.Flow) string {
	if f.ICMP != nil {
		return f.Protocol + " " + f.ICMP.String()
	}
	return f.Protocol
}

// flowEnd returns one end of a flow: address and port, or the MAC if it has no address.
func flowEnd(a netip.Addr, mac plan.MAC, port uint16) string {
	switch {
	case !a.IsValid():
		return mac.String()
	case port == 0:
		return a.String()
	}
	return net.JoinHostPort(a.String(), strconv.Itoa(int(port)))
}
