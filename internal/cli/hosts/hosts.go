package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func New(d cli.Deps) *cobra.Command {
	c := cli.Group("host", "Hosts of a cluster: join, leave, list",
		"  heddle host join controller1:7411 --token-file token\n  heddle host show esx1\n  heddle host list")
	c.Long =
		"A host joins a cluster of controllers by a token. From then on it has the distributed switches that the " +
			"controllers define for it, beside those of its own file. While no controller answers it goes on by what " +
			"it has."
	c.AddCommand(newHostJoin(d), newHostHandOver(d), newHostLeave(d), newHostShow(d), newHostList(d), newHostRemove(d),
		newHostRetry(d), newHostSync(d), newHostToken(d), newHostDrain(d))
	return c
}

func newHostJoin(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	var q api.Join
	var a adopting
	var token joinToken
	c := &cobra.Command{
		Use: "join HOST:PORT", Short: "Make this host part of a cluster",
		Long: "Make this host part of the cluster of the controller at HOST:PORT. The token is made by \"heddle host " +
			"token\" at a controller; it is used up. What the host has by its own file stays.\n\nA host that is part " +
			"of a cluster and finds none of its controllers any more, as they have other addresses, is told one of " +
			"these by the same command: it needs no token then, and learns the others by itself.\n\n--adopt is the " +
			"one step for a host that runs by its file already: it joins, shows what would change, asks, and hands " +
			"its switches over.",
		Example: "  heddle host join controller1:7411 --token-file token\n" +
			"  heddle host join controller1:7411 --token-file - --adopt    # and paste it\n" +
			"  heddle host join controller1:7411    # the controllers have other addresses",
		Args: cli.Exactly("HOST:PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if err := a.check(d); err != nil {
				return err
			}
			var err error
			if q.Token, err = token.read(c.Context(), d); err != nil {
				return err
			}
			q.Controller = args[0]
			if q.Token == "" {
				if m, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
					return s.Membership(ctx)
				}); err != nil || !m.Member {
					return cli.Usagef("a token is needed (--token-file): make one at a controller with \"heddle host " +
						"token\"")
				}
			}
			m, err := joinOnce(c, t, q)
			if err != nil {
				return cli.Interrupted(c, err, "the host may be part of the cluster already (heddle host show): "+
					"repeat the command, with the same token")
			}
			if a.adopt {
				return cli.Interrupted(c, a.run(d, c, t, o, m), fmt.Sprintf("this host is %s of cluster %s, and its "+
					"switches are handed over as a whole or not at all: repeat the command, or heddle host leave",
					m.Name, m.Cluster))
			}
			return o.Print(d, m, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "this host is %s of cluster %s\n", m.Name, m.Cluster)
				return err
			})
		},
	}
	token.flags(d, c)
	c.Flags().StringVar(&q.Name, "name", "", "name of the host in the cluster (default: the host's name)")
	c.Flags().BoolVar(&q.Replace, "replace", false, "take the place of a host that was installed anew,\nwith a token "+
		"for that (heddle host token --replace)")
	a.flags(c)
	o.Flag(c)
	t.Flags(d, c)
	return c
}

// joinOnce makes the host part of a cluster, unless it is part of that one already: by a command that was interrupted.
func joinOnce(c *cobra.Command, t *cli.Target, q api.Join) (*api.Membership, error) {
	return cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
		m, err := s.Membership(ctx)
		if err == nil && m.Connected != "" && !q.Replace && slices.Contains(m.Controllers, q.Controller) &&
			(q.Name == "" || q.Name == m.Name) {
			return m, nil
		}
		return s.Join(ctx, q)
	})
}

func newHostLeave(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	c := &cobra.Command{
		Use: "leave", Short: "Take this host out of its cluster, without a change for its guests",
		Long: "Take this host out of its cluster. What the controllers declared here becomes the host's own " +
			"configuration (\"heddle config show\"), so that nothing changes for its guests. The controllers still " +
			"list the " +
			"host until \"heddle host remove\".",
		Example: "  heddle host leave", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			m, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.Membership, error) {
				return s.Leave(ctx)
			})
			if err != nil {
				return cli.Interrupted(c, err, "the host has left its cluster as a whole or not at all (heddle host "+
					"show): "+
					"repeat the command")
			}
			return o.Print(d, m, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "this host has left cluster %s; its configuration goes on (heddle config "+
					"show)\n",
					m.Cluster)
				return err
			})
		},
	}
	o.Flag(c)
	t.Flags(d, c)
	return c
}

// hostPortTexts are host ports with their addresses: "vmk0 192.0.2.1/24".
func hostPortTexts(list []api.DefinedHostPort) []string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.Name + " " + cli.Dash(strings.Join(p.Addresses, ", "))
	}
	return texts
}

func printMembership(w io.Writer, m *api.Membership) error {
	if !m.Member {
		text := "this host is in no cluster: heddle host join makes it part of one"
		if m.Error != "" {
			text = m.Error
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
	lines := [][2]string{{"host", m.Name}, {"cluster", m.Cluster}, {"controllers", strings.Join(m.Controllers, ", ")},
		{"connected to", cmp.Or(m.Connected, "none: "+m.Error)}, {"since", m.Since.Local().Format(time.DateTime)},
		{"revision", fmt.Sprintf("%d (epoch %d)", m.Revision, m.Epoch)},
		{"switches", cli.Dash(strings.Join(m.Switches, ", "))},
		{"host ports", cli.Dash(strings.Join(hostPortTexts(m.HostPorts), "; "))},
		{"certificate", "until " + m.Expires.Local().Format(time.DateTime)}}
	for _, k := range m.Kept {
		lines = append(lines, [2]string{"kept", fmt.Sprintf("port group %s/%s of revision %d, for %s", k.Switch,
			k.PortGroup, k.Revision, strings.Join(k.Ports, ", "))})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%-13s %s\n", l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

func newHostList(d cli.Deps) *cobra.Command {
	t, o := &cli.FleetTarget{}, &cli.Output{}
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the hosts of the cluster",
		Long: "List the hosts of the cluster. STATE is up (the newest definition is active there), pending (it was " +
			"sent " +
			"and not answered yet), out-of-sync (the host cannot activate it; PROBLEM says why), reverted (it cut " +
			"the host off from its controllers, and the host went back), down (no uplink of one of its switches is " +
			"up, so that the guests there are cut off), warning, or disconnected: then the host goes on by what it " +
			"has. REVISION is that of the definition which is active " +
			"there.",
		Example: "  heddle host list\n  heddle host list -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			list, err := cli.AskFleet(c, t, 0, listHosts)
			if err != nil {
				return err
			}
			return o.Print(d, list, func(w io.Writer) error {
				return errors.Join(hostTable(list.FleetHosts).Write(w),
					cli.PrintFleetNotes(w, list.Unreachable, list.Stale), cli.PrintFaults(w, list.Wrong))
			})
		},
	}
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}

// hostList is the list of hosts, and what is wrong with the cluster besides.
type hostList struct {
	*api.FleetHosts
	Wrong []api.HealthFinding `json:"wrong,omitempty"`
}

func listHosts(ctx context.Context, f *api.Fleet) (*hostList, error) {
	wrong := cli.AskFaults(ctx, f, false)
	hosts, err := f.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	return &hostList{hosts, wrong()}, nil
}

func hostTable(list *api.FleetHosts) *cli.Table {
	head := []string{"HOST", "STATE", "SINCE", "REVISION", "PORTS", "AGENT", "LABELS", "PROBLEM"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "REVISION", "PORTS"),
		Keep: cli.Columns(head, "STATE", "REVISION", "PORTS"), Names: cli.Columns(head, "HOST")}
	if list.Controllers > 1 {
		return hostsByController(list)
	}
	for _, h := range list.Hosts {
		tab.Add(h.Name, string(h.State), h.Since.Local().Format(time.DateTime), strconv.FormatInt(h.Revision, 10),
			strconv.Itoa(h.Ports), cli.Dash(h.Agent), cli.Dash(labelText(h.Labels)), cli.Dash(strings.Join(h.Problems,
				"; ")))
	}
	return tab
}

// hostsByController is the table of hosts where there are several controllers.
func hostsByController(list *api.FleetHosts) *cli.Table {
	head := []string{"HOST", "STATE", "SINCE", "CONTROLLER", "REVISION", "PORTS", "AGENT", "LABELS", "PROBLEM"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "REVISION", "PORTS"), Keep: cli.Columns(head, "STATE",
		"REVISION",
		"PORTS"), Names: cli.Columns(head, "HOST", "CONTROLLER")}
	for _, h := range list.Hosts {
		tab.Add(h.Name, string(h.State), h.Since.Local().Format(time.DateTime), cli.Dash(h.Controller),
			strconv.FormatInt(h.Revision, 10), strconv.Itoa(h.Ports), cli.Dash(h.Agent), cli.Dash(labelText(h.Labels)),
			cli.Dash(strings.Join(h.Problems, "; ")))
	}
	return tab
}

func labelText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

// RemovedHost is what "heddle host remove" did.
type RemovedHost struct {
	Name string `json:"name"`
}

func newHostRemove(d cli.Deps) *cobra.Command {
	t, o := &cli.FleetTarget{}, &cli.Output{}
	c := &cobra.Command{
		Use: "remove HOST", Aliases: []string{"rm"}, Short: "Take a host out of the cluster, at a controller",
		Long: "Take a host out of the cluster: no controller answers its certificate any more. The host goes on by " +
			"what it has; \"heddle host leave\" there makes that its own configuration.",
		Example: "  heddle host remove esx1", Args: cli.Exactly("HOST"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if _, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (struct{}, error) {
				return struct{}{}, f.RemoveHost(ctx, args[0])
			}); err != nil {
				return err
			}
			return o.Print(d, RemovedHost{args[0]}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "host %s is no longer part of the cluster\n", args[0])
				return err
			})
		},
	}
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}

func newHostToken(d cli.Deps) *cobra.Command {
	t, o := &cli.FleetTarget{}, &cli.Output{}
	q := api.JoinTerms{}
	c := &cobra.Command{
		Use: "token", Short: "Make a token by which one host may join, at a controller",
		Long: "Make a token by which one host may join the cluster. It is shown this once, can be used once, and " +
			"names " +
			"the cluster, so that the host knows whom it joins. It makes a host beside those that there are; with " +
			"--replace it takes the place of the host that it names, whose certificates count no more then.",
		Example: "  heddle host token --label rack=a\n  heddle host token --lasts 10m\n" +
			"  heddle host token --replace esx1    # esx1 was installed anew", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if q.Lasts <= 0 {
				return cli.Usagef("--lasts %s: a token can be used for some time, such as 1h", q.Lasts)
			}
			token, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.JoinToken, error) {
				return f.JoinToken(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, token, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, token.Token)
				return err
			})
		},
	}
	c.Flags().StringToStringVar(&q.Labels, "label", nil, "a label that the host gets, NAME=VALUE; may be repeated")
	c.Flags().DurationVar(&q.Lasts, "lasts", time.Hour, "how long the token can be used")
	c.Flags().StringVar(&q.Replaces, "replace", "", "the host whose place is taken, with its labels if none are given")
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}
