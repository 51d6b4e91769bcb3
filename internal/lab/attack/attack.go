// Package attack is the experiment "hostile-guest": a guest speaks the protocols of the link, which are not for guests, while two VMs of
// other VLANs exchange numbered packets over a LAG between two hosts. It shows what these lose and what the LAG does: nothing.
package attack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// Name is the experiment's name for "heddle lab run", Title what it shows.
const (
	Name  = "hostile-guest"
	Title = "what others notice of a guest that speaks the protocols of the link (real traffic only)"
)

// The packets of a row: those of the victims, and how many frames the attacker sends in each way.
const (
	rate   = 500.0 // a second
	warmup = 100 * time.Millisecond
)

// Options say how it runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick takes less time for each row.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is told what is being done now.
	Progress func(string)
}

// row is one attack. Others add theirs to rows.
type row struct {
	name string
	// frames are what is sent once a turn, by the guest that sends each.
	frames map[string][][]byte
}

// rows are every protocol to every kind of address, each in all ways.
func rows() (list []row) {
	for _, p := range protocols() {
		for _, d := range destinations() {
			if d.to != nil && *d.to == p.group {
				continue // a beacon's group is everybody
			}
			r := row{name: p.name + "-" + d.name, frames: map[string][][]byte{}}
			for _, w := range ways() {
				from, to := attackers()[w.vm], p.group
				if d.to != nil {
					to = *d.to
				}
				r.frames[w.vm] = append(r.frames[w.vm], slices.Concat(to[:], from[:], w.tag, p.payload(from)))
			}
			list = append(list, r)
		}
	}
	return list
}

// Check says whether the rows selected exist.
func (o Options) Check() error {
	_, err := o.selected()
	return err
}

func (o Options) selected() ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, o.Rows)
}

// turns is how often each frame of a row is sent, and every how often: long enough for a LAG to fall apart, were it to.
func (o Options) turns() (n int, every time.Duration) {
	if o.Quick {
		return 10, 80 * time.Millisecond
	}
	return 50, 100 * time.Millisecond
}

// Run builds the lab, measures the rows and removes it, also when ctx ends on the way.
func Run(ctx context.Context, o Options) (_ *report.Report, err error) {
	list, err := o.selected()
	if err != nil {
		return nil, err
	}
	s, err := build(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	rep := &report.Report{Name: Name, Environment: report.Collect(time.Now()), Notes: notes()}
	for i, r := range list {
		o.say(fmt.Sprintf("%s, row %d of %d", r.name, i+1, len(list)))
		m, err := s.measure(ctx, o, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		m.report(rep)
	}
	return rep, nil
}

func (o Options) say(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// measured is what one row came to.
type measured struct {
	row            row
	attacks        int
	sent, received uint64
	changes        int
	lags           map[string]lag
	refused        map[string]uint64
}

// measure counts the victims' packets while the attackers send.
func (s *scene) measure(ctx context.Context, o Options, r row) (m measured, err error) {
	m = measured{row: r, lags: map[string]lag{}}
	before, err := s.refused(ctx)
	if err != nil {
		return m, err
	}
	turns, every := o.turns()
	load := traffic.Load{Kind: traffic.KindUDP, Warmup: warmup, Duration: time.Duration(turns) * every, Rate: rate}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		pair := traffic.Pair{Client: traffic.Endpoint{NS: s.nodes[client]}, Server: traffic.Endpoint{NS: s.nodes[server]}, Addr: netip.MustParseAddr(serverAddress)}
		res, err := traffic.Measure(gctx, pair, load)
		if err == nil {
			m.sent, m.received = res.Sent.Packets, min(res.Sink.Packets.Received, res.Sent.Packets)
		}
		return err
	})
	g.Go(func() error { return s.attack(gctx, r, turns, every, &m.attacks) })
	if err := g.Wait(); err != nil {
		return m, err
	}
	if m.changes, err = s.changes(ctx); err != nil {
		return m, err
	}
	for _, h := range hosts() {
		if m.lags[h], err = s.lag(ctx, h); err != nil {
			return m, err
		}
	}
	if m.refused, err = s.refused(ctx); err != nil {
		return m, err
	}
	for reason, n := range before {
		if m.refused[reason] -= n; m.refused[reason] == 0 {
			delete(m.refused, reason)
		}
	}
	return m, nil
}

// attack sends every frame of the row so many times.
func (s *scene) attack(ctx context.Context, r row, turns int, every time.Duration, sent *int) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range turns {
		for vm, frames := range r.frames {
			for _, f := range frames {
				if err := s.senders[vm].Send(s.senders[vm].index, f); err != nil {
					return fmt.Errorf("guest %s: %w", vm, err)
				}
				*sent++
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
