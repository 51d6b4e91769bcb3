// Package run measures the experiments on real traffic: it builds each row's lab, sends the row's traffic, and reads what
// happened from the agents' counters.
package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
)

// Options say how an experiment runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick measures shorter, at the price of a wider spread.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is told what is being done now: the row's number from 1, how many there are, its name, and the step.
	Progress func(row, rows int, name, step string)
}

// effort is how long a row measures.
type effort struct {
	pings    int
	pingRate float64 // per second
	rounds   int     // of iperf3
	stream   time.Duration
	warmup   time.Duration
}

var (
	thorough = effort{pings: 21, pingRate: 20, rounds: 4, stream: time.Second, warmup: 200 * time.Millisecond}
	quick    = effort{pings: 11, pingRate: 20, rounds: 2, stream: time.Second, warmup: 100 * time.Millisecond}
)

// Measured is what one row came to.
type Measured struct {
	Row *experiment.Row
	// Throughput is bits per second of payload by iperf3, one value a round; empty when iperf3 is not installed.
	Throughput []float64
	// Stream is the same by Heddle's own sender.
	Stream []float64
	// Retransmits counts segments over all rounds of both.
	Retransmits uint64
	// RepliesPerPing is the mean over all but the last request; RTT, in seconds, the median time to the first reply.
	RepliesPerPing, RTT float64
	// PingUplinkFrames are the copies handed to uplinks per ping, UplinkFrames those during all rounds. A frame that the
	// kernel keeps whole for segmentation counts once.
	PingUplinkFrames float64
	UplinkFrames     uint64
	// UplinkShare is the bytes handed to uplinks per byte of payload sent in the rounds.
	UplinkShare float64
	// CPU is seconds of all processors together per 10⁹ bytes of payload, one value a round.
	CPU []float64
}

// Experiment runs the rows of an experiment and returns what was measured, in their order. It leaves nothing behind, also
// when ctx ends on the way.
func Experiment(ctx context.Context, e *experiment.Experiment, o Options) (_ []Measured, err error) {
	rows, err := selected(e, o.Rows)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, effort: thorough, name: fmt.Sprintf("run%d", os.Getpid())}
	if o.Quick {
		r.effort = quick
	}
	defer func() { err = errors.Join(err, r.clear()) }()
	var all []Measured
	for i, row := range rows {
		m, err := r.row(ctx, row, func(step string) {
			if o.Progress != nil {
				o.Progress(i+1, len(rows), row.Name, step)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func selected(e *experiment.Experiment, names []string) ([]*experiment.Row, error) {
	var rows []*experiment.Row
	for i := range e.Rows {
		if len(names) == 0 {
			rows = append(rows, &e.Rows[i])
		}
	}
	for _, n := range names {
		row := e.Row(n)
		if row == nil {
			return nil, fmt.Errorf("experiment %q has no row %q", e.Name, n)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// runner holds the lab that is up.
type runner struct {
	Options
	effort effort
	name   string
	lab    *lab.Lab
	up     *scenario.Scenario // what the lab was built from
}

// clear takes down the lab that is up, if any.
func (r *runner) clear() error {
	if r.lab == nil {
		return nil
	}
	l := r.lab
	r.lab, r.up = nil, nil
	return l.Down()
}

// ensure brings up the row's lab, unless it is up already.
func (r *runner) ensure(ctx context.Context, row *experiment.Row, progress func(string)) error {
	if r.up == row.Scenario {
		return nil
	}
	if err := r.clear(); err != nil {
		return err
	}
	l, err := lab.Build(ctx, row.Scenario, lab.Options{Name: r.name, RunDir: r.RunDir, Program: r.Program, Progress: progress})
	if err != nil {
		return err
	}
	r.lab, r.up = l, row.Scenario
	return nil
}

// row measures one row: first the pings, while the network is quiet, then throughput.
func (r *runner) row(ctx context.Context, row *experiment.Row, progress func(string)) (Measured, error) {
	m := Measured{Row: row}
	if err := r.ensure(ctx, row, progress); err != nil {
		return m, err
	}
	if err := r.apart(ctx, row); err != nil {
		return m, err
	}
	ends, err := r.ends(row)
	if err != nil {
		return m, err
	}
	progress("waiting for the first answer")
	if err := r.firstAnswer(ctx, ends); err != nil {
		return m, err
	}
	progress("ping")
	if err := r.ping(ctx, ends, &m); err != nil {
		return m, err
	}
	return m, r.throughput(ctx, ends, &m, progress)
}

// apart makes sure that the named ports use different uplinks: without it a row measures something else.
func (r *runner) apart(ctx context.Context, row *experiment.Row) error {
	chosen := map[uint32]string{}
	for _, p := range row.Apart {
		state, err := r.lab.Agent(p.Host).State(ctx)
		if err != nil {
			return err
		}
		uplinks := uint32(0)
		for _, u := range state.Uplinks {
			if u.Switch == p.Switch {
				uplinks++
			}
		}
		for _, port := range state.Ports {
			if port.Switch != p.Switch || port.Name != p.Port || uplinks == 0 {
				continue
			}
			// The originating-port policy: port number modulo active uplinks (S42, D10).
			if other, taken := chosen[port.Number%uplinks]; taken {
				return fmt.Errorf("ports %s and %s use the same uplink; this row needs them on different ones", other, p.Port)
			}
			chosen[port.Number%uplinks] = p.Port
		}
	}
	return nil
}

// addrPort is an address without port, as the traffic sender takes it for echo.
func addrPort(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }
