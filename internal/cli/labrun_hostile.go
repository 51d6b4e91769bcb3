package cli

import (
	"context"

	"heddle/internal/lab/attack"
	"heddle/internal/lab/hostile"
	"heddle/internal/lab/report"
)

// hostileNeighbour has one VM of a real lab flood.
func (f *labRun) hostileNeighbour(ctx context.Context, d Deps) error {
	o := hostile.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows}
	if err := o.Check(); err != nil {
		return &UsageError{Err: err}
	}
	if err := f.trafficOnly(hostile.Name); err != nil {
		return err
	}
	return f.inLabs(ctx, d, func(ctx context.Context, progress func(string)) (*report.Report, error) {
		o.Progress = progress
		all, err := hostile.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		return hostile.Report(all), nil
	})
}

// hostileGuest has guests of a real lab speak the protocols of the link.
func (f *labRun) hostileGuest(ctx context.Context, d Deps) error {
	o := attack.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows}
	if err := o.Check(); err != nil {
		return &UsageError{Err: err}
	}
	if err := f.trafficOnly(attack.Name); err != nil {
		return err
	}
	return f.inLabs(ctx, d, func(ctx context.Context, progress func(string)) (*report.Report, error) {
		o.Progress = progress
		return attack.Run(ctx, o)
	})
}
