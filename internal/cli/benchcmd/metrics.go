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

func newBenchMetrics(d cli.Deps) *cobra.Command {
	var flags reportFlags
	opts := bench.MetricsOptions{Now: time.Now}
	c := &cobra.Command{
		Use:   "metrics",
		Short: "Measure how long a scrape of 1,000 ports takes",
		Long: "Starts an agent with 1,000 ports, without devices, in a network namespace of its own, and reads its " +
			"metrics again and again. Needs root. Everything it makes is removed afterwards; switches that run on " +
			"this host are not touched.",
		Example: "  heddle bench metrics\n  heddle bench metrics --rounds 100 -o json --check",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return flags.measure(c, d, func(ctx context.Context, _ func(done, total int, what string)) (
				*report.Report, error) {
				return cmd.BenchMetrics(ctx, opts)
			})
		},
	}
	flags.add(c)
	c.Flags().IntVar(&opts.Rounds, "rounds", 30, "how many scrapes are measured")
	return c
}
