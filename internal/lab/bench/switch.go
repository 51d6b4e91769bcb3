package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// SwitchOptions are the options of "heddle bench switch", and of "heddle bench overlay".
type SwitchOptions struct {
	// Rounds is how often every cell (a test on a peer) is measured; at least 1, and 10 for published numbers. On a
	// machine that others use too, many short rounds give better pairs than few long ones.
	Rounds int
	// Warmup and Duration are those of one cell.
	Warmup, Duration time.Duration
	// Only names the peers; empty = all that are available.
	Only []string
	// CPUs are the two that the ends are pinned to; empty = the first two this process may use.
	CPUs []int
	// Heddle is the command line of the heddle program, such as {"/usr/bin/heddle"}.
	Heddle []string
	// Progress is called before every cell; nil for silence.
	Progress func(done, total int, what string)
	// Now returns the time, for the report.
	Now func() time.Time

	measure func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)
}

// test is one of the loads, and how its one number is read.
type test struct {
	name  string
	kind  traffic.Kind
	unit  report.Unit
	value func(traffic.Result) float64
	// cpu is the CPU time of the ends per unit, including the kernel's work on the way. It depends less than the
	// rate on other work of the machine.
	cpu     func(traffic.Result) (sender, sink float64)
	cpuUnit string
	// apart puts the ends on two CPUs. Ends that take turns share one: waking an idle virtual CPU takes longer than
	// the path under test and varies far more.
	apart bool
	// routed: to the guest that a router separates from the first one.
	routed bool
}

func switchTests() []test {
	perSecond := func(r traffic.Result) float64 { return r.Transactions.PerSecond }
	return []test{
		{
			name: "stream", kind: traffic.KindStream, unit: report.BitsPerSecond, apart: true, cpuUnit: "GB",
			cpu:   cpuPerGB,
			value: func(r traffic.Result) float64 { return r.Stream.BitsPerSecond },
		},
		{name: "rr", kind: traffic.KindRR, unit: report.PerSecond, value: perSecond, cpuUnit: "transaction",
			cpu: cpuPerTransaction},
		{name: "crr", kind: traffic.KindCRR, unit: report.PerSecond, value: perSecond, cpuUnit: "transaction",
			cpu: cpuPerTransaction},
		{
			name: "udp", kind: traffic.KindUDP, unit: report.PacketsPerSecond, apart: true, cpuUnit: "packet",
			cpu:   cpuPerPacket,
			value: traffic.Result.ReceivedPerSecond,
		},
	}
}

// A sink counts from its start, but a sender only in the measured interval, so each is divided by what it carried
// itself. Dividing by zero gives NaN or infinity, which the statistics leave out.

func cpuPerGB(r traffic.Result) (sender, sink float64) {
	return 1e9 * r.Stream.CPUSeconds / float64(r.Stream.Bytes), 1e9 * r.Sink.CPUSeconds / float64(r.Sink.Bytes)
}

// cpuPerTransaction assumes that requests have one byte, so that the sink's bytes are its transactions.
func cpuPerTransaction(r traffic.Result) (sender, sink float64) {
	return r.Transactions.CPUSeconds / float64(r.Transactions.Count), r.Sink.CPUSeconds / float64(r.Sink.Bytes)
}

func cpuPerPacket(r traffic.Result) (sender, sink float64) {
	return r.Sent.CPUSeconds / float64(r.Sent.Packets), r.Sink.CPUSeconds / float64(r.Sink.Packets.Received)
}

// comparison is what a benchmark of switches compares.
type comparison struct {
	name string // the report's
	// peers are all of them, in the order of the table, with the program that runs Heddle's agents.
	peers func(heddle []string) []Peer
	// to are the peers that every row is compared with; their CPU time with the first one's.
	to      []string
	tests   []test
	budgets []switchBudget
	notes   []string
}

func switches() comparison {
	return comparison{name: "bench switch", peers: peers, to: []string{peerDirect, peerBridge},
		tests: switchTests(), budgets: switchBudgets()}
}

// run is a running benchmark of switches.
type run struct {
	comparison
	opts    SwitchOptions
	chosen  []Peer
	paths   []*path // one per chosen peer
	samples map[cell][]traffic.Result
}

// cell names a test on a peer.
type cell struct{ test, peer string }

// Switch compares Heddle with other ways to connect two guests of one host.
func Switch(ctx context.Context, opts SwitchOptions) (*report.Report, error) {
	return switches().measure(ctx, opts)
}

// measure measures all peers, interleaved: within a round and test they follow one another closely, in an order that
// rotates from round to round, so that a disturbance of the machine affects all alike. It leaves nothing behind, also
// when ctx ends.
func (c comparison) measure(ctx context.Context, opts SwitchOptions) (rep *report.Report, err error) {
	if err := c.check(opts); err != nil {
		return nil, err
	}
	chosen, err := choose(c.peers(opts.Heddle), opts.Only)
	if err != nil {
		return nil, err
	}
	if opts.CPUs, err = twoCPUs(opts.CPUs); err != nil {
		return nil, err
	}
	if opts.measure == nil {
		opts.measure = traffic.Processes{Program: append(slices.Clone(opts.Heddle), "traffic")}.Measure
	}
	r := &run{comparison: c, opts: opts, samples: map[cell][]traffic.Result{}}
	env := report.Collect(opts.Now())
	defer func() { err = orLeft(err, r.close()) }()
	if err = r.open(ctx, chosen); err == nil {
		err = r.measure(ctx)
	}
	switch {
	case err != nil && ctx.Err() != nil: // errors then only say that the run was ended
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return r.report(env), nil
}

// Check returns what is wrong with the options of "heddle bench switch", without doing anything.
func (o SwitchOptions) Check() error { return switches().check(o) }

func (c comparison) check(o SwitchOptions) error {
	if _, err := choose(c.peers(nil), o.Only); err != nil {
		return err
	}
	if o.Rounds < 1 || o.Duration <= 0 || o.Warmup < 0 {
		return errors.New("rounds and duration must be positive, the warm-up not negative")
	}
	if n := len(o.CPUs); n != 0 && n != 2 {
		return fmt.Errorf("%d CPUs to pin to: want two, one per end", n)
	}
	return nil
}

// twoCPUs picks the CPUs of the ends.
func twoCPUs(asked []int) ([]int, error) {
	if len(asked) == 2 {
		return asked, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read CPU affinity: %w", err)
	}
	var cpus []int
	for c := 0; len(cpus) < min(2, set.Count()); c++ {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	if len(cpus) == 1 {
		cpus = append(cpus, cpus[0])
	}
	return cpus, nil
}

// orLeft is err, unless something could not be removed, which is more important than how the run ended.
func orLeft(err, left error) error {
	switch {
	case left == nil:
		return err
	case err == nil:
		return left
	}
	return fmt.Errorf("%w (the run ended with: %v)", left, err)
}

// open sets up the peers. One that this machine doesn't have is left out with a note, unless it was asked for by name.
func (r *run) open(ctx context.Context, chosen []Peer) error {
	for _, p := range chosen {
		pa, err := p.open(ctx)
		if errors.Is(err, errUnavailable) && !slices.Contains(r.opts.Only, p.Name) {
			r.notes = append(r.notes, fmt.Sprintf("%s is left out: %v.", p.Name, err))
			continue
		}
		if err != nil {
			return err
		}
		r.chosen, r.paths = append(r.chosen, p), append(r.paths, pa)
	}
	return nil
}

func (r *run) close() error {
	var errs []error
	for _, p := range r.paths {
		errs = append(errs, p.clean.run())
	}
	return errors.Join(errs...)
}

// measure fills the samples.
func (r *run) measure(ctx context.Context) error {
	done, total := 0, r.opts.Rounds*len(r.tests)*len(r.chosen)
	for round := range r.opts.Rounds {
		for t, test := range r.tests {
			for i := range r.chosen {
				// Each test starts the round with another peer, too.
				at := (i + round + t) % len(r.chosen)
				name := r.chosen[at].Name
				if r.opts.Progress != nil {
					r.opts.Progress(done, total, fmt.Sprintf("round %d of %d: %s over %s", round+1, r.opts.Rounds,
						test.name, name))
				}
				res, err := r.one(ctx, test, r.paths[at])
				if err != nil {
					return fmt.Errorf("round %d, %s over %s: %w", round+1, test.name, name, err)
				}
				c := cell{test.name, name}
				r.samples[c] = append(r.samples[c], res)
				done++
			}
		}
	}
	return nil
}

func (r *run) one(ctx context.Context, t test, p *path) (traffic.Result, error) {
	client, server := r.opts.CPUs[:1], r.opts.CPUs[:1]
	if t.apart {
		server = r.opts.CPUs[1:]
	}
	load := traffic.Load{Kind: t.kind, Warmup: r.opts.Warmup, Duration: r.opts.Duration}
	to := p.b
	if t.routed {
		to = p.far
	}
	return r.opts.measure(ctx, p.pairTo(to, client, server), load)
}

// Quick sets rounds and times so that all peers and tests take less than a minute.
func (o *SwitchOptions) Quick() {
	o.Rounds, o.Warmup, o.Duration = 10, 40*time.Millisecond, 130*time.Millisecond
}
