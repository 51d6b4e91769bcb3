package cli

import (
	"context"

	"heddle/internal/lab/hostile"
	"heddle/internal/report"
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
