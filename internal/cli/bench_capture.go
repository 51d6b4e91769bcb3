package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/bench"
	"heddle/internal/report"
)

func newBenchCapture(d Deps) *cobra.Command {
	var flags reportFlags
	var quick bool
	opts := bench.CaptureOptions{Now: time.Now}
	c := &cobra.Command{
		Use:   "capture",
		Short: "Measure what a capture costs the ports",
		Long: "Joins two guests by a switch and measures their traffic with no capture, with captures that match nothing, and with a\n" +
			"capture of everything. Needs root, and tcpdump for the filter. What it makes is in network namespaces of its own and\n" +
			"goes with it.",
		Example: "  heddle bench capture\n  heddle bench capture --quick -o json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			format, err := report.ParseFormat(flags.output)
			if err != nil {
				return &UsageError{Err: err}
			}
			if quick {
				opts.Quick()
			}
			if opts.Rounds < 1 || opts.Duration <= 0 || opts.Warmup < 0 {
				return usagef("rounds and duration must be positive, the warm-up not negative")
			}
			if os.Geteuid() != 0 {
				return errors.New("bench capture makes network namespaces and devices: run it as root")
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			opts.Heddle = []string{self}
			return flags.measure(c, d, format, func(ctx context.Context, progress func(done, total int, what string)) (*report.Report, error) {
				opts.Progress = progress
				return bench.Capture(ctx, opts)
			})
		},
	}
	flags.add(c)
	c.Flags().IntVar(&opts.Rounds, "rounds", 12, "how often everything is measured")
	c.Flags().DurationVar(&opts.Duration, "duration", 400*time.Millisecond, "measured interval per test, capture and round")
	c.Flags().DurationVar(&opts.Warmup, "warmup", 100*time.Millisecond, "time before each measured interval")
	c.Flags().BoolVar(&quick, "quick", false, "take at most a minute, at the price of wider spread")
	return c
}
