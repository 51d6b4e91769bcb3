package port

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// mostAddresses is how many IP addresses of a guest -o wide shows.
const mostAddresses = 4

// place is a port on its switch.
type place struct{ sw, port string }

// widePortListing returns the list of ports with everything that fits a wide terminal.
func widePortListing(c *cobra.Command, t *cli.Target, d cli.Deps) (cli.Listing[api.Port], error) {
	learned, err := learnedAt(c, t)
	if err != nil {
		return cli.Listing[api.Port]{}, err
	}
	seen, err := addressesSeen(c, t)
	if err != nil {
		return cli.Listing[api.Port]{}, err
	}
	l, now := portListing(d), time.Now()
	head := []string{"SWITCH", "PORT", "PORT GROUP", "VLAN", "STATE", "UPLINK", "SOURCE", "MAC", "DEVICE", "MTU",
		"OWNER", "LEARNED",
		"ADDRESSES", "PROBLEM"}
	l.Table = func() *cli.Table {
		return &cli.Table{Head: head, Keep: cli.Columns(head, "STATE", "SOURCE", "MAC", "MTU"), Right: cli.Columns(head,
			"MTU"),
			Names: cli.Columns(head, "SWITCH", "PORT", "PORT GROUP", "DEVICE", "OWNER"),
			Least: map[int]int{3: cli.LeastVLAN, len(head) - 1: cli.LeastProblem}, Paint: cli.PaintPort(d, head)}
	}
	l.Row = func(p api.Port) []string {
		at := place{p.Switch, p.Name}
		return []string{p.Switch, p.Name, p.PortGroup, cli.Shorten(p.SegmentText(), cli.LongestVLANs), string(p.State),
			cli.Dash(strings.Join(p.Uplinks, ",")), portSource(p), cli.Dash(p.MAC), cli.Dash(p.Device),
			cli.Number(p.MTU),
			cli.Dash(p.Owner),
			cli.Dash(learnedOf(p, learned[at])), cli.Dash(addressText(append(OwnAddresses(p), seen[at]...))),
			cli.Dash(problemSentence(p, now))}
	}
	return l, nil
}

// learnedAt returns how many MACs were learned at each port.
func learnedAt(c *cobra.Command, t *cli.Target) (map[place]int, error) {
	list, err := MACsOf(c, t, func(m api.MAC) bool { return m.Kind == "learned" })
	n := map[place]int{}
	for _, m := range list {
		n[place{m.Switch, m.Port}]++
	}
	return n, err
}

// addressesSeen returns the source IP addresses of guests in metered flows.
func addressesSeen(c *cobra.Command, t *cli.Target) (map[place][]string, error) {
	flows, err := sentFrom(c, t)
	if err != nil {
		return nil, err
	}
	seen := map[place][]string{}
	for _, f := range flows {
		at := place{f.Switch, f.Port}
		seen[at] = append(seen[at], f.Source.String())
	}
	return seen, nil
}

// sentFrom returns the metered flows that guests send from an IP address, the latest first.
func sentFrom(c *cobra.Command, t *cli.Target) ([]api.Flow, error) {
	q := api.FlowQuery{Sort: "last", Limit: api.MaxFlowList, FlowFilter: api.FlowFilter{Direction: "ingress"}}
	flows, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.FlowList, error) {
		return s.Flows(ctx,
			q)
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(flows.Flows, func(f api.Flow) bool {
		return f.Uplink || f.Direction != "ingress" || !f.Source.IsValid() || f.Source.IsUnspecified()
	}), nil
}

// addressText returns the first addresses and the number of the others.
func addressText(list []string) string {
	kept := distinct(list)
	if n := len(kept) - mostAddresses; n > 0 {
		return strings.Join(kept[:mostAddresses], ",") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(kept, ",")
}

// distinct returns the addresses without duplicates; an address with a prefix length equals the one without.
func distinct(list []string) (kept []string) {
	for _, a := range list {
		bare, _, _ := strings.Cut(a, "/")
		if !slices.Contains(kept, a) && !slices.ContainsFunc(kept, func(k string) bool {
			return strings.HasPrefix(k, bare+"/")
		}) {
			kept = append(kept, a)
		}
	}
	return kept
}
