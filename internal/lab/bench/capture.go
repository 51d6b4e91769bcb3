package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// CaptureOptions are the options of "heddle bench capture".
type CaptureOptions struct {
	// Rounds is how often everything is measured at most; at least 1, and 10 for published numbers.
	Rounds int
	// Within is the time that all rounds may take together; 0 = no limit. A round that is not expected to end in
	// time is not begun, and one that does not is left out. The report says how many rounds there were.
	Within time.Duration
	// Warmup and Duration are for one measurement.
	Warmup, Duration time.Duration
	// Heddle is the command line of the heddle program.
	Heddle []string
	// Progress is called before every measurement; nil for silence.
	Progress func(done, total int, what string)
	// Now returns the time, for the report.
	Now func() time.Time

	measure func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)
}

// QuickCaptures are options with which everything takes less than a minute, even on a busy machine.
func QuickCaptures() CaptureOptions {
	return CaptureOptions{Rounds: 10, Within: 45 * time.Second, Warmup: 50 * time.Millisecond,
		Duration: 200 * time.Millisecond}
}

// Check returns what is wrong with the options, without doing anything.
func (o CaptureOptions) Check() error {
	if o.Rounds < 1 || o.Duration <= 0 || o.Warmup < 0 || o.Within < 0 {
		return errors.New("rounds and duration must be positive, the warm-up and the time for all rounds not negative")
	}
	return nil
}

// captureRun is a running benchmark of captures.
type captureRun struct {
	opts   CaptureOptions
	path   *path
	frames *captureFrames
	host   capturedHost
	// tunnel leads through a tunnel, tunnelHost is where it begins.
	tunnel     *path
	tunnelHost capturedHost
	cpus       []int
	tests      captureTests
	rounds     []captureRound
}

// capturedHost is a host whose agent captures, with the agent's directory.
type capturedHost struct {
	machine
	dir string
}

// captureRound is the results of one round, each by the state's name.
type captureRound struct {
	samples map[cell]traffic.Result
	// lost is the lost share of the selected frames; of the tunnel, after its name.
	lost map[string]float64
	// frames are the program's times per frame, in seconds; of the tunnel's, after their names.
	frames map[string]float64
}

// Capture measures what captures cost the traffic between two guests, and the program itself: each round measures all
// states one after the other, in an order that rotates. It leaves nothing behind, also when ctx ends.
func Capture(ctx context.Context, opts CaptureOptions) (rep *report.Report, err error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	if opts.measure == nil {
		opts.measure = traffic.Processes{Program: append(slices.Clone(opts.Heddle), "traffic")}.Measure
	}
	r := &captureRun{opts: opts}
	for _, t := range switchTests() {
		if t.name != "crr" { // its result would be the same as for udp and rr
			r.tests = append(r.tests, t)
		}
	}
	if r.cpus, err = twoCPUs(nil); err != nil {
		return nil, err
	}
	env := report.Collect(opts.Now())
	if r.path, err = (Peer{Name: peerHeddle, setup: r.setup}).open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, r.path.clean.run()) }()
	if err := r.openTunnel(ctx); err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, r.tunnel.clean.run()) }()
	if r.frames, err = newCaptureFrames(); err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, r.frames.close()) }()
	if err := r.measure(ctx); err != nil {
		if ctx.Err() != nil { // errors then only say that the run was ended
			return nil, ctx.Err()
		}
		return nil, err
	}
	return r.report(env), nil
}

// setup connects the guests like setupHeddle, and remembers how to reach the agent.
func (r *captureRun) setup(_ context.Context, p *path) error {
	host, err := p.hosted(peerHeddle, nil)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hb-capture-")
	if err != nil {
		return err
	}
	p.clean.add(func() error { return os.RemoveAll(dir) })
	config := filepath.Join(dir, "heddle.yaml")
	if err := os.WriteFile(config, []byte(p.heddleConfig()), 0o600); err != nil {
		return err
	}
	r.host = capturedHost{machine{ns: host}, dir}
	return p.startAgent(r.host.machine, r.opts.Heddle, dir, config)
}

// measure makes as many rounds as there is time for.
func (r *captureRun) measure(ctx context.Context) error {
	n, err := inTime(ctx, r.opts.Rounds, r.opts.Within, func(ctx context.Context, n int) error {
		done, err := r.round(ctx, n)
		if err == nil {
			r.rounds = append(r.rounds, done)
		}
		return err
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("this machine is too busy: not one round was over within %v; allow more time (--within), or "+
			"measure when it has less to do", r.opts.Within)
	}
	return err
}

// inTime makes at most the given number of rounds within the given time (0 = no bound), and returns how many
// succeeded. A round that is not expected to end in time is not begun. If one does not end in time, its context ends
// with the time, and that is not an error.
func inTime(ctx context.Context, rounds int, limit time.Duration, round func(ctx context.Context, n int) error) (int,
	error) {
	began := time.Now()
	within, cancel := ctx, func() {}
	if limit > 0 {
		within, cancel = context.WithDeadline(ctx, began.Add(limit))
	}
	defer cancel()
	for n := range rounds {
		took := time.Since(began)
		if limit > 0 && n > 0 && took+took/time.Duration(n) > limit {
			return n, nil
		}
		switch err := round(within, n); {
		case err != nil && ctx.Err() == nil && within.Err() != nil:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return rounds, nil
}

// round measures everything once.
func (r *captureRun) round(ctx context.Context, n int) (captureRound, error) {
	m := captureRound{samples: map[cell]traffic.Result{}, lost: map[string]float64{}, frames: map[string]float64{}}
	guests, program, tunnel := guestStates(), programStates(), tunnelStates()
	steps := len(guests) + len(program) + len(tunnel)
	tell := func(step int, what string) {
		if r.opts.Progress != nil {
			r.opts.Progress(n*steps+step, r.opts.Rounds*steps, fmt.Sprintf("round %d of %d: %s", n+1, r.opts.Rounds,
				what))
		}
	}
	for i := range guests {
		s := guests[(i+n)%len(guests)]
		tell(i, s.name)
		if err := r.under(ctx, s, n, m); err != nil {
			return m, fmt.Errorf("round %d, capture %s: %w", n+1, s.name, err)
		}
	}
	for i := range program {
		s := program[(i+n)%len(program)]
		tell(len(guests)+i, "program alone, "+s.name)
		t, err := r.frames.measure(ctx, s)
		if err != nil {
			return m, fmt.Errorf("round %d, program alone, capture %s: %w", n+1, s.name, err)
		}
		m.frames[s.name] = t.Seconds()
	}
	for i := range tunnel {
		s := tunnel[(i+n)%len(tunnel)]
		tell(len(guests)+len(program)+i, "tunnel, "+s.name)
		if err := r.tunnelRound(ctx, s, n, m); err != nil {
			return m, fmt.Errorf("round %d, tunnel, capture %s: %w", n+1, s.name, err)
		}
	}
	return m, nil
}

// captureTests are the tests of traffic.
type captureTests []test

// inTurn calls f for each test with the CPUs of its two ends. Each round begins with another test, because starting or
// ending something disturbs the first one after it.
func (all captureTests) inTurn(ctx context.Context, n int, f func(t test, client, server []int) error,
	cpus []int) error {
	for i := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := all[(i+n)%len(all)]
		client, server := cpus[:1], cpus[:1]
		if t.apart {
			server = cpus[1:]
		}
		if err := f(t, client, server); err != nil {
			return err
		}
	}
	return nil
}

// under measures every test while the state's capture runs.
func (r *captureRun) under(ctx context.Context, s captureState, n int, into captureRound) error {
	c, err := r.begin(ctx, r.host, s)
	if err != nil {
		return err
	}
	defer c.kill()
	if err := r.tests.inTurn(ctx, n, func(t test, client, server []int) error {
		load := traffic.Load{Kind: t.kind, Warmup: r.opts.Warmup, Duration: r.opts.Duration}
		res, err := r.opts.measure(ctx, r.path.pair(client, server), load)
		into.samples[cell{t.name, s.name}] = res
		return err
	}, r.cpus); err != nil {
		return err
	}
	return r.ended(c, "", s, into)
}

// begin begins the state's capture on a host; nil where the state has none.
func (r *captureRun) begin(ctx context.Context, at capturedHost, s captureState) (*runningCapture, error) {
	if s.args == nil {
		return nil, nil
	}
	return r.start(ctx, at, s.args)
}

// ended ends a capture, and notes what it lost under a name.
func (r *captureRun) ended(c *runningCapture, name string, s captureState, into captureRound) error {
	if c == nil {
		return nil
	}
	selected, lost, err := c.end()
	if err == nil {
		into.lost[name+s.name] = float64(lost) / float64(max(selected, 1))
	}
	return err
}
