package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	times "heddle/internal/spec/period"
)

func newSegmentNeighbours(d cli.Deps) *cobra.Command {
	t, o, q := &cli.Target{}, &cli.Output{}, api.NeighbourQuery{}
	whose := ""
	c := &cobra.Command{
		Use: "neighbours [VNI|PORT-GROUP]", Short: "Show which MAC has which IP address, as a host answers ARP and ND",
		Long: "Show which MAC has which IP address in overlay segments, as this host knows it, and would answer " +
			"ARP and neighbour discovery for. A port group names its segment where a controller is asked. WHOSE is " +
			"\"port\" where a guest of this host was heard, \"endpoint\" where the tunnel endpoint of another host " +
			"brought it, and \"controllers\" where they have told it. BEHIND is the port, or the endpoint, behind " +
			"which the owner is; AGE is how long ago it was heard. STATE is \"contested\" where two MACs claim the " +
			"address, so that the host answers for neither, and \"unsure\" where the owner is asked itself: it " +
			"has taken the address over and has not answered a question since, or the owner of an IPv6 address has " +
			"not said itself whether it is a router, so that it is asked.\n\n" +
			"The counts below are of each switch: requests ANSWERED, kept for guests of this host alone (HERE), and " +
			"HELD BACK, as one MAC asked too often; packets SPOOFED, whose sender names another MAC than its own; " +
			"new addresses UNBOUND, as one MAC had too many in a second; and claims to addresses of others " +
			"(CONTESTED).",
		Example: "  heddle segment neighbours\n  heddle segment neighbours 5000 --contested\n" +
			"  heddle segment neighbours --address 192.0.2.7 --controller https://ctl1:7443\n" +
			"  heddle segment neighbours 5000 --whose port -o json",
		Args: cli.AtMost("VNI or PORT-GROUP"),
	}
	t.Flags(d, c)
	ask := t.Looking(d, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		q.Whose = api.NeighbourOwner(whose)
		if err := errors.Join(o.Check(), checkNeighbours(&q)); err != nil {
			return err
		}
		return showNeighbours(d, c, ask, o, &q, args)
	}
	o.Flag(c)
	f := c.Flags()
	f.StringVar(&q.Switch, "switch", "", "only of this switch")
	f.StringVar(&q.Address, "address", "", "only this IP address")
	f.StringVar(&q.MAC, "mac", "", "only addresses that this MAC has, or claims")
	f.StringVar(&whose, "whose", "", "only what is known that way: "+cli.AnyOf(ownerWords()))
	f.BoolVar(&q.Contested, "contested", false, "only addresses that two MACs claim")
	f.Uint32Var(&q.Limit, "limit", api.NeighbourLimit, fmt.Sprintf("how many to show, 1 to %d", api.MaxNeighbours))
	_ = c.RegisterFlagCompletionFunc("whose", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return ownerWords(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

func ownerWords() (words []string) {
	for _, w := range api.NeighbourOwners() {
		words = append(words, string(w))
	}
	return words
}

// checkNeighbours checks a query, and writes its addresses as the agent does.
func checkNeighbours(q *api.NeighbourQuery) (err error) {
	if q.Whose != "" && !slices.Contains(api.NeighbourOwners(), q.Whose) {
		return cli.Usagef("--whose %q: use %s", q.Whose, cli.AnyOf(ownerWords()))
	}
	if q.Limit < 1 || q.Limit > api.MaxNeighbours {
		return cli.Usagef("--limit %d: it is 1–%d", q.Limit, api.MaxNeighbours)
	}
	if q.Address != "" {
		a, err := netip.ParseAddr(q.Address)
		if err != nil || a.Zone() != "" {
			return cli.Usagef("--address %q is no IP address, such as 192.0.2.7 or 2001:db8::7", q.Address)
		}
		q.Address = a.Unmap().String()
	}
	if q.MAC != "" {
		q.MAC, err = cli.ParseMAC(q.MAC)
	}
	return err
}

func showNeighbours(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, q *api.NeighbourQuery,
	args []string) error {
	if err := chooseSegment(c, t, q, args); err != nil {
		return err
	}
	one := func(t *cli.Target) (*api.Neighbours, error) {
		if err := t.Has(c, q.Switch, ""); err != nil {
			return nil, err
		}
		return cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Neighbours, error) {
			return s.Neighbours(ctx, *q)
		})
	}
	all, err := t.Everywhere()
	if err != nil {
		return err
	}
	if !all {
		n, err := one(t)
		if err != nil {
			return err
		}
		return o.Print(d, n, neighbourTables([]cli.Said[*api.Neighbours]{{Answer: n}}, false))
	}
	list, away, err := cli.AskHosts(c, t, one)
	if err != nil {
		return err
	}
	shown := []cli.Hosted[*api.Neighbours]{}
	for _, s := range list {
		shown = append(shown, cli.Hosted[*api.Neighbours]{Host: s.Host, Of: s.Answer})
	}
	return errors.Join(o.Print(d, shown, neighbourTables(list, true)), away.Report(d))
}

// chooseSegment takes in which segment the arguments name.
func chooseSegment(c *cobra.Command, t *cli.Target, q *api.NeighbourQuery, args []string) error {
	if len(args) == 0 {
		return nil
	}
	vni, number, err := numberOfVNI(args[0])
	if number {
		q.VNI = vni
		return err
	}
	f, err := t.Fleet()
	if err != nil {
		return err
	}
	if f == nil {
		return cli.Usagef("%q is no VNI: a host knows segments by their VNI alone; with --controller it can be a port "+
			"group", args[0])
	}
	ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
	defer cancel()
	q.VNI, err = vniOf(ctx, f, args[0])
	return err
}

// neighbourTables shows who has which address as hosts know it; hosts says that the rows have their names.
func neighbourTables(all []cli.Said[*api.Neighbours], hosts bool) func(io.Writer) error {
	return func(w io.Writer) error {
		known, counts := neighbourTable(), neighbourCountTable()
		claimed := func(b api.BoundAddress) bool { return b.Contested && b.Rival != "" }
		if !slices.ContainsFunc(all, func(s cli.Said[*api.Neighbours]) bool {
			return slices.ContainsFunc(s.Answer.Neighbours, claimed)
		}) {
			cli.LeaveOut("ALSO CLAIMED BY")(known)
		}
		if hosts {
			known.WithHosts()
			counts.WithHosts()
		}
		leftOff := uint32(0)
		for _, s := range all {
			leftOff += s.Answer.LeftOff
			for i := range s.Answer.Neighbours {
				known.AddOf(s.Host, hosts, neighbourRow(&s.Answer.Neighbours[i])...)
			}
			for _, n := range s.Answer.Counts {
				counts.AddOf(s.Host, hosts, n.Switch, count(n.Answered), count(n.Here), count(n.HeldBack),
					count(n.Spoofed), count(n.Unbound), count(n.Contested))
			}
		}
		if len(counts.Rows) == 0 {
			_, err := fmt.Fprintln(w, "no switch answers ARP and neighbour discovery: none has overlay segments in "+
				"which it does")
			return err
		}
		err := known.Write(w)
		if leftOff > 0 {
			_, more := fmt.Fprintf(w, "and %d more: see --limit and the other flags\n", leftOff)
			err = errors.Join(err, more)
		}
		fmt.Fprintln(w)
		return errors.Join(err, counts.Write(w))
	}
}

func neighbourTable() *cli.Table {
	head := []string{"SWITCH", "VLAN", "ADDRESS", "MAC", "WHOSE", "BEHIND", "AGE", "STATE", "ALSO CLAIMED BY"}
	return &cli.Table{Head: head, Right: cli.Columns(head, "AGE"), Keep: cli.Columns(head, "MAC", "AGE"),
		Names:  cli.Columns(head, "SWITCH", "ADDRESS", "BEHIND"),
		Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH")}}
}

func neighbourCountTable() *cli.Table {
	head := []string{"SWITCH", "ANSWERED", "HERE", "HELD BACK", "SPOOFED", "UNBOUND", "CONTESTED"}
	return &cli.Table{Head: head, Right: cli.Columns(head, head[1:]...), Keep: cli.Columns(head, head[1:]...),
		Names: cli.Columns(head, "SWITCH")}
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func neighbourRow(b *api.BoundAddress) []string {
	state, rival := "-", "-"
	switch {
	case b.Contested:
		state, rival = "contested", cli.Dash(b.Rival)
	case b.Unsure:
		state = "unsure"
	}
	return []string{b.Switch, b.VLAN.String(), b.Address, b.MAC, string(b.Whose), cli.Dash(b.Port + b.Endpoint),
		times.Age(time.Duration(b.AgeSeconds * float64(time.Second))), state, rival}
}
