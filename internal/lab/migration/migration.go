package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// Name is the experiment's name for "heddle lab run", Title what it shows.
const (
	Name  = "migration"
	Title = "what a guest and its peers notice when it moves to another host (real traffic only)"
)

// Budgets of a row that is held against them.
const (
	GapBudget = 0.050 // seconds, at the 99th percentile of the moves
	// AnnounceBudget is in seconds from when the guest runs, in the middle of the moves.
	AnnounceBudget = 0.010
	BulkBudget     = 0.200 // seconds until the bulk transfer has its rate again
)

// Options say how it runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick makes fewer moves under less load.
	Quick bool
	// Moves is the number of moves of each row, Rate that of numbered packets a second in each direction; 0 for the
	// default.
	Moves int
	Rate  float64
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

const (
	maxMoves = 1000
	maxRate  = 1e6
)

// row is one way of moving.
type row struct {
	name, setting string
	bridge        bool // the hosts are Linux bridges
	still         bool // nobody moves
	real          bool // the guest is one of QEMU's, which moves it
	overlay       bool // guest and peer are in an overlay segment
}

func rows() []row {
	return []row{
		{name: "still", setting: "nobody moves", still: true},
		{name: "namespace", setting: "between two Heddle hosts"},
		{name: "bridge", setting: "between two Linux bridges", bridge: true},
		{name: "qemu", setting: "between two Heddle hosts, by QEMU's live migration", real: true},
		{name: "overlay", setting: "between two Heddle hosts, on an overlay segment", overlay: true},
		{name: "overlay-qemu", setting: "by QEMU's live migration, on an overlay segment", overlay: true, real: true},
	}
}

func (r row) held() bool { return !r.bridge && !r.still }

// network is where the hosts of a row meet.
func (r row) network() network {
	if r.overlay {
		return network{wires: transport, far: peer, head: tunnelHead}
	}
	return network{wires: tor, far: outside}
}

// Check says whether the rows selected exist and the numbers are possible.
func (o Options) Check() error {
	if o.Moves < 0 || o.Moves > maxMoves {
		return fmt.Errorf("%d moves: want 1–%d", o.Moves, maxMoves)
	}
	if o.Rate < 0 || o.Rate > maxRate || o.Rate > 0 && o.Rate < 10 {
		return fmt.Errorf("%g packets a second: want 10–%.0f", o.Rate, maxRate)
	}
	_, err := o.selected()
	return err
}

func (o Options) selected() ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, o.Rows)
}

// effort is how much is measured.
type effort struct {
	moves       int
	rate        float64 // numbered packets a second, each way
	connections int
	bulk        float64 // bits per second of the bulk transfer
}

func (o Options) effort() effort {
	e := effort{moves: 20, rate: 10000, connections: 1000, bulk: 200e6}
	if o.Quick {
		e = effort{moves: 3, rate: 2000, connections: 100, bulk: 50e6}
	}
	if o.Moves > 0 {
		e.moves = o.Moves
	}
	if o.Rate > 0 {
		e.rate = o.Rate
	}
	return e
}

// Run builds the lab, measures, and removes it, also when ctx ends on the way.
func Run(ctx context.Context, o Options) (_ *report.Report, err error) {
	list, err := o.selected()
	if err != nil {
		return nil, err
	}
	var left error
	if len(o.Rows) == 0 { // a row that is not asked for by name may be left out
		if left = guestLacks(ctx); left != nil {
			list = slices.DeleteFunc(list, func(r row) bool { return r.real })
		}
	}
	rep := &report.Report{Name: Name, Environment: report.Collect(time.Now()),
		Explained: "reference/migration.md", Labs: topology.OfText(labText)}
	s, err := build(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var all []*measured
	for _, r := range list {
		measure := s.measure
		if r.real {
			measure = s.measureGuest
		}
		m, err := measure(ctx, o, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		all = append(all, m)
	}
	fill(rep, all, o.effort())
	if left != nil {
		rep.Notes = append(rep.Notes, fmt.Sprintf("Left out: rows with QEMU, which need an emulated guest: %v", left))
	}
	return rep, nil
}

func (o Options) say(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// RowNames are the names of the rows.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }
