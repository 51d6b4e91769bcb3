package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heddle/internal/report"
	"heddle/internal/traffic"
)

// CaptureOptions is what "heddle bench capture" shall do.
type CaptureOptions struct {
	// Rounds is how often everything is measured; at least 1, and 10 for numbers that are published.
	Rounds int
	// Warmup and Duration are those of one measurement.
	Warmup, Duration time.Duration
	// Heddle is the command line of the heddle program.
	Heddle []string
	// Progress is called before every measurement; nil for silence.
	Progress func(done, total int, what string)
	// Now tells the time, for the report.
	Now func() time.Time

	measure func(context.Context, traffic.Pair, traffic.Load) (traffic.Result, error)
}

// Quick sets rounds and times so that all of it takes less than a minute.
func (o *CaptureOptions) Quick() {
	o.Rounds, o.Warmup, o.Duration = 6, 50*time.Millisecond, 250*time.Millisecond
}

// captureOff is the state that the others are compared with.
const captureOff = "off"

// captureState is a capture that runs while the guests exchange traffic.
type captureState struct {
	name    string
	args    []string // of "heddle capture"; nil = none runs
	segment uint16   // what the arguments say, for the program alone
	filter  string
	snap    int
}

// captureStates are all of them. The guests' frames are Ethernet of IP, so that the filter looks at each and matches none.
func captureStates() []captureState {
	const filter = "tcp port 1 or udp port 1"
	return []captureState{
		{name: captureOff},
		{name: "of another segment", args: []string{"any", "--segment", "4000"}, segment: 4000},
		{name: "filter matches nothing", args: []string{"any", "--filter", filter}, filter: filter},
		{name: "everything, 96 bytes", args: []string{"any", "-s", "96"}, snap: 96},
		{name: "everything, whole", args: []string{"any"}},
	}
}

// captureRun is a benchmark of captures under way.
type captureRun struct {
	opts    CaptureOptions
	path    *path
	host    machine
	dir     string
	cpus    []int
	tests   []test
	samples map[cell][]traffic.Result
	// shares are, by state, which part of what was selected was lost, one per round.
	shares map[string][]float64
}

// Capture measures what captures cost the traffic between two guests: in each round all states follow one another, in an order that
// rotates. It leaves nothing behind, also when ctx ends.
func Capture(ctx context.Context, opts CaptureOptions) (rep *report.Report, err error) {
	if opts.measure == nil {
		opts.measure = traffic.Processes{Program: append(slices.Clone(opts.Heddle), "traffic")}.Measure
	}
	r := &captureRun{opts: opts, samples: map[cell][]traffic.Result{}, shares: map[string][]float64{}}
	for _, t := range switchTests() {
		if t.name != "crr" { // it says what udp and rr say
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
	if err := r.measure(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	frames, err := measureFrames(ctx, opts.Rounds)
	if err != nil {
		return nil, err
	}
	rep = r.report(env)
	rep.Rows = append(rep.Rows, frames.rows()...)
	return rep, nil
}

// setup joins the guests as setupHeddle does, and remembers how to ask the agent.
func (r *captureRun) setup(_ context.Context, p *path) error {
	host, err := p.hosted(peerHeddle, nil)
	if err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "hb-capture-"); err != nil {
		return err
	}
	p.clean.add(func() error { return os.RemoveAll(r.dir) })
	config := filepath.Join(r.dir, "heddle.yaml")
	if err := os.WriteFile(config, []byte(p.heddleConfig()), 0o600); err != nil {
		return err
	}
	r.host = machine{ns: host}
	return p.startAgent(r.host, r.opts.Heddle, r.dir, config)
}

func (r *captureRun) measure(ctx context.Context) error {
	states := captureStates()
	done, total := 0, r.opts.Rounds*len(states)
	for round := range r.opts.Rounds {
		for i := range states {
			s := states[(i+round)%len(states)]
			if r.opts.Progress != nil {
				r.opts.Progress(done, total, fmt.Sprintf("round %d of %d: %s", round+1, r.opts.Rounds, s.name))
			}
			if err := r.under(ctx, s, round); err != nil {
				return fmt.Errorf("round %d, capture %s: %w", round+1, s.name, err)
			}
			done++
		}
	}
	return nil
}

// under measures every test while the state's capture runs. Each round begins with another test: what has just been started or
// ended disturbs the first.
func (r *captureRun) under(ctx context.Context, s captureState, round int) error {
	var c *runningCapture
	if s.args != nil {
		var err error
		if c, err = r.start(s.args); err != nil {
			return err
		}
		defer c.kill()
	}
	for i := range r.tests {
		t := r.tests[(i+round)%len(r.tests)]
		client, server := r.cpus[:1], r.cpus[:1]
		if t.apart {
			server = r.cpus[1:]
		}
		load := traffic.Load{Kind: t.kind, Warmup: r.opts.Warmup, Duration: r.opts.Duration}
		res, err := r.opts.measure(ctx, r.path.pair(client, server), load)
		if err != nil {
			return err
		}
		at := cell{t.name, s.name}
		r.samples[at] = append(r.samples[at], res)
	}
	if c == nil {
		return nil
	}
	selected, lost, err := c.end()
	if err == nil {
		r.shares[s.name] = append(r.shares[s.name], float64(lost)/float64(max(selected, 1)))
	}
	return err
}

// runningCapture is a "heddle capture" that writes into nothing.
type runningCapture struct {
	cmd  *exec.Cmd
	errs *bufio.Reader
}

// start starts a capture and returns when it captures.
func (r *captureRun) start(args []string) (*runningCapture, error) {
	all := append(append(slices.Clone(r.opts.Heddle[1:]), "capture", "--agent", "bench", "--run-dir", filepath.Join(r.dir, "run"), "-w", os.DevNull), args...)
	cmd := exec.Command(r.opts.Heddle[0], all...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := r.host.ns.Start(cmd); err != nil {
		return nil, fmt.Errorf("start a capture: %w", err)
	}
	c := &runningCapture{cmd: cmd, errs: bufio.NewReader(errs)}
	line, err := c.errs.ReadString('\n')
	if err != nil || !strings.Contains(line, "capturing") {
		c.kill()
		return nil, fmt.Errorf("the capture does not begin: %s", strings.TrimSpace(line))
	}
	return c, nil
}

// kill ends a capture that was not ended.
func (c *runningCapture) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

var captureSummary = regexp.MustCompile(`(\d+) selected by the switch, (\d+) lost`)

// end ends a capture in order and reads its counts.
func (c *runningCapture) end() (selected, lost uint64, err error) {
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, 0, fmt.Errorf("end the capture: %w", err)
	}
	said, err := io.ReadAll(c.errs)
	if err != nil {
		return 0, 0, fmt.Errorf("read how the capture ended: %w", err)
	}
	if err := c.cmd.Wait(); err != nil {
		return 0, 0, fmt.Errorf("the capture: %w: %s", err, said)
	}
	m := captureSummary.FindSubmatch(said)
	if m == nil {
		return 0, 0, fmt.Errorf("the capture does not say what it counted: %s", said)
	}
	selected, _ = strconv.ParseUint(string(m[1]), 10, 64) // digits only
	lost, _ = strconv.ParseUint(string(m[2]), 10, 64)
	return selected, lost, nil
}

func (r *captureRun) of(t test, state string) []float64 {
	var v []float64
	for _, s := range r.samples[cell{t.name, state}] {
		v = append(v, t.value(s))
	}
	return v
}

// cpu is what a unit of the test cost both ends: on a machine that does other work too it holds still where rates do not.
func (r *captureRun) cpu(t test, state string) []report.Field {
	of := func(state string) (v []float64) {
		for _, s := range r.samples[cell{t.name, state}] {
			x, y := t.cpu(s)
			v = append(v, x+y)
		}
		return v
	}
	return []report.Field{
		{Name: "cpu_s", Title: "CPU", Value: report.Summarise(of(state)), Unit: report.Seconds, Brief: true},
		{Name: "cpu_per", Value: t.cpuUnit, Hidden: true},
		{Name: "cpu_ratio_off", Title: "CPU of off", Value: report.Summarise(report.Ratios(of(state), of(captureOff))), Unit: report.Ratio},
	}
}

func (r *captureRun) report(env report.Environment) *report.Report {
	rep := &report.Report{Name: "bench capture", Environment: env}
	for _, t := range r.tests {
		for _, s := range captureStates() {
			row := report.Row{
				{Name: "test", Value: t.name},
				{Name: "capture", Value: s.name},
				{Name: "unit", Value: string(t.unit), Hidden: true},
				{Name: "value", Title: "median (quartiles)", Value: report.Summarise(r.of(t, s.name)), Unit: t.unit},
				{Name: "ratio_off", Title: "of off", Value: report.Summarise(report.Ratios(r.of(t, s.name), r.of(t, captureOff))), Unit: report.Ratio},
			}
			row = append(row, r.cpu(t, s.name)...)
			if s.args != nil {
				row = append(row, report.Field{Name: "lost", Title: "lost", Value: report.Summarise(r.shares[s.name]), Unit: report.Ratio, Brief: true})
			} else {
				row = append(row, report.Field{Name: "lost", Title: "lost", Value: nil})
			}
			rep.Rows = append(rep.Rows, append(row, report.Field{Name: "samples", Value: r.of(t, s.name), Hidden: true}))
		}
	}
	rep.Notes = append(rep.Notes, fmt.Sprintf("%d interleaved rounds of %v per test after %v of warm-up; ratios are medians (quartiles) of the rounds' ratios. "+
		"program is the kernel program alone on one 60-byte frame from port to port, by repeated test runs: captured, it is captured twice. "+
		"CPU is the time both ends took, with what the kernel does for them, per GB, transaction or packet; lost is the part of what a capture "+
		"selected that its reader was too slow for. Captures write to %s. The reader, the sender and the receiver share %d CPUs: what a capture of everything takes from the "+
		"guests is mostly the CPU that copying and writing needs. Off, the devices have the live program, which knows nothing of captures.",
		r.opts.Rounds, r.opts.Duration, r.opts.Warmup, os.DevNull, env.CPUs))
	return rep
}
