package flowexport

import (
	"fmt"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// maxPairs is the largest number of pairs of VMs in the lab.
const maxPairs = 16

// load is what a pair of VMs exchanges.
type load struct {
	name     string
	kind     traffic.Kind
	size     int // of a packet's payload or a message, bytes; 0 = the default
	sessions int
	unit     report.Unit
	// per is the number of units per second to which CPU time refers, and their name.
	per     float64
	perName string
	// atLeast is the budget: the share of the baseline's rate that every configuration must reach.
	atLeast float64
}

const (
	rateBudget   = 0.95
	streamBudget = 0.98
)

// shortest is the payload of the shortest packets, in bytes.
const shortest = 18

// loads are all of them, in the order of the table. Sizes of packets are payloads: 18 bytes make the shortest Ethernet
// frame over IPv4, 1472 the longest of an MTU of 1500.
func loads() []load {
	var all []load
	for _, size := range []int{shortest, 512, 1472} {
		all = append(all, load{
			name: fmt.Sprintf("udp-%d", size), kind: traffic.KindUDP, size: size, unit: report.PacketsPerSecond,
			per: 1e5, perName: "100 kpps",
			atLeast: rateBudget,
		})
	}
	for _, sessions := range []int{1, 4} {
		all = append(all, load{
			name: fmt.Sprintf("crr-%d", sessions), kind: traffic.KindCRR, sessions: sessions, unit: report.PerSecond,
			per: 1e3, perName: "1 k/s",
			atLeast: rateBudget,
		})
	}
	return append(all, load{
		name: "stream", kind: traffic.KindStream, size: 16 << 10, unit: report.BitsPerSecond, per: 1e9,
		perName: "1 Gb/s",
		atLeast: streamBudget,
	})
}

// LoadNames are the names of the cells that can be selected.
func LoadNames() []string {
	var names []string
	for _, l := range loads() {
		names = append(names, l.name)
	}
	return names
}

// cell is a load by several pairs of VMs at once.
type cell struct {
	load
	pairs int
	adapter
}

func (c cell) String() string {
	text := fmt.Sprintf("%s, %d pairs", c.name, c.pairs)
	if c.pairs == 1 {
		text = c.name + ", 1 pair"
	}
	if c.queues > 0 {
		text += ", " + c.adapter.String()
	}
	return text
}

// id identifies a cell.
func (c cell) id() string { return c.title() }

// title is what rows of the cell are called.
func (c cell) title() string {
	text := fmt.Sprintf("%s ×%d", c.name, c.pairs)
	if c.queues > 0 {
		text += ", " + c.adapter.String()
	}
	return text
}

// flowCount is how many flows a pair has in the time of a measurement, as far as that is certain.
func (c cell) flowCount(o Options) int {
	switch c.kind {
	case traffic.KindUDP:
		return max(o.flows(), 1)
	case traffic.KindCRR:
		return mostFlows // each transaction is another one
	}
	return 1
}

// cpus are the CPUs of a pair's ends. The ends of one pair run on two CPUs if they do not wait for each other, and
// share one if they take turns, because waking an idle virtual CPU takes longer than the path. Several sessions or
// pairs are spread over all CPUs.
func (c cell) cpus(pair int, all []int) (client, server []int) {
	one := []int{all[pair%len(all)]}
	switch {
	case c.pairs > 1 || c.kind == traffic.KindCRR && c.sessions == 1:
		return one, one
	case c.kind == traffic.KindCRR:
		return all, all
	}
	return all[:1], all[len(all)-1:]
}

// times are the times of one measurement of the cell. An interval that replaces a metered one has the same times.
func (c cell) times(o Options, cfg configuration) (warmup, duration time.Duration) {
	warmup, duration = o.Warmup, o.Duration
	if c.endsFlows() {
		duration = max(settledFor*duration, drainEvery)
	}
	if cfg.metering != off {
		settle := o.Settle
		if !c.endsFlows() {
			settle = min(settle, bothDrained)
		}
		warmup = max(warmup, settle)
	}
	if cfg.metering != off && cfg.background { // so that all of its flows are metered in the interval
		warmup = max(warmup, time.Duration(float64(time.Second)*float64(o.Flows)/o.FlowRate))
	}
	return warmup, duration
}

// bothDrained is the time until both sets of the kernel's tables have been drained once since metering was switched on.
// In that time all tables are read for the first time, new memory is touched and templates are sent, which is the cost
// of switching and not of metering.
const bothDrained = 2*drainEvery + 200*time.Millisecond

// settledFor is how many times as long a cell is measured that takes long to settle.
const settledFor = 2

// turns is how often each configuration is in a series of the cell. Where there are few cells, several times in each,
// so that one visit gives a standard error.
func (c cell) turns(o Options) int {
	if c.endsFlows() && len(o.Queues) == 0 {
		return 1
	}
	return max(o.Turns, 1)
}

// endsFlows reports whether the cell's flows end while it is measured.
func (c cell) endsFlows() bool { return c.kind == traffic.KindCRR }
