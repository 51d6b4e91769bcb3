package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/lab"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
)

// Name is the experiment's name, Title what it shows.
const (
	Name  = "live-change"
	Title = "what running ports notice when their policy changes (real traffic only)"
)

// The nodes of the lab.
const (
	host     = "esx1"
	sender   = "a"
	receiver = "b"
)

// leakAfter is the time after which nothing may reach the old segment any more, counted from before the system call
// that makes the change.
const leakAfter = time.Millisecond

// Options say how the experiment runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick takes fewer ports and rounds.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// effort is how much is measured.
type effort struct {
	ports, rounds int
	rate          float64 // packets per second
}

// Check says whether the selected rows exist.
func (o Options) Check() error {
	_, err := chosen(o.Rows)
	return err
}

func (o Options) effort() effort {
	if o.Quick {
		return effort{ports: 100, rounds: 4, rate: 10000}
	}
	return effort{ports: 1000, rounds: 6, rate: 20000}
}

// rig is the lab that is up.
type rig struct {
	effort
	lab      *lab.Lab
	agent    *api.Client
	ns       map[string]*netns.NS
	watchers map[int]*watcher // by VLAN
}

// Run measures the rows and returns the result of each, in their order. It leaves nothing behind, also when ctx ends on
// the way.
func Run(ctx context.Context, o Options) (_ []Measured, ports int, err error) {
	rows, err := chosen(o.Rows)
	if err != nil {
		return nil, 0, err
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s, err := scenario.Parse(Name+".yaml", []byte(labFile), nil)
	if err != nil {
		return nil, 0, err
	}
	l, err := lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("live%d", os.Getpid()), RunDir: o.RunDir,
		Program: o.Program, Progress: o.Progress})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	r := &rig{effort: o.effort(), lab: l, agent: l.Agent(host), ns: map[string]*netns.NS{},
		watchers: map[int]*watcher{}}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(ctx, o.Progress); err != nil {
		return nil, 0, err
	}
	all, err := r.measure(ctx, rows, o.Progress)
	return all, r.ports, err
}

// prepare makes the idle ports' devices, waits until all ports are attached, and watches both segments.
func (r *rig) prepare(ctx context.Context, progress func(string)) error {
	for _, node := range []string{host, sender, receiver, watcherIn(oldVLAN), watcherIn(newVLAN)} {
		ns, err := r.lab.NS(node)
		if err != nil {
			return err
		}
		r.ns[node] = ns
	}
	progress(fmt.Sprintf("%d ports: devices", r.ports))
	if err := makeIdle(r.ns[host], r.ports-4); err != nil {
		return err
	}
	progress(fmt.Sprintf("%d ports: attaching", r.ports))
	if _, err := r.apply(ctx, r.config(setting{})); err != nil {
		return err
	}
	macs, err := addressOf(r.ns[sender])
	if err != nil {
		return err
	}
	for _, vlan := range []int{oldVLAN, newVLAN} {
		if r.watchers[vlan], err = watch(r.ns[watcherIn(vlan)], macs); err != nil {
			return err
		}
	}
	return r.awaitStream(ctx)
}

// awaitStream waits until a short stream arrives completely.
func (r *rig) awaitStream(ctx context.Context) error {
	for range 20 {
		p, err := r.stream(ctx, 1000, func() error { return pause(ctx, 100*time.Millisecond) })
		if err != nil {
			return err
		}
		if p.Received > 0 && p.Lost == 0 {
			return nil
		}
	}
	return errors.New("the stream does not get through in full before anything is changed: the machine is too busy " +
		"for this experiment")
}

func (r *rig) close() error {
	var errs []error
	for _, w := range r.watchers {
		errs = append(errs, w.close())
	}
	return errors.Join(errs...)
}

// apply activates a configuration, like "heddle apply": its content counts as the input that has been read.
func (r *rig) apply(ctx context.Context, content string) (*api.Applied, error) {
	read, err := dataplane.Monotonic()
	if err != nil {
		return nil, err
	}
	return r.agent.Apply(ctx, api.Apply{File: Name + ".yaml", Content: content, ReadAt: read})
}

// move moves the sender's port to another port group, like "heddle port move".
func (r *rig) move(ctx context.Context, group string) (*api.Applied, error) {
	read, err := dataplane.Monotonic()
	if err != nil {
		return nil, err
	}
	return r.agent.Move(ctx, api.Move{Port: sender, PortGroup: group, ReadAt: read})
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
