package cli

import (
	"context"

	"heddle/internal/lab/hostile"
	"heddle/internal/lab/run"
)

// hostileNeighbour has one VM of a real lab flood.
func (f *labRun) hostileNeighbour(ctx context.Context, d Deps) error {
	o := hostile.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows}
	if err := o.Check(); err != nil {
		return &UsageError{Err: err}
	}
	if f.simulate {
		return usagef("%s measures time, which the model has none of: leave --simulate out", hostile.Name)
	}
	if err := needRoot("run an experiment"); err != nil {
		return err
	}
	ctx, stop := untilHangup(ctx)
	defer stop()
	busy := run.BusyNote()
	p := newProgress(d.Stderr)
	o.Progress = p.say
	all, err := hostile.Run(ctx, o)
	p.clear()
	if err != nil {
		return interrupted(ctx, err)
	}
	rep := hostile.Report(all)
	if busy != "" {
		rep.Notes = append(rep.Notes, busy)
	}
	return f.show(d, rep)
}
