package agent

import (
	"context"

	"heddle/internal/api"
)

// noFlows is the answer of an agent that meters none.
func noFlows() error { return api.NewError(api.Internal, "this agent meters no flows") }

// Flows are the flows there are.
func (a *Agent) Flows(_ context.Context, q api.FlowQuery) (*api.FlowList, error) {
	if a.flows == nil {
		return nil, noFlows()
	}
	return a.flows.Flows(q)
}

// FlowTop calls emit after every interval with the flows of the highest rates.
func (a *Agent) FlowTop(ctx context.Context, q api.FlowTopQuery, emit func(api.FlowTop) error) error {
	if a.flows == nil {
		return noFlows()
	}
	return a.flows.Top(ctx, q, emit)
}

// FlowRecords calls emit with records as they are made.
func (a *Agent) FlowRecords(ctx context.Context, q api.FlowFilter, emit func(api.FlowRecords) error) error {
	if a.flows == nil {
		return noFlows()
	}
	return a.flows.Records(ctx, q, emit)
}

// FlowStatus says how metering and export do.
func (a *Agent) FlowStatus(context.Context) (*api.FlowStatus, error) {
	if a.flows == nil {
		return &api.FlowStatus{Switches: []api.FlowSwitch{}}, nil
	}
	return a.flows.Status()
}
