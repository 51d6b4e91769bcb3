package attack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/traffic"
)

// Name is the experiment's name for "heddle lab run", Title what it shows.
const (
	Name  = "hostile-guest"
	Title = "what others notice of a guest that speaks link protocols, fills tables, makes loops and poses as others " +
		"(real traffic only)"
)

// The packets of a row: the victims', and how many frames the attacker sends of each way.
const (
	rate   = 500.0 // a second
	warmup = 100 * time.Millisecond
)

// Options say how it runs.
type Options struct {
	// RunDir and Program are as in lab.Options.
	RunDir, Program string
	// Quick takes less time for each row.
	Quick bool
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// Check reports whether the selected rows exist.
func (o Options) Check() error {
	_, err := o.selected()
	return err
}

func (o Options) selected() ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, o.Rows)
}

// turns is how often each frame of a row is sent, and at what interval: long enough that a LAG would fall apart if it
// could.
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
	rep := &report.Report{Name: Name, Environment: report.Collect(time.Now()), Notes: notes(),
		Labs: topology.OfText(labFile)}
	var held sums
	for i, r := range list {
		o.say(fmt.Sprintf("%s, row %d of %d", r.name, i+1, len(list)))
		s.row = i
		m, err := s.measure(ctx, o, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		m.report(rep)
		held.add(&m)
	}
	rep.Conclusions = held.conclusions()
	return rep, nil
}

func (o Options) say(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// measured is the result of one row.
type measured struct {
	row            row
	attacks        int
	sent, received uint64
	changes        int
	lags           map[string]lag
	came           uint64 // frames from attackers
	refused        map[string]uint64
	hijacked       uint64   // frames with one receiver that reached attackers
	neighbours     int      // entries of the victims' tables that have the other's MAC
	routers        int      // routers that the victims use
	stations       int      // stations of the well-behaved guest that are still known
	blocked        []string // ports
	took           time.Duration
}

// measure counts the victims' packets while the attackers send.
func (s *scene) measure(ctx context.Context, o Options, r row) (m measured, err error) {
	m = measured{row: r, lags: map[string]lag{}}
	before, err := s.suffered(ctx)
	if err != nil {
		return m, err
	}
	if err := s.speak(0); err != nil {
		return m, err
	}
	if err := errors.Join(s.meet(), s.bridge(r.bridges)); err != nil {
		return m, err
	}
	began := time.Now()
	if err := errors.Join(s.load(ctx, o, &m), s.unbridge(r.bridges)); err != nil {
		return m, err
	}
	if err := s.look(ctx, &m, before, began); err != nil {
		return m, err
	}
	return m, s.fix(ctx, m.blocked)
}

// load makes the victims exchange packets while the attackers send, and then makes a guest send from new addresses.
func (s *scene) load(ctx context.Context, o Options, m *measured) error {
	turns, every := o.turns()
	load := traffic.Load{Kind: traffic.KindUDP, Warmup: warmup, Duration: time.Duration(turns) * every, Rate: rate}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		pair := traffic.Pair{Client: traffic.Endpoint{NS: s.nodes[client]},
			Server: traffic.Endpoint{NS: s.nodes[server]},
			Addr:   netip.MustParseAddr(serverAddress)}
		res, err := traffic.Measure(gctx, pair, load)
		if err == nil {
			m.sent = res.Sent.Packets
			if p := res.Sink.Packets; p != nil { // nil: not one came
				m.received = min(p.Received, m.sent)
			}
		}
		return err
	})
	g.Go(func() error {
		if err := s.attack(gctx, m.row, turns, every, &m.attacks); err != nil {
			return err
		}
		return s.speak(1)
	})
	return g.Wait()
}

// attack sends every frame of the row in each turn.
func (s *scene) attack(ctx context.Context, r row, turns int, every time.Duration, sent *int) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for turn := range turns {
		for vm, frames := range r.frames(turn, turns) {
			for _, f := range frames {
				if err := s.senders[vm].send(f); err != nil {
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
