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

func newBenchIPFIXCodec(d cli.Deps) *cobra.Command {
	var flags reportFlags
	var quick bool
	opts := bench.CodecOptions{Now: time.Now}
	c := &cobra.Command{
		Use:   "ipfix-codec",
		Short: "Measure how many flow records per second one core handles",
		Long: "Writes flow records of every shape as IPFIX messages, reads them again, sends them over UDP, and " +
			"passes them through an agent from the counters to the message, on one core. The CPU time of each " +
			"step is measured. As root, the flows come out of kernel tables that belong to no switch. Nothing " +
			"leaves the machine.",
		Example: "  heddle bench ipfix-codec\n  heddle bench ipfix-codec --quick -o json --check",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if quick {
				opts.Quick()
			}
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				opts.Progress = progress
				return cmd.BenchCodec(ctx, opts)
			})
		},
	}
	flags.add(c)
	c.Flags().IntVar(&opts.Rounds, "rounds", 10, "how often everything is measured")
	c.Flags().IntVar(&opts.Records, "records", 500_000, "`records` per shape and round")
	c.Flags().BoolVar(&quick, "quick", false, "take a few seconds, at the price of wider spread")
	return c
}
