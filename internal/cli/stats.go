package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newStats(d Deps) *cobra.Command {
	t, o := &target{}, &output{}
	var sw string
	var zero bool
	c := &cobra.Command{
		Use: "stats [PORT]", Short: "Show the counters of ports and uplinks",
		Long: "Show the counters of all ports and uplinks, one line each, or all counters of one: the 18 of a distributed switch under their\n" +
			"names, frames dropped and copies refused by reason. In is from the port's owner into the switch. Counters that are 0 are left\n" +
			"out of tables unless --zero is given. Frames to a guest in another namespace do not show in the host device's own counters.",
		Example: "  heddle stats\n  heddle stats vm1/eth0\n  heddle stats vm1/eth0 -o json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes at most one PORT; %d given", c.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			all, err := ask(c, t, func(ctx context.Context, s api.Service) ([]api.Stats, error) { return s.Stats(ctx) })
			if err != nil {
				return err
			}
			all = ofSwitch(all, sw, func(s api.Stats) string { return s.Switch })
			if len(args) == 0 {
				return o.print(d, all, func(w io.Writer) error { return statsTable(w, all) })
			}
			s, err := pick(all, "port", args[0], "", func(s api.Stats) (string, string) { return s.Switch, s.Name })
			if err != nil {
				return err
			}
			return o.print(d, s, func(w io.Writer) error { return statsOne(w, s, zero) })
		},
	}
	t.flags(d, c)
	o.flag(c)
	switchFlag(c, &sw)
	c.Flags().BoolVar(&zero, "zero", false, "show counters that are 0, too")
	return c
}

// sum adds the counters whose name begins with prefix and ends with a class of frames.
func sum(s api.Stats, prefix string) uint64 {
	var n uint64
	for _, c := range s.Counters {
		switch strings.TrimPrefix(c.Name, prefix) {
		case "Unicast", "Multicast", "Broadcast":
			n += c.Value
		}
	}
	return n
}

func counter(s api.Stats, name string) uint64 {
	for _, c := range s.Counters {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}

func statsTable(w io.Writer, all []api.Stats) error {
	tab := &table{head: []string{"SWITCH", "PORT", "PACKETS IN", "BYTES IN", "PACKETS OUT", "BYTES OUT", "IN DROPPED", "OUT DROPPED"},
		right: map[int]bool{2: true, 3: true, 4: true, 5: true, 6: true, 7: true}, keep: map[int]bool{2: true, 3: true, 4: true, 5: true, 6: true, 7: true}}
	for _, s := range all {
		text := func(n uint64) string { return strconv.FormatUint(n, 10) }
		tab.add(s.Switch, s.Name, text(sum(s, "packetsIn")), text(sum(s, "bytesIn")), text(sum(s, "packetsOut")), text(sum(s, "bytesOut")),
			text(counter(s, "packetsInDropped")+counter(s, "packetsInException")), text(counter(s, "packetsOutDropped")+counter(s, "packetsOutException")))
	}
	return tab.write(w)
}

func statsOne(w io.Writer, s api.Stats, zero bool) error {
	what := "port"
	if s.Uplink {
		what = "uplink"
	}
	if _, err := fmt.Fprintf(w, "%s %s of switch %s\n\n", what, s.Name, s.Switch); err != nil {
		return err
	}
	tab := &table{head: []string{"COUNTER", "VALUE"}, right: map[int]bool{1: true}}
	for _, c := range append(append([]api.Counter{}, s.Counters...), s.Extra...) {
		if c.Value > 0 || zero {
			tab.add(c.Name, strconv.FormatUint(c.Value, 10))
		}
	}
	for _, r := range s.Drops {
		tab.add("dropped, "+r.Reason, strconv.FormatUint(r.Value, 10))
	}
	for _, r := range s.Refused {
		tab.add("refused, "+r.Reason, strconv.FormatUint(r.Value, 10))
	}
	if len(tab.rows) == 0 {
		_, err := fmt.Fprintln(w, "all counters are 0 (--zero shows them)")
		return err
	}
	return tab.write(w)
}
