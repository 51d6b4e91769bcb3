package rpc

import (
	"context"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
)

// room finds what a move needs at the target: how many MACs the port has learned, which the target compares with its
// limits. It refuses a target whose table of flows is full. A host that does not say is no reason not to move.
func (a acts) room(ctx context.Context, m *moving) error {
	var learned []*agentv1.Stats
	err := a.askAgent(ctx, m.from, func(ctx context.Context, rpc *connect.Client) error {
		r, err := agentv1connect.NewStatsServiceClient(rpc).ListStats(ctx, &agentv1.ListStatsRequest{})
		learned = r.GetStats()
		return err
	})
	if err != nil {
		a.Log.Debug("a host does not say how many MACs a port has learned", "host", m.from, "err", err)
	}
	m.macs = learnedAt(learned, m.sw, m.name)
	var flows *agentv1.FlowStatus
	err = a.askAgent(ctx, m.to, func(ctx context.Context, rpc *connect.Client) error {
		r, err := agentv1connect.NewFlowServiceClient(rpc).GetFlowStatus(ctx, &agentv1.GetFlowStatusRequest{})
		flows = r.GetStatus()
		return err
	})
	if err != nil {
		a.Log.Debug("a host does not say how many flows it meters", "host", m.to, "err", err)
	}
	for _, sw := range flows.GetSwitches() {
		if sw.GetSwitch() == m.sw && sw.GetMaxFlows() > 0 && sw.GetFlows() >= sw.GetMaxFlows() {
			return refusedMove("the table of flows of switch %s on host %s is full (%d of %d): flows of the port "+
				"would be exported before they end (heddle flows status; --force moves the port even so)", m.sw, m.to,
				sw.GetFlows(), sw.GetMaxFlows())
		}
	}
	return nil
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
