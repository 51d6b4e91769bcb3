package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/migration"
	"heddle/internal/lab/report"
	"heddle/internal/lab/run"
	"heddle/internal/lab/sim"
	"heddle/internal/spec/known"
)

// Run is how to run an experiment.
type Run struct {
	// RunDir is the directory for labs and their agents.
	RunDir string
	// Rows selects rows by name, in their order; empty: all.
	Rows []string
	// Quick takes at most a minute; the spread is wider.
	Quick bool
	// Moves and Rate are the number of moves of a row and the numbered packets a second of the experiment migration; 0
	// for its defaults.
	Moves int
	Rate  float64
	// Simulate uses the model only.
	Simulate bool
	// Progress is called with what is being done now.
	Progress func(string)
}

// Experiment runs the experiment of that name and reports on it. What it builds it removes again.
func (r Run) Experiment(ctx context.Context, name string) (*report.Report, error) {
	rep, err := r.experiment(ctx, name)
	if err != nil {
		return nil, err
	}
	if rep.Title == "" {
		rep.Title = title(rep.Name)
	}
	return rep, nil
}

func (r Run) experiment(ctx context.Context, name string) (*report.Report, error) {
	if (r.Moves != 0 || r.Rate != 0) && name != migration.Name && name != migration.PortMoveName {
		return nil, faultf("--moves and --rate are for the experiments %s and %s; %s has its own", migration.Name,
			migration.PortMoveName, name)
	}
	all := programs()
	if i := slices.IndexFunc(all, func(p program) bool { return p.Name == name }); i >= 0 {
		return r.program(ctx, all[i])
	}
	if names := ExperimentNames(); !slices.Contains(names, name) {
		return nil, errors.New(known.Names{What: "experiment", All: names}.Missing(name))
	}
	e, err := experiment.Find(name)
	if err != nil {
		return nil, asFault(err)
	}
	if _, err := e.Select(r.Rows); err != nil {
		return nil, asFault(err)
	}
	if r.Simulate {
		return r.onModel(e)
	}
	return r.onTraffic(ctx, e)
}

// program runs an experiment with code of its own.
func (r Run) program(ctx context.Context, p program) (*report.Report, error) {
	if err := p.check(r); errors.Is(err, experiment.ErrUnknown) {
		return nil, err
	} else if err != nil {
		return nil, &Fault{err}
	}
	if r.Simulate {
		return nil, faultf("%s measures time, which the model has none of: leave --simulate out", p.Name)
	}
	if err := needRoot("run an experiment"); err != nil {
		return nil, err
	}
	return r.inLabs(ctx, p.run)
}

// onTraffic runs the experiment in real labs.
func (r Run) onTraffic(ctx context.Context, e *experiment.Experiment) (*report.Report, error) {
	if err := needRoot("run an experiment"); err != nil {
		return nil, fmt.Errorf("%w, or add --simulate", err)
	}
	return r.inLabs(ctx, func(ctx context.Context, r Run) (*report.Report, error) {
		all, err := run.Experiment(ctx, e, run.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows,
			Progress: r.Progress})
		if err != nil {
			return nil, err
		}
		return run.Report(e, all), nil
	})
}

// inLabs runs measure in real labs, until a hangup, and notes what else kept the machine busy.
func (r Run) inLabs(ctx context.Context, measure func(context.Context, Run) (*report.Report, error)) (*report.Report,
	error) {
	busy := run.BusyNote()
	rep, err := toTheEnd(ctx, func(ctx context.Context) (*report.Report, error) { return measure(ctx, r) })
	if err != nil {
		return nil, err
	}
	if busy != "" {
		rep.Notes = append(rep.Notes, busy)
	}
	return rep, nil
}

// onModel runs the experiment on the model alone.
func (r Run) onModel(e *experiment.Experiment) (*report.Report, error) {
	all, err := sim.Experiment(e, sim.Options{Rows: r.Rows})
	if err != nil {
		return nil, err
	}
	return sim.Report(e, all), nil
}
