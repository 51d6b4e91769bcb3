// Package flowexport is the benchmark "flow-export": what metering and export of flows cost two hosts that exchange traffic, in packet
// rate, transaction rate, throughput and CPU time, by the method of the article "VDS IPFIX performance with NSX-V and vRNI" (VMware
// knowledge base 314383), whose figures it prints beside its own.
package flowexport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/traffic"
)

// Options is what "heddle bench flow-export" shall do.
type Options struct {
	// Rounds is how often every cell is measured in every configuration; at least 1, and 10 for numbers that are published.
	Rounds int
	// Warmup and Duration are those of one measurement. In the warm-up the time of the kernel's programs is taken.
	Warmup, Duration time.Duration
	// Loads, Pairs and Configurations select what is measured; empty = all. The baselines come with the configurations.
	Loads          []string
	Pairs          []int
	Configurations []string
	// Flows and FlowRate are the background's: so many two-way flows, and so many of their packets per second each way.
	Flows    int
	FlowRate float64
	// Limit bounds how long rounds are begun; 0 = without end. At least one is measured.
	Limit time.Duration
	// RunDir is where the lab's record is, so that "heddle lab down" finds what a killed run leaves.
	RunDir string
	// Heddle is the heddle program.
	Heddle string
	// Progress is called before every measurement; nil for silence.
	Progress func(done, total int, what string)
	// Now tells the time, for the report.
	Now func() time.Time

	measure func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)
}

const (
	// quickLimit leaves time for building and removing the lab within a minute.
	quickLimit = 52 * time.Second
	// minWarmup has room for a look at the programs' times.
	minWarmup = 100 * time.Millisecond
)

// Default sets what is not selected by the command line.
func (o *Options) Default() {
	o.Rounds, o.Warmup, o.Duration, o.Limit = 10, 300*time.Millisecond, 600*time.Millisecond, 25*time.Minute
	o.Flows, o.FlowRate = 5000, 5000
}

// Quick selects few cells, so that each is measured long enough to resolve a difference of 2 % within less than a minute.
func (o *Options) Quick() {
	o.Warmup, o.Duration, o.Limit = 200*time.Millisecond, 500*time.Millisecond, quickLimit
	o.Loads, o.Pairs, o.Configurations = []string{"udp-18", "crr-1"}, []int{1}, []string{"ipfix"}
}

// Check says what is wrong with the options, without doing anything.
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
	case o.Warmup < minWarmup:
		return fmt.Errorf("a warm-up of %v: want at least %v, for a look at the programs' times", o.Warmup, minWarmup)
	case o.Flows < 1 || o.Flows > 1_000_000 || o.FlowRate <= 0:
		return errors.New("the background has 1–1,000,000 flows and a positive rate")
	}
	return nil
}

// cells are those that are selected, in the order of the table.
func (o Options) cells() ([]cell, error) {
	pairs := o.Pairs
	if len(pairs) == 0 {
		pairs = []int{1, 8}
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
			if len(o.Loads) == 0 || slices.Contains(o.Loads, l.name) {
				cells = append(cells, cell{l, n})
			}
		}
	}
	return cells, nil
}

// configurations are those that are selected and their baselines, which come first.
func (o Options) configurations() ([]configuration, error) {
	for _, name := range o.Configurations {
		if !slices.Contains(ConfigurationNames(), name) {
			return nil, fmt.Errorf("no configuration %q: want some of %s", name, strings.Join(ConfigurationNames(), ", "))
		}
	}
	var chosen []configuration
	for _, background := range []bool{false, true} {
		var metered []configuration
		for _, c := range metered4() {
			if c.background == background && (len(o.Configurations) == 0 || slices.Contains(o.Configurations, c.name())) {
				metered = append(metered, c)
			}
		}
		if len(metered) > 0 {
			chosen = append(append(chosen, configuration{off, background}), metered...)
		}
	}
	return chosen, nil
}
