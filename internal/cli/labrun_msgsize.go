package cli

import (
	"context"

	"heddle/internal/lab/msgsize"
	"heddle/internal/lab/report"
)

// messageSize measures throughput by message size in a real lab.
func (f *labRun) messageSize(ctx context.Context, d Deps) error {
	o := msgsize.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows}
	if err := o.Check(); err != nil {
		return &UsageError{Err: err}
	}
	if err := f.trafficOnly(msgsize.Name); err != nil {
		return err
	}
	return f.inLabs(ctx, d, func(ctx context.Context, progress func(string)) (*report.Report, error) {
		o.Progress = progress
		m, err := msgsize.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		return m.Report(), nil
	})
}
