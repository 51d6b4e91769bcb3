package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/flow/metering"
	"heddle/internal/host/ownfile"
)

// flowDir returns the directory of an agent's flow tables. It is gone after a reboot, like the counters from which the
// flows are computed.
func flowDir(p instance.Paths, name string) string { return filepath.Join(p.Run, name+".flows") }

// flowing answers queries about flows.
type flowing struct {
	flows *metering.Runner // nil where flows cannot be metered
}

// followFlows starts the metering and keeps it equal to the plan.
func (a *Agent) followFlows(o Options, source *dataplane.Flows) error {
	dir := flowDir(o.Paths, o.Name)
	if err := ownfile.MakeDir(dir, 0o700); err != nil {
		return fmt.Errorf("open the directory of the flow tables: %w", err)
	}
	place, err := instance.Place()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("ask for the host's name: %w", err)
	}
	a.flowing.flows = metering.Start(metering.Options{Log: a.log, Dir: dir, Origin: place, Source: source,
		Locator: source,
		Retire:  source.Retire, Export: metering.Exporters(metering.ExportOptions{Host: host, Dir: dir, Log: a.log,
			Locator: source, Publish: a.events.Publish})})
	a.closers = append(a.closers, a.flowing.flows.Close)
	return nil
}

// noFlows is the error of an agent that meters no flows.
func noFlows() error { return api.NewError(api.Internal, "this agent meters no flows") }

// Flows returns the current flows.
func (fl *flowing) Flows(_ context.Context, q api.FlowQuery) (*api.FlowList, error) {
	if fl.flows == nil {
		return nil, noFlows()
	}
	return fl.flows.Flows(q)
}

// FlowTop calls emit after every interval with the flows of the highest rates.
func (fl *flowing) FlowTop(ctx context.Context, q api.FlowTopQuery, emit func(api.FlowTop) error) error {
	if fl.flows == nil {
		return noFlows()
	}
	return fl.flows.Top(ctx, q, emit)
}

// FlowRecords calls emit with records as they are made.
func (fl *flowing) FlowRecords(ctx context.Context, q api.FlowFilter, emit func(api.FlowRecords) error) error {
	if fl.flows == nil {
		return noFlows()
	}
	return fl.flows.Records(ctx, q, emit)
}

// FlowStatus returns the state of metering and export.
func (fl *flowing) FlowStatus(context.Context) (*api.FlowStatus, error) {
	if fl.flows == nil {
		return &api.FlowStatus{Switches: []api.FlowSwitch{}}, nil
	}
	return fl.flows.Status()
}

// FlowSums calls emit with sums of flows.
func (fl *flowing) FlowSums(ctx context.Context, q api.FlowSumQuery, emit func(api.FlowSums) error) error {
	if fl.flows == nil {
		return noFlows()
	}
	return fl.flows.Sums(ctx, q, emit)
}
