package moves

import (
	"context"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
)

// Room finds what a port takes up at its host, which the target compares with what it has: how many MACs the port has
// learned, and how many of its flows are metered. A host that does not say is no reason not to move.
func (s Service) Room(ctx context.Context, host, sw, port string) (macs, flows int32) {
	err := s.Agent(ctx, host, func(ctx context.Context, rpc *connect.Client) error {
		r, err := agentv1connect.NewStatsServiceClient(rpc).ListStats(ctx, &agentv1.ListStatsRequest{})
		macs = learnedAt(r.GetStats(), sw, port)
		return err
	})
	if err != nil {
		s.Log.Debug("a host does not say how many MACs a port has learned", "host", host, "err", err)
	}
	err = s.Agent(ctx, host, func(ctx context.Context, rpc *connect.Client) error {
		r, err := agentv1connect.NewFlowServiceClient(rpc).ListFlows(ctx, &agentv1.ListFlowsRequest{Limit: 1,
			Sort: agentv1.FlowSort_FLOW_SORT_BYTES, Filter: &agentv1.FlowFilter{Switch: sw, Port: port}})
		flows = int32(min(r.GetList().GetTotal(), 1<<30))
		return err
	})
	if err != nil {
		s.Log.Debug("a host does not say how many flows of a port it meters", "host", host, "err", err)
	}
	return macs, flows
}

// learnedAt is how many MACs a port has learned, by its host's counters; 0 where they don't say.
func learnedAt(all []*agentv1.Stats, sw, port string) int32 {
	for _, s := range all {
		if s.GetSwitch() != sw || s.GetName() != port || s.GetUplink() {
			continue
		}
		for _, c := range s.GetExtra() {
			if c.GetName() == "macsLearned" {
				return int32(min(c.GetValue(), 1<<30))
			}
		}
	}
	return 0
}
