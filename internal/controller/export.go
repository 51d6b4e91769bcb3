package controller

import (
	"context"
	"fmt"
	"os"
	"sync"

	"heddle/internal/platform/audit"
	"heddle/internal/platform/audit/export"
)

// exports sends the audit log of the controller of that name to where the options say, until end is called.
func exports(ctx context.Context, o Options, name string, log *audit.Log) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	end = func() {
		cancel()
		all.Wait()
	}
	for _, text := range o.AuditExport {
		target, err := export.Parse(text)
		if err != nil {
			end()
			return nil, fmt.Errorf("--audit-export: %w", err)
		}
		x, err := export.New(target, export.Options{Audit: log, Controller: name, Log: o.Log, Stdout: os.Stdout})
		if err != nil {
			end()
			return nil, err
		}
		all.Go(func() { x.Run(ctx) })
	}
	return end, nil
}
