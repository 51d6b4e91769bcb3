package diagnose

import (
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
	times "heddle/internal/spec/period"
	"heddle/internal/spec/printable"
)

func NewAdvise(d cli.Deps) *cobra.Command {
	t, o, q := &cli.Target{}, &cli.Output{}, api.AdviseRequest{}
	c := &cobra.Command{
		Use: "advise", Short: "Find misconfigurations by live measurements, and their fix",
		Long: "Find misconfigurations from the plan, the counters, the MAC tables, the events and what LACP and " +
			"LLDP report. Each finding has the measured sign, its consequence, and the command or the lines of " +
			"the configuration that fix it. Nothing is changed.\n\n" +
			"Without --for it uses the counters since each port was connected and the rates of half a second, and " +
			"shows what was seen in the last 10 minutes. --since shows what was seen in a longer or shorter time, " +
			"--all also what was seen before that. Once a setting that caused a finding is changed, what was " +
			"counted before counts no more. With --for it measures from now on, for that long.\n\n" +
			"With --controller all hosts of a cluster are asked at the same time: each finding has the host's name, " +
			"and findings that are alike on several hosts are shown as one.\n\n" +
			"The exit status is 1 when something that is shown is wrong, or a host or a controller does not answer; " +
			"notes leave it 0.",
		Example: "  heddle advise\n  heddle advise --since 24h\n  heddle advise --for 10s\n  heddle advise " +
			"--all -o json\n  heddle advise --controller controller1",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if q.For < 0 || q.For > api.MaxAdviseFor {
				return cli.Usagef("--for %v: it is a time from 0 to %v, such as 10s", q.For, api.MaxAdviseFor)
			}
			if err := adviceOf(c, &q); err != nil {
				return err
			}
			if all, err := t.Everywhere(); err != nil || all {
				if err != nil {
					return err
				}
				return adviseAll(c, d, t, o, q)
			}
			a, err := advice(c, t, q)
			if err != nil {
				return err
			}
			if err := o.Print(d, a, func(w io.Writer) error { return WriteAdvice(w, d, a, time.Now()) }); err != nil {
				return err
			}
			if !a.Healthy() {
				return &cli.SilentError{Status: cli.ExitFailure}
			}
			return nil
		},
	}
	t.Flags(d, c)
	t = t.Looking(d, c)
	o.Flag(c)
	c.Flags().DurationVar(&q.For, "for", 0, "measure from now on, for this long; 0 uses the counters so far")
	c.Flags().DurationVar(&q.Since, "since", api.AdviseSince, "show what was seen in this time")
	c.Flags().BoolVar(&q.All, "all", false, "show every finding, however long ago it was seen")
	return c
}

// adviceOf checks that the times of a request do not contradict each other.
func adviceOf(c *cobra.Command, q *api.AdviseRequest) error {
	since := c.Flags().Changed("since")
	switch {
	case q.Since <= 0:
		return cli.Usagef("--since %v: it is a time above 0, such as 24h", q.Since)
	case since && q.All:
		return cli.Usagef("--all shows findings of any time: leave out --since")
	case q.For > 0 && (since || q.All):
		return cli.Usagef("--for shows what is seen from now on: leave out --since and --all")
	}
	return nil
}

// advice asks the agent for findings; the agent measures for a time before it answers.
func advice(c *cobra.Command, t *cli.Target, q api.AdviseRequest) (*api.Advice, error) {
	client, err := t.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Bound(c), q.For+cli.CallTimeout)
	defer cancel()
	return client.Advise(ctx, q)
}

// WriteAdvice writes findings for people; times are shown relative to now.
func WriteAdvice(w io.Writer, d cli.Deps, a *api.Advice, now time.Time) error {
	var b strings.Builder
	for i := range a.Findings {
		writeAlike(&b, d, []cli.Hosted[api.Finding]{{Of: a.Findings[i]}}, now)
	}
	writeMore(&b, a.More)
	fmt.Fprintf(&b, "%s. Checked %s on %s and %s.\n", findingsFound(len(a.Findings)),
		printable.Count(a.Rules, "rule", "rules"),
		printable.Count(a.Ports, "port", "ports"), printable.Count(a.Uplinks, "uplink", "uplinks"))
	writeBounds(&b, a.MeasuredSeconds, a.SinceSeconds, a.Older)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeMore says how many findings of which rules were left out.
func writeMore(b *strings.Builder, more map[string]int) {
	for _, rule := range slices.Sorted(maps.Keys(more)) {
		fmt.Fprintf(b, "and %d more of %s\n\n", more[rule], rule)
	}
}

func findingsFound(n int) string {
	if n == 0 {
		return "No problems found"
	}
	return printable.Count(n, "finding", "findings")
}

// writeBounds says of which time the findings are.
func writeBounds(b *strings.Builder, measured, since float64, older int) {
	period := "since each port was connected"
	if measured > 0 {
		period = "of the last " + time.Duration(measured*float64(time.Second)).Round(100*time.Millisecond).String()
	}
	fmt.Fprintf(b, "The counters are those %s.\n", period)
	if older > 0 {
		fmt.Fprintf(b, "%s not seen in the last %s; heddle advise --all shows %s.\n",
			printable.Count(older, "older finding was", "older findings were"),
			times.Age(time.Duration(since*float64(time.Second))),
			map[bool]string{true: "it", false: "them"}[older == 1])
	}
}

// writeAlike writes findings that are alike, each of another host, or one of this host: what and where, then the
// signs, the consequence, and the remedy, each wrapped. Commands and lines of the configuration are never broken.
func writeAlike(b *strings.Builder, d cli.Deps, alike []cli.Hosted[api.Finding], now time.Time) {
	f, hosts := &alike[0].Of, make([]string, len(alike))
	var parts [][2]string
	for i, h := range alike {
		hosts[i] = h.Host
		of := ""
		if len(alike) > 1 {
			of = h.Host + ": "
		}
		parts = append(parts, [2]string{"measured:", of + h.Of.Sign}, [2]string{"seen:", seenText(&h.Of, now)})
	}
	where := f.Object()
	if f.Switch != "" && !strings.HasPrefix(where, "switch ") {
		where += " of switch " + f.Switch
	}
	if hosts[0] != "" {
		where += map[bool]string{true: " on host ", false: " on hosts "}[len(hosts) == 1] + strings.Join(hosts, ", ")
	}
	colour := map[api.FindingLevel]string{api.FindingWrong: cli.Red, api.FindingNote: cli.Yellow}[f.Level]
	fmt.Fprintf(b, "%s  %s: %s\n", d.Coloured(colour, string(f.Level)), f.Rule, where)
	const label = 10
	for _, p := range append(parts, [2]string{"so:", f.Why}, [2]string{"change:", f.Change}) {
		if p[1] == "" {
			continue
		}
		for i, line := range cli.Wrap(p[1], d.TextWidth()-label-2) {
			fmt.Fprintf(b, "  %-*s%s\n", label, map[bool]string{true: p[0]}[i == 0], line)
		}
	}
	if f.Edit != nil {
		file := f.Edit.File
		if file == "" {
			file = "the configuration"
		}
		fmt.Fprintf(b, "  %-*s%s, %s:\n  %-*s  %s\n", label, "edit:", file, f.Edit.Object(), label, "", f.Edit.Set)
	}
	fmt.Fprintf(b, "  %-*s%s\n\n", label, "command:", f.Command)
}

// seenText returns when a finding was seen, "" if the agent does not report that.
func seenText(f *api.Finding, now time.Time) string {
	switch {
	case f.Undated:
		return "before the agent kept dates"
	case f.LastSeen.IsZero():
		return ""
	case f.Now && f.FirstSeen.IsZero():
		return "now"
	case f.Now:
		return "now, since " + clockText(f.FirstSeen, now)
	}
	last := fmt.Sprintf("last %s (%s ago)", clockText(f.LastSeen, now), times.Age(now.Sub(f.LastSeen)))
	if f.FirstSeen.IsZero() || f.FirstSeen.Equal(f.LastSeen) {
		return last
	}
	return last + ", first " + clockText(f.FirstSeen, now)
}

// clockText returns an instant, with its day if that is not today.
func clockText(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04:05")
}
