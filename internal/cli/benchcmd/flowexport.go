package benchcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab/bench/flowexport"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/report"
)

func newBenchFlowExport(d cli.Deps) *cobra.Command {
	var flags reportFlags
	var quick bool
	opts := flowexport.Options{Now: time.Now}
	opts.Default()
	c := &cobra.Command{
		Use:   "flow-export",
		Short: "Measure the cost of metering and export, beside VDS figures",
		Long: "Builds two hosts, each with an agent, whose VMs exchange traffic: UDP packets of three sizes, a TCP " +
			"connection per request in one and four sessions, and TCP streams; between one pair of VMs and " +
			"between eight. Each is measured without metering, with metering of what leaves the switch, and with " +
			"metering of both directions; and each of these again beside a port scan of 5,000 flows. With --queues " +
			"the VMs' adapters are taps of that many queues, and virtio-net in guests under QEMU. Needs root. " +
			"Everything it makes is in network namespaces of its own and is removed with them.",
		Example: "  heddle bench flow-export\n  heddle bench flow-export --quick --check\n  heddle bench flow-export " +
			"--cells udp-18,crr-4 --pairs 1 -o json\n  heddle bench flow-export --overlay\n  " +
			"heddle bench flow-export --queues 1,4 --quick",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if quick {
				quicken(c, &opts)
			}
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				opts.Progress = progress
				return cmd.BenchFlowExport(ctx, opts)
			})
		},
	}
	flags.add(c)
	f := c.Flags()
	f.IntVar(&opts.Rounds, "rounds", opts.Rounds, "how often a cell is measured at most")
	f.Float64Var(&opts.Resolution, "resolution", opts.Resolution, "stop measuring a cell when the standard error of "+
		"all its ratios is this small, or its budget is clearly met or missed; 0: all rounds")
	f.DurationVar(&opts.Duration, "duration", opts.Duration, "measured interval; twice as long for transactions")
	f.DurationVar(&opts.Warmup, "warmup", opts.Warmup, "time before each measured interval")
	f.DurationVar(&opts.Settle, "settle", opts.Settle, "warm-up of metered transactions, whose flows are exported up "+
		"to three seconds after their end; others take 2.2s of it at most")
	f.DurationVar(&opts.Limit, "limit", opts.Limit, "start no cell that would end later than this")
	f.BoolVar(&quick, "quick", false, "take at most a minute: few cells, long enough to resolve 2 %; with two "+
		"--queues three minutes, one configuration")
	f.StringSliceVar(&opts.Loads, "cells", nil, fmt.Sprintf("`cells` to measure, of %s (default: all)",
		strings.Join(flowexport.LoadNames(), ", ")))
	f.IntSliceVar(&opts.Pairs, "pairs", nil, "`numbers` of pairs of VMs (default: 1, and 8 for udp-18, crr-4 and "+
		"stream)")
	f.StringSliceVar(&opts.Configurations, "configurations", nil, fmt.Sprintf("`configurations` to measure beside "+
		"their baselines, of %s (default: all that meter; baseline-again shows what the method cannot tell apart)",
		strings.Join(flowexport.ConfigurationNames(), ", ")))
	f.BoolVar(&opts.Overlay, "overlay", false, "the VMs are in an overlay segment between the hosts, not in a VLAN")
	f.IntSliceVar(&opts.Queues, "queues", nil, "`numbers` of queue pairs of the VMs' adapters, 1-256, each measured "+
		"by itself; then udp-18 and crr-4 between one pair and without background unless others are chosen "+
		"(default: no queues, the adapters are veths)")
	f.StringSliceVar(&opts.Adapters, "adapters", nil, fmt.Sprintf("with --queues, `adapters` to measure, of %s "+
		"(default: all; virtio-net needs QEMU and has at most 8 queues)",
		strings.Join(flowexport.AdapterNames(), ", ")))
	f.IntVar(&opts.Flows, "flows", opts.Flows, "how many flows the background has")
	f.Float64Var(&opts.FlowRate, "flow-rate", opts.FlowRate,
		"how many packets per second the background sends each way")
	f.StringVar(&opts.RunDir, "run-dir", d.Env("HEDDLE_RUN_DIR", cli.DefaultRunDir),
		"run directory, where the lab's record is kept (environment HEDDLE_RUN_DIR)")
	return c
}

// quicken shortens the run, unless the command line sets its size.
func quicken(c *cobra.Command, opts *flowexport.Options) {
	asked := *opts
	opts.Quick()
	for flag, keep := range map[string]func(){
		"duration": func() { opts.Duration = asked.Duration }, "warmup": func() { opts.Warmup = asked.Warmup },
		"limit": func() { opts.Limit = asked.Limit }, "cells": func() { opts.Loads = asked.Loads }, "pairs": func() {
			opts.Pairs = asked.Pairs
		},
		"configurations": func() { opts.Configurations = asked.Configurations },
	} {
		if c.Flags().Changed(flag) {
			keep()
		}
	}
}
