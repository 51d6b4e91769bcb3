package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/port"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// fleetCapture is one capture on all hosts that have what is asked for, those as well that have it only later.
type fleetCapture struct {
	*capture
	c     *cobra.Command
	t     *cli.Target
	fleet *api.Fleet
	all   *tally
	mu    sync.Mutex
	began []*captureSession
}

// everywhere captures on all hosts until it is enough, the time is over, or the user ends it. A host that is lost
// meanwhile is named, and captured again when it is back; the others go on.
func (f *capture) everywhere(c *cobra.Command, t *cli.Target) error {
	if err := f.compiled(c.Context()); err != nil {
		return err
	}
	fleet, err := t.Fleet()
	if err != nil {
		return err
	}
	var out *captureOutput
	g := &cli.Gathering[sighting]{Wait: f.ordering(), At: func(s sighting) time.Time { return s.Time }}
	w := &fleetCapture{capture: f, c: c, t: t, fleet: fleet, all: f.tally(func() (func(sighting) error, error) {
		var err error
		if out, err = f.output(); err != nil {
			return nil, err
		}
		g.Put = out.frame
		return g.Take, nil
	})}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	var over sync.WaitGroup
	over.Go(func() { w.await(ctx, cancel) })
	hosts := cli.NewStreams(f.d, fleet, "its frames are captured", w.follow)
	hosts.Named = true
	err = hosts.Run(ctx)
	cancel()
	over.Wait()
	if out == nil {
		return nothingCaptured(c.Context(), errors.Join(err, w.all.failed()), "no host had begun the capture")
	}
	return w.finish(errors.Join(err, g.Flush()), out, hosts.EverMissed())
}

// ordering is how long a frame waits for earlier ones of other hosts: nobody waits for the lines of a file.
func (f *capture) ordering() time.Duration {
	if f.write == "" {
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// await calls over when there are enough frames or the time is over, which runs from the first host's begin.
func (w *fleetCapture) await(ctx context.Context, over func()) {
	var until <-chan time.Time
	begun := w.all.begun
	for {
		select {
		case <-ctx.Done():
			return
		case <-begun:
			if begun = nil; w.duration > 0 {
				until = time.After(w.duration)
			}
			continue
		case <-until:
		case <-w.all.full:
		case <-w.all.broken:
		}
		over()
		return
	}
}

// follow captures on one host until ctx ends or the host does.
func (w *fleetCapture) follow(ctx context.Context, client api.Service, host string, heard func()) error {
	one := w.t.On(host)
	one.Within = ctx
	state, err := one.State(w.c)
	if cli.IsFault(err) {
		state, err = w.seen(ctx, host, err)
	}
	if err != nil {
		return err
	}
	q, err := w.of(host, state)
	if err != nil {
		return err
	}
	s := w.session(host, client, q, w.all)
	s.heard = func() {
		heard()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.began = append(w.began, s)
	}
	err = s.follow(ctx)
	switch {
	case w.all.failed() != nil: // for all hosts alike
		return nil
	case err == nil && ctx.Err() == nil && !s.whole():
		return &api.AwayError{Host: host, Why: "its agent has ended"}
	case err == nil && ctx.Err() == nil:
		return cli.ErrOver // somebody else has ended it
	}
	return err
}

// seen are the ports of a host that somebody sees who is refused its whole state, for a capture of ports alone; all of
// what else can be captured may be anybody's.
func (w *fleetCapture) seen(ctx context.Context, host string, refused error) (*api.State, error) {
	q := &w.ask
	if len(q.Ports) == 0 || len(q.Uplinks)+len(q.Segments) > 0 || q.Outer || slices.Contains(q.Ports, spec.TunnelName) {
		return nil, refused
	}
	list, err := w.fleet.Ports(ctx, api.FleetPortQuery{Host: host})
	if err != nil {
		return nil, err
	}
	s := &api.State{}
	for _, p := range list {
		s.Ports = append(s.Ports, api.Port{Switch: p.Switch, Name: p.Name})
		s.Switches = append(s.Switches, api.Switch{Name: p.Switch})
	}
	return s, nil
}

// of is what is asked of one host: of the ports that are named, those that it has.
func (f *capture) of(host string, s *api.State) (api.Capture, error) {
	q := f.ask
	q.Ports, q.Uplinks = nil, nil
	here := func(names []string, has func(string) error) (list []string) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(name, host+":"); ok && has(rest) == nil {
				name = rest
			}
			if has(name) == nil {
				list = append(list, name)
			}
		}
		return list
	}
	end := func(name string) error { return f.hasEnd(s, name) }
	uplink := func(name string) error { return port.HasUplink(s, f.ask.Switch, name) }
	q.Ports, q.Uplinks = here(f.ask.Ports, end), here(f.ask.Uplinks, uplink)
	if len(f.ask.Ports)+len(f.ask.Uplinks) > 0 && len(q.Ports)+len(q.Uplinks) == 0 {
		if len(f.ask.Ports) > 0 {
			return q, end(f.ask.Ports[0])
		}
		return q, uplink(f.ask.Uplinks[0])
	}
	return q, cli.HasSwitch(s, f.ask.Switch)
}

// hasEnd is the error of a port, uplink or tunnel that a host does not have.
func (f *capture) hasEnd(s *api.State, name string) error {
	err := cli.HasEnd(s, name)
	if err == nil || name != spec.TunnelName {
		return err
	}
	return &cli.MissingError{Text: "no switch has a tunnel: it is where a switch has overlay segments"}
}

// finish writes what is left, and says how it ended.
func (w *fleetCapture) finish(err error, out *captureOutput, missed bool) error {
	counts := api.CaptureCounts{Ended: api.CaptureAsked}
	var cut []string
	for _, s := range w.began {
		counts.Selected += s.counts.Selected
		counts.Lost += s.counts.Lost
		if !s.whole() && !slices.Contains(cut, s.host) {
			cut = append(cut, s.host)
		}
	}
	if closed := out.close(counts); err == nil {
		err = closed
	}
	summary(w.d.Stderr, w.all.given, counts)
	slices.Sort(cut)
	for _, host := range cut {
		fmt.Fprintf(w.d.Stderr, "host %s did not end its capture: frames of it may be missing, and its counts are "+
			"those of up to a second earlier\n", printable.Text(host))
	}
	if err == nil && (missed || len(cut) > 0) {
		return &cli.SilentError{Status: cli.ExitFailure}
	}
	return err
}
