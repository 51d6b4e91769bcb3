// Package flowexport is the benchmark "flow-export": what metering and export of flows cost two hosts that exchange
// traffic, in packet rate, transaction rate, throughput and CPU time, by the method of the article "VDS IPFIX
// performance with NSX-V and vRNI" (VMware knowledge base 314383), whose figures it prints beside its own.
package flowexport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/lab/traffic"
)

// Options are the options of "heddle bench flow-export".
type Options struct {
	// Rounds is how often a cell is visited at most; at least 1. Turns is how often each configuration is measured in a
	// visit, cells whose flows end all the time apart: once.
	Rounds, Turns int
	// Resolution is that of the ratios, as a standard error, from which on a cell is not visited again; one whose
	// budget is clear is not with a rougher one either. 0: all rounds are measured.
	Resolution float64
	// Warmup and Duration are those of one measurement. In the warm-up the time of the kernel's programs is taken.
	// Cells whose flows end all the time are measured for twice the duration.
	Warmup, Duration time.Duration
	// Settle is the warm-up of cells whose flows end all the time, where they are metered: the records of a flow are
	// sent two to three seconds after its end (RST and two seconds of silence), and until then that work is not there.
	// Such a cell is measured for a second at least, the time in which the kernel's tables are drained once. Others
	// settle no longer than until all tables have been drained.
	Settle time.Duration
	// Loads, Pairs and Configurations select what is measured; empty = all configurations, and of the cells those in
	// which the article gives figures. The baselines come with the configurations.
	Loads          []string
	Pairs          []int
	Configurations []string
	// Flows and FlowRate are the background's: the number of two-way flows, and of their packets per second each way.
	Flows    int
	FlowRate float64
	// Limit is when no visit is begun any more that would end later; 0 = without end. Each cell is visited once at
	// least.
	Limit time.Duration
	// RunDir is where the lab's record is, so that "heddle lab down" finds what a killed run leaves.
	RunDir string
	// Heddle is the heddle program.
	Heddle string
	// Progress is called before every measurement; nil for silence.
	Progress func(done, total int, what string)
	// Now returns the time, for the report.
	Now func() time.Time

	measure func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)
}

const (
	// quickLimit leaves time for building and removing the lab within a minute.
	quickLimit = 50 * time.Second
	// drainEvery is how often agents drain the kernel's tables.
	drainEvery = time.Second
	// minWarmup leaves time for a look at the programs' times.
	minWarmup = 100 * time.Millisecond
)

// Default sets what is not selected by the command line.
func (o *Options) Default() {
	o.Rounds, o.Turns, o.Resolution, o.Limit = 20, 2, 0.004, 28*time.Minute
	o.Warmup, o.Duration = 300*time.Millisecond, drainEvery
	o.Settle = 3200 * time.Millisecond
	o.Flows, o.FlowRate = 5000, 5000
}

// Quick selects few cells, so that each is measured long enough to resolve a difference of 2 % within less than a
// minute. Those of transactions have to settle for too long.
func (o *Options) Quick() {
	o.Warmup, o.Turns, o.Limit = 200*time.Millisecond, 3, quickLimit
	o.Loads, o.Pairs, o.Configurations = []string{"udp-18", "stream"}, []int{1}, []string{"ipfix"}
}

// Check returns what is wrong with the options, without doing anything.
func (o Options) Check() error {
	if _, err := o.cells(); err != nil {
		return err
	}
	if _, err := o.configurations(); err != nil {
		return err
	}
	switch {
	case o.Rounds < 1 || o.Duration <= 0:
		return errors.New("rounds and duration must be positive")
	case o.Resolution < 0:
		return errors.New("the resolution must not be negative")
	case o.Warmup < minWarmup:
		return fmt.Errorf("a warm-up of %v: want at least %v, for a look at the programs' times", o.Warmup, minWarmup)
	case o.Settle < o.Warmup:
		return errors.New("the warm-up of cells whose flows end all the time must not be shorter than that of others")
	case o.Flows < 1 || o.Flows > 1_000_000 || o.FlowRate <= 0:
		return errors.New("the background has 1–1,000,000 flows and a positive rate")
	}
	return nil
}

// manyPairs is how many pairs of VMs the whole system is measured with.
const manyPairs = 8

// worthwhile reports whether a cell is measured by default: of the whole system one size of packets and the most
// sessions.
func worthwhile(c cell) bool {
	return c.pairs == 1 || c.name == "udp-18" || c.name == "crr-4" || c.name == "stream"
}

// cells are those that are selected, in the order of the table.
func (o Options) cells() ([]cell, error) {
	pairs := o.Pairs
	if len(pairs) == 0 {
		pairs = []int{1, manyPairs}
	}
	for _, n := range pairs {
		if n < 1 || n > maxPairs {
			return nil, fmt.Errorf("%d pairs of VMs: want 1–%d", n, maxPairs)
		}
	}
	for _, name := range o.Loads {
		if !slices.Contains(LoadNames(), name) {
			return nil, fmt.Errorf("no cell %q: want some of %s", name, strings.Join(LoadNames(), ", "))
		}
	}
	var cells []cell
	for _, l := range loads() {
		for _, n := range pairs {
			c := cell{l, n}
			if slices.Contains(o.Loads, l.name) || len(o.Loads) == 0 && (len(o.Pairs) > 0 || worthwhile(c)) {
				cells = append(cells, c)
			}
		}
	}
	return cells, nil
}

// configurations are those that are selected and their baselines, which come first.
func (o Options) configurations() ([]configuration, error) {
	for _, name := range o.Configurations {
		if !slices.Contains(ConfigurationNames(), name) {
			return nil, fmt.Errorf("no configuration %q: want some of %s", name,
				strings.Join(ConfigurationNames(), ", "))
		}
	}
	var chosen []configuration
	for _, background := range []bool{false, true} {
		var metered []configuration
		for _, c := range selectable() {
			if c.background == background && (len(o.Configurations) == 0 && c.metering.meters() ||
				slices.Contains(o.Configurations, c.name())) {
				metered = append(metered, c)
			}
		}
		if len(metered) > 0 {
			chosen = append(append(chosen, configuration{off, background}), metered...)
		}
	}
	return chosen, nil
}
