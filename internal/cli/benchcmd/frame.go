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

func newBenchFrame(d cli.Deps) *cobra.Command {
	var flags reportFlags
	opts := bench.FrameOptions{Now: time.Now}
	c := &cobra.Command{
		Use:   "frame",
		Short: "Measure the kernel time of the switch program per frame",
		Long: "Runs the switch program in the kernel on known, learned, unknown and broadcast frames, on a small " +
			"switch and on one with 1,000 ports and 100,000 learned MACs. Needs root. Everything it makes is in a " +
			"network namespace of its own and is removed with it; switches that run on this host are not touched.",
		Example: "  heddle bench frame\n  heddle bench frame --quick -o json --check",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				opts.Progress = progress
				return cmd.BenchFrame(ctx, opts)
			})
		},
	}
	flags.add(c)
	c.Flags().IntVar(&opts.Rounds, "rounds", 10, "how often everything is measured")
	c.Flags().BoolVar(&opts.Quick, "quick", false, "leave out the broadcast to 1,000 ports")
	return c
}
