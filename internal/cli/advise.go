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
		Use: "advise", Short: "Say what is misconfigured, by what is measured, and the command that mends it",
		Long: "Read the plan, the counters, the MAC tables, the events and what LACP and LLDP tell, and say what is misconfigured: each finding\n" +
			"with the measured sign, what comes of it, and the command or the lines of the configuration that mend it. It changes nothing.\n" +
			"Without --for it takes what was counted since each port was connected, which may be long ago; with --for what is counted from\n" +
			"now on. The exit status is 1 when something is wrong; notes leave it 0.",
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
	c.Flags().DurationVar(&q.For, "for", 0, "measure from now on for this long; 0 takes what was counted so far")
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
	period := "since the ports were connected"
	if a.MeasuredSeconds > 0 {
		period = "in " + time.Duration(a.MeasuredSeconds*float64(time.Second)).Round(100*time.Millisecond).String()
	}
	var b strings.Builder
	for i := range a.Findings {
		writeFinding(&b, d, &a.Findings[i])
	}
	for _, rule := range slices.Sorted(maps.Keys(a.More)) {
		fmt.Fprintf(&b, "and %d more of %s\n\n", a.More[rule], rule)
	}
	said := fmt.Sprintf("%d findings", len(a.Findings))
	switch len(a.Findings) {
	case 0:
		said = "nothing to say"
	case 1:
		said = "1 finding"
	}
	fmt.Fprintf(&b, "%s: %d rules, %d ports, %d uplinks, by what was counted %s\n", said, a.Rules, a.Ports, a.Uplinks, period)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFinding writes one finding: what and where, then the sign, what comes of it, and what to do, each wrapped. Commands and lines
// of the configuration are never broken.
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
