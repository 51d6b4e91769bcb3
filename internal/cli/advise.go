package cli

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
)

func newAdvise(d Deps) *cobra.Command {
	t, o, q := &target{}, &output{}, api.AdviseRequest{}
	c := &cobra.Command{
		Use: "advise", Short: "Find misconfigurations by live measurements, and their fix",
		Long: "Find misconfigurations from the plan, the counters, the MAC tables, the events and what LACP and " +
			"LLDP report. Each finding has the measured sign, its consequence, and the command or the lines of " +
			"the configuration that fix it. Nothing is changed.\n\n" +
			"Without --for it uses the counters since each port was connected, which may be long ago, and the " +
			"rates of half a second. With --for it measures from now on, for that long. The exit status is 1 when " +
			"something is wrong; notes leave it " +
			"0.",
		Example: "  heddle advise\n  heddle advise --for 10s\n  heddle advise -o json", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if q.For < 0 || q.For > api.MaxAdviseFor {
				return usagef("--for %v: it is a time from 0 to %v, such as 10s", q.For, api.MaxAdviseFor)
			}
			a, err := advice(c, t, q)
			if err != nil {
				return err
			}
			if err := o.print(d, a, func(w io.Writer) error { return writeAdvice(w, d, a) }); err != nil {
				return err
			}
			if !a.Healthy() {
				return &SilentError{Status: ExitFailure}
			}
			return nil
		},
	}
	t.flags(d, c)
	o.flag(c)
	c.Flags().DurationVar(&q.For, "for", 0, "measure from now on, for this long; 0 uses the counters so far")
	return c
}

// advice asks the agent, which measures for a time before it answers.
func advice(c *cobra.Command, t *target, q api.AdviseRequest) (*api.Advice, error) {
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), q.For+callTimeout)
	defer cancel()
	return client.Advise(ctx, q)
}

func writeAdvice(w io.Writer, d Deps, a *api.Advice) error {
	period := "since each port was connected"
	if a.MeasuredSeconds > 0 {
		period = "of the last " + time.Duration(a.MeasuredSeconds*float64(time.Second)).Round(
			100*time.Millisecond).String()
	}
	var b strings.Builder
	for i := range a.Findings {
		writeFinding(&b, d, &a.Findings[i])
	}
	for _, rule := range slices.Sorted(maps.Keys(a.More)) {
		fmt.Fprintf(&b, "and %d more of %s\n\n", a.More[rule], rule)
	}
	found := "No problems found"
	if n := len(a.Findings); n > 0 {
		found = count(n, "finding", "findings")
	}
	fmt.Fprintf(&b, "%s. Checked %s on %s and %s.\nThe counters are those %s.\n", found,
		count(a.Rules, "rule", "rules"),
		count(a.Ports, "port", "ports"), count(a.Uplinks, "uplink", "uplinks"), period)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFinding writes one finding: what and where, then the sign, the consequence, and the remedy, each wrapped.
// Commands and lines of the configuration are never broken.
func writeFinding(b *strings.Builder, d Deps, f *api.Finding) {
	colour := map[api.FindingLevel]string{api.FindingWrong: red, api.FindingNote: yellow}[f.Level]
	where := f.Object()
	if !strings.HasPrefix(where, "switch ") {
		where += " of switch " + f.Switch
	}
	fmt.Fprintf(b, "%s  %s: %s\n", d.coloured(colour, string(f.Level)), f.Rule, where)
	const label = 10
	for _, p := range [][2]string{{"measured:", f.Sign}, {"so:", f.Why}, {"change:", f.Change}} {
		for i, line := range wrap(p[1], tableWidth-label-2) {
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
