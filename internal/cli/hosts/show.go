package hosts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// HostSummary is what a controller and the host itself say of one host.
type HostSummary struct {
	Host api.FleetHost `json:"host"`
	// Newest is the revision of the definition: the host has another one where Host.Revision is not this.
	Newest int64           `json:"newestRevision"`
	Ports  []api.FleetPort `json:"ports"`
	// Network is what the host knows of the physical network and its tunnels; null where it does not answer, and Silent
	// says why.
	Network *api.HostHealth `json:"network"`
	Silent  string          `json:"silent,omitempty"`
	// Stale says why all of it may be old; "" where it is current.
	Stale string `json:"stale,omitempty"`
}

func newHostShow(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	var where *cli.Target
	c := &cobra.Command{
		Use: "show [HOST]", Short: "Show one host of a cluster, or which cluster this host is in",
		Long: "Show one host of a cluster, at a controller: how it follows the definition, its agent, its switches " +
			"with their uplinks, host ports and ports, its tunnels, and what is wrong. Without HOST and " +
			"--controller it shows which cluster this host is in, as its own agent knows it.",
		Example: "  heddle host show esx1\n  heddle host show esx1 --context lab -o json\n" +
			"  heddle host show     # this host",
		Args: cli.AtMost("HOST"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if len(args) > 0 {
				if where.Host != "" && where.Host != args[0] {
					return cli.Usagef("the host is %s or %s: name one", args[0], where.Host)
				}
				where.Host = args[0]
			}
			asked := where.Set.Changed("controller") || where.Set.Changed("context")
			switch _, err := where.Fleet(); {
			case err != nil:
				return err
			case where.Host != "":
				return showHost(c, d, where, o)
			case asked:
				return cli.Usagef("this shows one host of a cluster: name it (heddle host list)")
			}
			m, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
				return s.Membership(ctx)
			})
			if err != nil {
				return err
			}
			return o.Print(d, m, func(w io.Writer) error { return printMembership(w, m) })
		},
	}
	o.Flag(c)
	t.Flags(d, c)
	where = t.Looking(d, c)
	return c
}

// showHost shows one host of the cluster.
func showHost(c *cobra.Command, d cli.Deps, t *cli.Target, o *cli.Output) error {
	s, err := cli.AskFleet(c, t.Controllers(), 0, func(ctx context.Context, f *api.Fleet) (*HostSummary, error) {
		return summaryOf(ctx, f, t.Host)
	})
	if err != nil {
		return err
	}
	return o.Print(d, s, func(w io.Writer) error { return printHost(w, s) })
}

// summaryPatience bounds how long one host may take to say what it knows of the network: what the controller knows is
// shown without it.
const summaryPatience = 5 * time.Second

// summaryOf asks the controller, and by way of it the host.
func summaryOf(ctx context.Context, f *api.Fleet, name string) (*HostSummary, error) {
	list, err := f.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list.Hosts, func(h api.FleetHost) bool { return h.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the cluster has no host %q: see heddle host list", name)
	}
	s := &HostSummary{Host: list.Hosts[i], Newest: list.Revision, Stale: list.Stale}
	if s.Ports, err = f.Ports(ctx, api.FleetPortQuery{Host: name}); err != nil {
		return nil, err
	}
	if s.Host.State == api.HostDisconnected {
		s.Silent = "it is not connected to a controller"
		return s, nil
	}
	asking, cancel := context.WithTimeout(ctx, summaryPatience)
	defer cancel()
	if s.Network, err = f.Host(name).NetworkHealth(asking); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.Network, s.Silent = nil, err.Error()
	}
	return s, nil
}

func printHost(w io.Writer, s *HostSummary) error {
	h := s.Host
	state := string(h.State)
	if !h.Since.IsZero() {
		state += ", since " + h.Since.Local().Format(time.DateTime)
	}
	if h.Stale {
		state += " (its controller does not answer: this is old)"
	}
	lines := [][2]string{{"host", h.Name}, {"state", state}, {"labels", cli.Dash(labelText(h.Labels))},
		{"agent", cli.Dash(h.Agent)}, {"address", cli.Dash(h.Address)}, {"controller", cli.Dash(h.Controller)},
		{"revision", revisionText(s)}, {"ports", portsText(s.Ports)},
		{"host ports", cli.Dash(strings.Join(hostPortTexts(h.HostPorts), "; "))}}
	for _, sw := range h.Switches {
		lines = append(lines, [2]string{"switch", switchText(sw)})
	}
	lines = append(lines, [2]string{"tunnels", hostTunnelsText(s)})
	for _, alert := range alertsOf(s) {
		lines = append(lines, [2]string{"alert", alert})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%-13s %s\n", l[0], printable.Text(l[1])); err != nil {
			return err
		}
	}
	return nil
}

// revisionText says which revision a host has, and what to do where it is not the newest.
func revisionText(s *HostSummary) string {
	if s.Host.Revision == s.Newest {
		return fmt.Sprintf("%d, the newest", s.Newest)
	}
	return fmt.Sprintf("%d; the newest is %d (heddle host sync %s --dry-run)", s.Host.Revision, s.Newest, s.Host.Name)
}

// portsText counts ports by their states.
func portsText(list []api.FleetPort) string {
	by := map[string]int{}
	for _, p := range list {
		by[p.State]++
	}
	parts := []string{fmt.Sprint(len(list))}
	for _, state := range slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", by[state], cli.Dash(state)))
	}
	return strings.Join(parts, ", ")
}

// switchText is a switch with its uplinks.
func switchText(sw api.HostSwitch) string {
	var uplinks []string
	for _, u := range sw.Uplinks {
		text := u.Name + " " + cli.Dash(u.Device) + " " + string(u.State)
		if u.Reason != "" {
			text += " (" + u.Reason + ")"
		}
		uplinks = append(uplinks, text)
	}
	return sw.Name + ": " + cmp.Or(strings.Join(uplinks, ", "), "no uplinks")
}

// hostTunnelsText says how many tunnels to other hosts pass.
func hostTunnelsText(s *HostSummary) string {
	switch n := s.Network; {
	case n == nil:
		return "not known: " + s.Silent
	case n.Tunnels == 0:
		return "none is probed"
	default:
		return fmt.Sprintf("%d of %d pass, %d are not known yet", n.TunnelsPassing, n.Tunnels, n.TunnelsWaiting)
	}
}

// alertsOf are what is wrong with a host, a line each.
func alertsOf(s *HostSummary) (list []string) {
	list = slices.Concat(s.Host.Problems, s.Host.Unknown)
	for _, sw := range s.Host.Switches {
		if sw.Isolated != "" && !slices.Contains(list, sw.Isolated) {
			list = append(list, sw.Isolated)
		}
	}
	if s.Network != nil {
		for _, f := range s.Network.Findings {
			list = append(list, f.Text)
		}
	}
	if s.Stale != "" {
		list = append(list, s.Stale)
	}
	return list
}
