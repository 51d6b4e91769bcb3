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
	// Rounds is how often a cell is visited at most; at least 1. Turns is how often each configuration is measured
	// in a visit; in cells whose flows end all the time it is once, unless there are numbers of queues.
	Rounds, Turns int
	// Resolution is the standard error of the ratios below which a cell is not visited again. If the ratio is
	// clearly on one side of the budget, a larger error suffices. 0: all rounds are measured.
	Resolution float64
	// Warmup and Duration are for one measurement. During the warm-up the kernel's programs are timed. Cells whose
	// flows end all the time are measured for twice the duration.
	Warmup, Duration time.Duration
	// Settle is the warm-up of metered cells whose flows end all the time: the records of a flow are sent two to
	// three seconds after its end (RST and two seconds of silence), and before that this work does not occur. Such
	// a cell is measured for at least a second, the time in which the kernel's tables are drained once. Others
	// settle only until all tables have been drained.
	Settle time.Duration
	// Loads, Pairs and Configurations select what is measured; empty = all configurations, and the cells for which
	// the article gives figures. The baselines come with the configurations.
	Loads          []string
	Pairs          []int
	Configurations []string
	// Queues are numbers of pairs of queues, 1–256, that the VMs' adapters have, as further cells each; empty: the
	// adapters are veths. Adapters selects which adapters have them; empty = all.
	Queues   []int
	Adapters []string
	// Overlay: the VMs are in an overlay segment between the hosts instead of a VLAN.
	Overlay bool
	// Flows and FlowRate are for the background: the number of two-way flows, and of their packets per second each
	// way.
	Flows    int
	FlowRate float64
	// Limit is the time after which no visit may end: one that would is not begun; 0 = no limit. Each cell is
	// visited at least once.
	Limit time.Duration
	// RunDir is where the lab's record is, so that "heddle lab down" finds what a killed run has left.
	RunDir string
	// Heddle is the heddle program.
	Heddle string
	// Progress is called before every measurement; nil for silence.
	Progress func(done, total int, what string)
	// Now returns the time, for the report.
	Now func() time.Time

	measure func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)
	// noGuests is why no guest can run under QEMU.
	noGuests error
}

const (
	// quickLimit leaves time for building and removing the lab within a minute.
	quickLimit = 50 * time.Second
	// quickQueuesLimit leaves time for booting guests within three minutes.
	quickQueuesLimit = 2 * time.Minute
	// drainEvery is how often agents drain the kernel's tables.
	drainEvery = time.Second
	// minWarmup leaves time to read the programs' times.
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
// minute. Cells of transactions would have to settle too long.
func (o *Options) Quick() {
	if len(o.Queues) > 0 {
		o.quickQueues()
		return
	}
	o.Warmup, o.Turns, o.Limit = 200*time.Millisecond, 3, quickLimit
	o.Loads, o.Pairs, o.Configurations = []string{"udp-18", "stream"}, []int{1}, []string{"ipfix"}
}

// quickQueues selects one configuration, and visits every cell once or more: with two numbers of queues some two and a
// half minutes, most of which is the time until flows have been exported.
func (o *Options) quickQueues() {
	o.Warmup, o.Duration, o.Limit = 200*time.Millisecond, 500*time.Millisecond, quickQueuesLimit
	o.Configurations = []string{string(uni)}
}

// Check returns what is wrong with the options, without doing anything.
func (o Options) Check() error {
	if err := o.checkQueues(); err != nil {
		return err
	}
	cells, err := o.cells()
	if err != nil {
		return err
	}
	if _, err := fleetOf(cells); err != nil {
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

// manyPairs is the number of pairs of VMs for measuring the whole system.
const manyPairs = 8

// worthwhile reports whether a cell is measured by default: for the whole system only one size of packets and the
// largest number of sessions.
func worthwhile(c cell) bool {
	return c.pairs == 1 || c.name == "udp-18" || c.name == "crr-4" || c.name == "stream"
}

// cells are those that are selected, in the order of the table.
func (o Options) cells() ([]cell, error) {
	pairs, names := o.Pairs, o.Loads
	if len(o.Queues) > 0 { // few of them, as there are as many for each number of queues
		if len(names) == 0 {
			names = []string{"udp-18", "crr-4"}
		}
		if len(pairs) == 0 {
			pairs = []int{1}
		}
	}
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
			for _, a := range o.adapters() {
				c := cell{l, n, a}
				chosen := slices.Contains(names, l.name) || len(names) == 0 && (len(o.Pairs) > 0 || worthwhile(c))
				if chosen && c.fits() {
					cells = append(cells, c)
				}
			}
		}
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("nothing is left to measure. %s", strings.Join(o.leftOut(), " "))
	}
	return cells, nil
}

// configurations are the selected ones and their baselines, which come first.
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
			if c.background == background && (len(o.Configurations) == 0 && o.byDefault(c) ||
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

// byDefault reports whether a configuration is measured unless some are chosen: those that meter, and for numbers of
// queues only those without background.
func (o Options) byDefault(c configuration) bool {
	return c.metering.meters() && (len(o.Queues) == 0 || !c.background)
}
