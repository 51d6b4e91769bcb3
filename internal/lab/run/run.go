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
	// Quick measures for a shorter time; the spread is wider.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// effort is how much is measured.
type effort struct {
	pings    int
	pingRate float64 // per second
	rounds   int
	stream   time.Duration // of our own sender; iperf3 takes whole seconds only
	warmup   time.Duration
}

// effort is chosen so that eight rows take some two minutes, and with Quick less than one.
func (o Options) effort() effort {
	if o.Quick {
		return effort{pings: 11, pingRate: 25, rounds: 2, stream: 500 * time.Millisecond,
			warmup: 100 * time.Millisecond}
	}
	return effort{pings: 21, pingRate: 25, rounds: 4, stream: time.Second, warmup: 200 * time.Millisecond}
}

// Measured is the result of one row.
type Measured struct {
	Row *experiment.Row
	// Throughput is bits per second of payload by iperf3, one value per round; empty if iperf3 is not installed.
	// All rows take turns in each round, so that the n-th values were measured one after the other.
	Throughput []float64
	// Stream is the same, measured by Heddle's own sender.
	Stream []float64
	// Retransmits counts segments over all rounds of both.
	Retransmits uint64
	// RepliesPerPing is the mean over all but the last request; RTT, in seconds, the median time to the first reply.
	RepliesPerPing, RTT float64
	// PingUplinkFrames are the copies handed to uplinks per ping, UplinkFrames those during all rounds. A frame
	// that the kernel holds whole for segmentation counts once.
	PingUplinkFrames float64
	UplinkFrames     uint64
	// UplinkBytes are the bytes handed to uplinks during all rounds, Payload the bytes of payload that arrived in them.
	UplinkBytes, Payload float64
	// LoadP50 and LoadP99 are round-trip times of pings beside our own sender, in seconds, one value a round.
	LoadP50, LoadP99 []float64
	// Duplicates is how long after the first reply to a ping without load the further ones came, in seconds: the
	// median of the second reply, the third, and so on.
	Duplicates []float64
	// UplinkDroppedIn and UplinkDroppedOut are frames that uplinks dropped when they came in and before they went
	// out, during all rounds; without what is left out in normal operation.
	UplinkDroppedIn, UplinkDroppedOut uint64
	// CPU is seconds of all processors together per 10⁹ bytes of payload, one value a round.
	CPU []float64
}

// Experiment runs the rows of an experiment and returns their results, in their order. All labs are up at the same
// time, and the rows take turns in each round of throughput, so that a temporary disturbance of the machine affects all
// rows. It leaves nothing behind, also when ctx ends on the way.
func Experiment(ctx context.Context, e *experiment.Experiment, o Options) (_ []Measured, err error) {
	rows, err := e.Select(o.Rows)
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o, effort: o.effort(), labs: map[*scenario.Scenario]*lab.Lab{}}
	defer func() { err = errors.Join(err, r.clear()) }()
	all := make([]Measured, len(rows))
	step := func(what string, do func(*Measured, func(string)) error) error {
		for i, row := range rows {
			all[i].Row = row
			say := func(detail string) {
				if o.Progress != nil {
					o.Progress(fmt.Sprintf("%s, %d of %d: %s%s", what, i+1, len(rows), row.Name, detail))
				}
			}
			say("")
			if err := do(&all[i], say); err != nil {
				return fmt.Errorf("%s: %w", row.Name, err)
			}
		}
		return nil
	}
	err = step("labs", func(m *Measured, say func(string)) error {
		return r.prepare(ctx, m.Row, func(what string) { say(": " + what) })
	})
	if err != nil {
		return nil, err
	}
	if err := step("pings", func(m *Measured, _ func(string)) error { return r.ping(ctx, m) }); err != nil {
		return nil, err
	}
	for i := range r.effort.rounds {
		what := fmt.Sprintf("throughput, round %d of %d", i+1, r.effort.rounds)
		if err := step(what, func(m *Measured, _ func(string)) error { return r.round(ctx, m) }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// runner contains the running labs, by their scenario.
type runner struct {
	Options
	effort effort
	labs   map[*scenario.Scenario]*lab.Lab
}

// clear takes down the labs that are up.
func (r *runner) clear() error {
	var errs []error
	for _, l := range r.labs {
		errs = append(errs, l.Down())
	}
	return errors.Join(errs...)
}

// labName is the name of the n-th lab of this process, so that experiments can run at the same time.
func labName(n int) string { return fmt.Sprintf("run%d-%d", os.Getpid(), n) }

// prepare builds the row's lab, unless it is up already, and waits until its traffic passes.
func (r *runner) prepare(ctx context.Context, row *experiment.Row, progress func(string)) error {
	if r.labs[row.Scenario] == nil {
		l, err := lab.Build(ctx, row.Scenario, lab.Options{
			Name: labName(len(r.labs) + 1), RunDir: r.RunDir, Program: r.Program, Progress: progress,
		})
		if err != nil {
			return err
		}
		r.labs[row.Scenario] = l
	}
	if err := r.apart(ctx, row); err != nil {
		return err
	}
	progress("waiting for the first answer")
	if err := r.firstAnswer(ctx, row); err != nil {
		return err
	}
	return keepNeighbours(r.labs[row.Scenario])
}

// apart makes sure that the named ports use different uplinks; otherwise the row would measure something else.
func (r *runner) apart(ctx context.Context, row *experiment.Row) error {
	chosen := map[uint32]string{}
	for _, p := range row.Apart {
		state, err := r.labs[row.Scenario].Agent(p.Host).State(ctx)
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
				return fmt.Errorf("ports %s and %s use the same uplink; this row needs them on different ones", other,
					p.Port)
			}
			chosen[port.Number%uplinks] = p.Port
		}
	}
	return nil
}

// addrPort is an address without port, as the traffic sender takes it for echo.
func addrPort(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }
