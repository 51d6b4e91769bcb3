package events

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe/event"
)

// eventFilter says which events are wanted.
type eventFilter struct {
	kinds     []string
	port      string
	sw        string
	portGroup string
	severity  string
	hosts     []string
	since     time.Duration

	from time.Time // since as a time; zero for any
	// groups are the port groups of ports.
	groups groupsOfPorts
}

func (f *eventFilter) flags(c *cobra.Command) {
	set := c.Flags()
	set.StringSliceVar(&f.kinds, "kind", nil, "only events of these kinds")
	set.StringVar(&f.port, "port", "", "only events of this port or uplink")
	set.StringVar(&f.sw, "switch", "", "only events of this switch")
	set.StringVar(&f.portGroup, "port-group", "", "only events of ports that are in this port group now")
	set.StringVar(&f.severity, "severity", "", "only events of this severity and above: "+cli.AnyOf(severities()))
	set.StringSliceVar(&f.hosts, "hosts", nil, "only events of these hosts; * stands for any letters")
	set.DurationVar(&f.since, "since", 0, "past events of this long ago and newer, such as 1h or 30d")
	for name, words := range map[string][]string{"kind": eventKinds(), "severity": severities()} {
		_ = c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string,
			cobra.ShellCompDirective) {
			return words, cobra.ShellCompDirectiveNoFileComp
		})
	}
}

func severities() (words []string) {
	for _, s := range event.Severities() {
		words = append(words, string(s))
	}
	return words
}

// begin checks the flags. With --since all that is kept of that time is wanted, unless --last says how many.
func (f *follower) begin(c *cobra.Command) error {
	for _, k := range f.kinds {
		if !slices.Contains(eventKinds(), k) {
			return cli.Usagef("there is no kind of event %q: the kinds are %s", k, strings.Join(eventKinds(), ", "))
		}
	}
	if f.severity != "" && !slices.Contains(severities(), f.severity) {
		return cli.Usagef("--severity %s: use %s", f.severity, cli.AnyOf(severities()))
	}
	for _, h := range f.hosts {
		if _, err := path.Match(h, ""); err != nil {
			return cli.Usagef("--hosts %s: write names, or patterns such as 'esx1*'", h)
		}
	}
	if f.since < 0 {
		return cli.Usagef("--since %s: give how long ago, such as 1h", f.since)
	}
	if f.since > 0 {
		f.from = time.Now().Add(-f.since)
		if !c.Flags().Changed("last") {
			f.last = -1
		}
	}
	return nil
}

// some reports whether not all events are wanted: then the last few of a host may be none of them.
func (f *eventFilter) some() bool {
	return len(f.kinds) > 0 || f.port != "" || f.sw != "" || f.portGroup != "" || f.severity != "" || !f.from.IsZero()
}

// ofHost reports whether events of a host are wanted.
func (f *eventFilter) ofHost(name string) bool {
	return len(f.hosts) == 0 || slices.ContainsFunc(f.hosts, func(pattern string) bool {
		fits, err := path.Match(pattern, name)
		return err == nil && fits
	})
}

// wanted reports whether an event of a host is wanted, whose port groups are looked up there.
func (f *eventFilter) wanted(e event.Event, host string) bool {
	if len(f.kinds) > 0 && !slices.Contains(f.kinds, string(e.Kind)) || f.port != "" && !f.concerns(e) ||
		f.sw != "" && e.Switch != f.sw || e.Time.Before(f.from) {
		return false
	}
	if f.severity != "" && slices.Index(severities(), string(e.Severity())) < slices.Index(severities(), f.severity) {
		return false
	}
	return f.portGroup == "" || f.groups.of(host, e.Port) == f.portGroup
}

// concerns reports whether an event is about the requested port or uplink.
func (f *eventFilter) concerns(e event.Event) bool {
	return slices.Contains([]string{e.Port, e.Uplink, e.From, e.To}, f.port)
}

// groupsOfPorts remembers which port groups the ports of hosts are in.
type groupsOfPorts struct {
	mu sync.Mutex
	at map[string]map[string]string // by host and port
}

// of is the port group of a port, "" where it is not known.
func (g *groupsOfPorts) of(host, port string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at[host][port]
}

// learn reads the port groups of a host's ports where some of these events are of a port whose group is not known, or
// of one that may have changed its group. A host that does not answer is asked with the next events.
func (g *groupsOfPorts) learn(ctx context.Context, client api.Service, host string, events []event.Event) {
	if !slices.ContainsFunc(events, func(e event.Event) bool {
		return e.Port != "" && (g.of(host, e.Port) == "" || e.Kind == event.Applied || e.Kind == event.Connected)
	}) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
	defer cancel()
	s, err := client.State(ctx)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil {
		g.at = map[string]map[string]string{}
	}
	if g.at[host] == nil {
		g.at[host] = map[string]string{}
	}
	for _, p := range s.Ports { // those that are gone keep the group that they had
		g.at[host][p.Name] = p.PortGroup
	}
}
