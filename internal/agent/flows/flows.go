package flows

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"heddle/internal/agent/active"
	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/flow/metering"
	"heddle/internal/host/ownfile"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Dir returns the directory of an agent's flow tables. It is gone after a reboot, like the counters from which the
// flows are computed.
func Dir(p instance.Paths, name string) string { return filepath.Join(p.Run, name+".flows") }

// Options say where the flows of an agent come from, and where its tables are.
type Options struct {
	Log    *slog.Logger
	Dir    string
	Source *dataplane.Flows
	// Publish publishes what happens to exports.
	Publish func(event.Event)
}

// Meter meters flows as the active plan says, and answers queries about them. Until it is started it meters none.
type Meter struct {
	runner *metering.Runner
}

// Start begins to meter.
func (fl *Meter) Start(o Options) error {
	if err := ownfile.MakeDir(o.Dir, 0o700); err != nil {
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
	fl.runner = metering.Start(metering.Options{Log: o.Log, Dir: o.Dir, Origin: place, Source: o.Source,
		Locator: o.Source, Retire: o.Source.Retire, Export: metering.Exporters(metering.ExportOptions{Host: host,
			Dir: o.Dir, Log: o.Log, Locator: o.Source, Publish: o.Publish})})
	return nil
}

// Settled has the metering follow the active plan.
func (fl *Meter) Settled(now *active.Value) {
	if fl.runner != nil {
		fl.runner.Settled(now.Plan, portGroupNames(now.Config), leftPorts(now.Applied.Facts))
	}
}

// Close ends the metering.
func (fl *Meter) Close() error {
	if fl.runner == nil {
		return nil
	}
	return fl.runner.Close()
}

// Meters reports whether flows are metered.
func (fl *Meter) Meters() bool { return fl.runner != nil }

// noFlows is the error of an agent that meters no flows.
func noFlows() error { return api.NewError(api.Internal, "this agent meters no flows") }

// Flows returns the current flows.
func (fl *Meter) Flows(_ context.Context, q api.FlowQuery) (*api.FlowList, error) {
	if fl.runner == nil {
		return nil, noFlows()
	}
	return fl.runner.Flows(q)
}

// FlowTop calls emit after every interval with the flows of the highest rates.
func (fl *Meter) FlowTop(ctx context.Context, q api.FlowTopQuery, emit func(api.FlowTop) error) error {
	if fl.runner == nil {
		return noFlows()
	}
	return fl.runner.Top(ctx, q, emit)
}

// FlowRecords calls emit with records as they are made.
func (fl *Meter) FlowRecords(ctx context.Context, q api.FlowFilter, emit func(api.FlowRecords) error) error {
	if fl.runner == nil {
		return noFlows()
	}
	return fl.runner.Records(ctx, q, emit)
}

// FlowStatus returns the state of metering and export.
func (fl *Meter) FlowStatus(context.Context) (*api.FlowStatus, error) {
	if fl.runner == nil {
		return &api.FlowStatus{Switches: []api.FlowSwitch{}}, nil
	}
	return fl.runner.Status()
}

// FlowSums calls emit with sums of flows.
func (fl *Meter) FlowSums(ctx context.Context, q api.FlowSumQuery, emit func(api.FlowSums) error) error {
	if fl.runner == nil {
		return noFlows()
	}
	return fl.runner.Sums(ctx, q, emit)
}

// leftPorts are the silent ports whose guests have left this host.
func leftPorts(facts plan.Facts) map[plan.PortID]bool {
	left := map[plan.PortID]bool{}
	for id, f := range facts {
		if f.Left && f.Waits() {
			left[id] = true
		}
	}
	return left
}

// portGroupNames returns the names of each switch's port groups.
func portGroupNames(cfg *spec.Config) map[string][]string {
	all := map[string][]string{}
	if cfg == nil {
		return all
	}
	for i := range cfg.Switches {
		sw := &cfg.Switches[i]
		for k := range sw.PortGroups {
			all[sw.Name] = append(all[sw.Name], sw.PortGroups[k].Name)
		}
	}
	return all
}
