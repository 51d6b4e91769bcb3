package benchcmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab/bench"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/report"
)

func newBenchCapture(d cli.Deps) *cobra.Command {
	var flags reportFlags
	var quick bool
	opts := bench.CaptureOptions{Now: time.Now}
	c := &cobra.Command{
		Use:   "capture",
		Short: "Measure what a capture costs the ports",
		Long: "Joins two guests by a switch and measures their traffic with no capture, with captures that match " +
			"nothing, and with a capture of everything; then it measures the switch program alone, also with " +
			"filters of known length, and the same at the tunnel between two hosts. Needs root, and tcpdump for the " +
			"filter. Everything it makes is in network namespaces of its own and is removed with them.",
		Example: "  heddle bench capture\n  heddle bench capture --quick -o json",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if quick {
				hastenCaptures(c, &opts)
			}
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				opts.Progress = progress
				return cmd.BenchCapture(ctx, opts)
			})
		},
	}
	flags.add(c)
	c.Flags().IntVar(&opts.Rounds, "rounds", 12, "how often everything is measured at most")
	c.Flags().DurationVar(&opts.Within, "within", 2*time.Minute,
		"time for all rounds together; the report says how many there were (0: no bound)")
	c.Flags().DurationVar(&opts.Duration, "duration", 300*time.Millisecond,
		"measured interval per test, capture and round")
	c.Flags().DurationVar(&opts.Warmup, "warmup", 100*time.Millisecond, "time before each measured interval")
	c.Flags().BoolVar(&quick, "quick", false, "take at most a minute, at the price of wider spread")
	return c
}

// hastenCaptures shortens the run, unless the command line sets how long it takes.
func hastenCaptures(c *cobra.Command, opts *bench.CaptureOptions) {
	quick := bench.QuickCaptures()
	for _, f := range []struct {
		name     string
		to, from *time.Duration
	}{
		{"within", &opts.Within, &quick.Within}, {"duration", &opts.Duration, &quick.Duration},
		{"warmup", &opts.Warmup, &quick.Warmup},
	} {
		if !c.Flags().Changed(f.name) {
			*f.to = *f.from
		}
	}
	if !c.Flags().Changed("rounds") {
		opts.Rounds = quick.Rounds
	}
}
