package benchcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab/bench"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/report"
)

// reportFlags are the common flags of commands that publish numbers.
type reportFlags struct {
	output string
	check  bool
	report cli.ReportFile
}

func (f *reportFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.output, "output", "o", string(report.Table), "`format`: table, json or yaml")
	c.Flags().BoolVar(&f.check, "check", false, "exit with status 1 when a budget is not met")
	f.report.Flag(c)
}

// publish writes the report and, if requested, returns missed budgets as an error.
func (f *reportFlags) publish(w io.Writer, format report.Format, rep *report.Report) error {
	if err := rep.Write(w, format); err != nil {
		return err
	}
	if err := f.report.Write(rep); err != nil {
		return err
	}
	if f.check {
		return rep.Check()
	}
	return nil
}

// measure runs measure, with its progress on a terminal, and publishes the report.
func (f *reportFlags) measure(c *cobra.Command, d cli.Deps,
	run func(ctx context.Context, progress func(done, total int, what string)) (*report.Report, error)) error {
	format, err := report.ParseFormat(f.output)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if err := f.report.Check(c, nil); err != nil {
		return err
	}
	p := cli.NewProgress(d.Stderr)
	rep, err := run(c.Context(), p.Part)
	p.Clear()
	if err != nil {
		return err
	}
	return f.publish(d.Stdout, format, rep)
}

func New(d cli.Deps) *cobra.Command {
	c := &cobra.Command{
		Use: "bench", Short: "Measure what Heddle costs",
		Example: "  heddle bench switch --quick\n  heddle bench frame", Args: cli.NoSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchSwitch(d))
	c.AddCommand(newBenchOverlay(d))
	c.AddCommand(newBenchFrame(d))
	c.AddCommand(newBenchMetrics(d))
	c.AddCommand(newBenchCapture(d))
	c.AddCommand(newBenchFlowExport(d))
	c.AddCommand(newBenchIPFIXCodec(d))
	c.AddCommand(newBenchControlPlane(d))
	return c
}

func newBenchSwitch(d cli.Deps) *cobra.Command {
	var flags reportFlags
	var quick bool
	opts := bench.SwitchOptions{Now: time.Now}
	c := &cobra.Command{
		Use:   "switch",
		Short: "Compare with a cable, macvlan, a Linux bridge and Open vSwitch",
		Long: "Joins two guests on this machine in each of these ways and measures them in turns: one TCP stream, " +
			"requests on one TCP connection (rr), a connection per request (crr), and the rate of 18-byte UDP " +
			"packets. Needs root. Everything it makes is in network namespaces of its own and is removed with " +
			"them.",
		Example: "  heddle bench switch\n  heddle bench switch --quick --only direct,heddle -o json --check",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if quick {
				hasten(c, &opts)
			}
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				opts.Progress = progress
				return cmd.BenchSwitch(ctx, opts)
			})
		},
	}
	flags.add(c)
	compared(c, &opts, &quick, bench.PeerNames())
	return c
}

func newBenchOverlay(d cli.Deps) *cobra.Command {
	var flags reportFlags
	var quick bool
	opts := bench.OverlayOptions{SwitchOptions: bench.SwitchOptions{Now: time.Now}}
	c := &cobra.Command{
		Use:   "overlay",
		Short: "Compare an overlay segment with a VLAN, VXLAN and OVS",
		Long: "Joins guests of two hosts by an overlay segment, by a VLAN on the cable between the hosts, by the " +
			"kernel's bridge and VXLAN device, and by Open vSwitch, and measures them in turns as \"bench switch\" " +
			"does. Needs root. Everything it makes is in network namespaces of its own and is removed with them.",
		Example: "  heddle bench overlay\n  heddle bench overlay --quick --cut-segments -o json --check",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if quick {
				hasten(c, &opts.SwitchOptions)
			}
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				opts.Progress = progress
				return cmd.BenchOverlay(ctx, opts)
			})
		},
	}
	flags.add(c)
	compared(c, &opts.SwitchOptions, &quick, bench.OverlayPeerNames())
	c.Flags().BoolVar(&opts.CutSegments, "cut-segments", false, "turn off segmentation on the cable between the "+
		"hosts, as with a card without tunnel offload")
	c.Flags().BoolVar(&opts.Routed, "routed", false, "put each host in a subnet of its own, with a router between them")
	return c
}

// compared adds the flags of a comparison of peers.
func compared(c *cobra.Command, opts *bench.SwitchOptions, quick *bool, peers []string) {
	c.Flags().IntVar(&opts.Rounds, "rounds", 20, "how often everything is measured")
	c.Flags().DurationVar(&opts.Duration, "duration", 400*time.Millisecond,
		"measured interval per test, peer and round")
	c.Flags().DurationVar(&opts.Warmup, "warmup", 100*time.Millisecond, "time before each measured interval")
	c.Flags().BoolVar(quick, "quick", false, "take at most a minute, at the price of wider spread")
	c.Flags().StringSliceVar(&opts.Only, "only", nil, fmt.Sprintf("`peers` to measure, of %s (default: all that are "+
		"there)", strings.Join(peers, ",")))
	c.Flags().IntSliceVar(&opts.CPUs, "cpus", nil, "two `CPUs` to pin the ends to (default: the first two)")
}

// hasten shortens the run, unless the command line sets how long it takes.
func hasten(c *cobra.Command, opts *bench.SwitchOptions) {
	asked := *opts
	opts.Quick()
	if c.Flags().Changed("rounds") {
		opts.Rounds = asked.Rounds
	}
	if c.Flags().Changed("duration") {
		opts.Duration = asked.Duration
	}
	if c.Flags().Changed("warmup") {
		opts.Warmup = asked.Warmup
	}
}
