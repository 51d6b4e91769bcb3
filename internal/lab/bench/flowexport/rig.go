package flowexport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/lab/cputime"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
	"heddle/internal/lab/traffic"
)

// rig is the running lab.
type rig struct {
	opts       Options
	lab        *lab.Lab
	hosts      [len(sides)]*netns.NS
	agents     [len(sides)]*api.Client
	pids       [len(sides)]int
	fleet      fleet
	vms        [len(sides)][]*netns.NS // by number; nil for a guest
	guests     [len(sides)]map[int]*guest
	counters   [len(sides)][]*counters // of the VMs, by number
	collectors [len(sides)]*collector
	cpus       []int
	metering   metering // the active one
	exporting  metering // the last active one that was not off
	// meters says whether the agents meter flows at all; if flows cannot be metered, nothing is exported, which is
	// a missed budget.
	meters bool
	// ending: flows have just ended that are not exported yet.
	ending bool
	// unfinished is how often agents did not export them in time.
	unfinished int
}

const (
	joinPatience = time.Minute // ends a hopeless wait; a busy machine may take long to verify and load the programs
	joinEvery    = 100 * time.Millisecond
)

// build makes the lab with these VMs and returns when all of them reach their partners. On an error nothing is left.
func build(ctx context.Context, o Options, f fleet) (_ *rig, err error) {
	s, err := scenario.Parse("flow-export.yaml", []byte(scenarioText(f.adapters, o.Overlay)), nil)
	if err != nil {
		return nil, err
	}
	say := func(what string) {
		if o.Progress != nil {
			o.Progress(0, 1, what)
		}
	}
	r := &rig{opts: o, fleet: f, metering: off, exporting: off}
	r.lab, err = lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("fe%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Heddle, Progress: say})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	for c := range runtime.NumCPU() {
		r.cpus = append(r.cpus, c)
	}
	for _, s := range sides {
		if r.hosts[s], err = r.lab.NS(s.host()); err != nil {
			return nil, err
		}
	}
	if err := r.startGuests(ctx, say); err != nil {
		return nil, err
	}
	for _, s := range sides {
		if err := r.find(ctx, s); err != nil {
			return nil, err
		}
	}
	say("waiting until VMs reach each other")
	for n := range f.adapters {
		if err := r.join(ctx, n); err != nil {
			return nil, err
		}
	}
	return r, r.pauseGuests(ctx)
}

// find finds what belongs to a side.
func (r *rig) find(ctx context.Context, s side) (err error) {
	for n, a := range r.fleet.adapters {
		var ns *netns.NS
		var counts *counters
		if a.emulated() {
			counts, err = openTap(r.hosts[s], s.device(n))
		} else if ns, err = r.lab.NS(s.vm(n)); err == nil {
			counts, err = openCounters(ns)
		}
		if err != nil {
			return err
		}
		r.vms[s] = append(r.vms[s], ns)
		r.counters[s] = append(r.counters[s], counts)
	}
	r.agents[s] = r.lab.Agent(s.host())
	state, err := r.agents[s].State(ctx)
	if err != nil {
		return err
	}
	r.pids[s] = state.Agent.PID
	_, err = r.agents[s].FlowStatus(ctx)
	r.meters = err == nil
	r.collectors[s], err = collect(r.hosts[s])
	return err
}

// join waits until the VMs of a pair reach each other.
func (r *rig) join(ctx context.Context, n int) error {
	if g := r.guests[tx][n]; g != nil {
		limit, cancel := context.WithTimeout(ctx, bootPatience)
		defer cancel()
		if err := g.reach(limit, rx.address(n, 0)); err != nil {
			return fmt.Errorf("VMs %s and %s do not reach each other: %w", tx.vm(n), rx.vm(n), err)
		}
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: joinEvery, Rate: 2 / joinEvery.Seconds()}
	p := r.pair(n, nil, nil)
	for {
		res, err := traffic.Send(limit, p.Client, load, netip.AddrPortFrom(p.Addr, 0))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("VMs %s and %s do not reach each other within %v", tx.vm(n), rx.vm(n), joinPatience)
		case err != nil || res.Echo.Replies > 0:
			return err
		}
	}
}

// pair is the n-th pair of VMs; the senders are on one host and the sinks on the other.
func (r *rig) pair(n int, client, server []int) traffic.Pair {
	return traffic.Pair{
		Client: traffic.Endpoint{NS: r.vms[tx][n], CPUs: client},
		Server: traffic.Endpoint{NS: r.vms[rx][n], CPUs: server},
		Addr:   netip.MustParseAddr(rx.address(n, 0)),
	}
}

// meter activates a metering on both hosts, and waits until the agents have applied it. With clean it also waits until
// all flows metered before are exported.
func (r *rig) meter(ctx context.Context, m metering, clean bool) error {
	if r.ending && clean {
		if err := r.finish(ctx); err != nil {
			return err
		}
		r.ending = false
	}
	if m == r.metering {
		return nil
	}
	return r.change(ctx, m)
}

// change configures both hosts.
func (r *rig) change(ctx context.Context, m metering) error {
	if m.meters() {
		r.exporting = m
	}
	err := r.onBoth(ctx, func(ctx context.Context, s side) error {
		text := hostConfig(s, m, export{r.exporting, r.collectors[s].port()}, len(r.vms[s])-1, r.opts.Overlay)
		_, err := r.agents[s].Apply(ctx, api.Apply{File: "flow-export.yaml", Content: text})
		return err
	})
	if err != nil {
		return fmt.Errorf("configure %s: %w", m, err)
	}
	r.metering = m
	return r.calm(ctx)
}

// onBoth does something on both hosts at once.
func (r *rig) onBoth(ctx context.Context, do func(context.Context, side) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range sides {
		group.Go(func() error {
			if err := do(ctx, s); err != nil {
				return fmt.Errorf("host %s: %w", s.host(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

const (
	// endPatience is how long agents may take to export all flows when metering is switched off.
	endPatience = 20 * time.Second
	endLook     = 50 * time.Millisecond
)

// finish makes the agents export all flows: switching metering off ends them. Agents that are not done after
// endPatience go on during the next measurement.
func (r *rig) finish(ctx context.Context) error {
	if r.metering != off {
		if err := r.change(ctx, off); err != nil {
			return err
		}
	}
	for end := time.Now().Add(endPatience); ; {
		left, err := r.flows(ctx)
		if err != nil {
			return err
		}
		if late := time.Now().After(end); late || left == 0 {
			if late {
				r.unfinished++
			}
			return r.calm(ctx)
		}
		if err := pause(ctx, endLook); err != nil {
			return err
		}
	}
}

// flows is how many flows the agents have not exported yet.
func (r *rig) flows(ctx context.Context) (n int, err error) {
	if !r.meters {
		return 0, nil
	}
	for _, s := range sides {
		status, err := r.agents[s].FlowStatus(ctx)
		if err != nil {
			return 0, fmt.Errorf("host %s: %w", s.host(), err)
		}
		for _, sw := range status.Switches {
			n += sw.Flows
		}
	}
	return n, nil
}

const (
	// An agent that uses less than calmShare of a core over calmLook counts as finished.
	calmShare    = 0.05
	calmLook     = 50 * time.Millisecond
	calmPatience = 3 * time.Second
)

// calm waits until both agents are idle, so that work caused by a change of configuration, such as the export of all
// flows at its end, does not fall into the next measurement. If an agent stays busy, the measurement goes ahead.
func (r *rig) calm(ctx context.Context) error {
	before, err := r.agentTimes()
	if err != nil {
		return err
	}
	for end := time.Now().Add(calmPatience); time.Now().Before(end); {
		if err := pause(ctx, calmLook); err != nil {
			return err
		}
		now, err := r.agentTimes()
		if err != nil {
			return err
		}
		if busy := max(now[tx]-before[tx], now[rx]-before[rx]); busy.Seconds() < calmShare*calmLook.Seconds() {
			return nil
		}
		before = now
	}
	return nil
}

func (r *rig) agentTimes() (times [len(sides)]time.Duration, err error) {
	for _, s := range sides {
		if times[s], err = cputime.Process(r.pids[s]); err != nil {
			return times, fmt.Errorf("the agent of host %s: %w", s.host(), err)
		}
	}
	return times, nil
}

// close removes the lab, and checks the hosts' counters on the way.
func (r *rig) close() error {
	errs := []error{r.stopGuests()}
	for _, c := range r.collectors {
		if c != nil {
			errs = append(errs, c.close())
		}
	}
	for _, s := range sides {
		for _, c := range r.counters[s] {
			c.close()
		}
	}
	return errors.Join(append(errs, r.lab.Down())...)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
