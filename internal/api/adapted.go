package api

import (
	"context"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
)

// GetState returns everything that is active in the agent.
func (a *adapter) GetState(ctx context.Context, m *agentv1.GetStateRequest) (*agentv1.GetStateResponse, error) {
	return answer[agentv1.GetStateResponse](ctx, a, m, bare(a.service.State))
}

// GetProgress returns how many devices have yet to be attached.
func (a *adapter) GetProgress(ctx context.Context, m *agentv1.GetProgressRequest) (*agentv1.GetProgressResponse,
	error) {
	return answer[agentv1.GetProgressResponse](ctx, a, m, bare(a.service.Progress))
}

// GetMetrics returns all metrics in the text format of Prometheus.
func (a *adapter) GetMetrics(ctx context.Context, m *agentv1.GetMetricsRequest) (*agentv1.GetMetricsResponse, error) {
	return answer[agentv1.GetMetricsResponse](ctx, a, m, bare(a.service.Metrics))
}

// StopAgent ends the agent; the kernel continues forwarding.
func (a *adapter) StopAgent(ctx context.Context, m *agentv1.StopAgentRequest) (*agentv1.StopAgentResponse, error) {
	return answer[agentv1.StopAgentResponse](ctx, a, m, func(ctx context.Context, _ none) (none, error) {
		return none{}, a.service.Stop(ctx)
	})
}

// ListStats returns the counters of every port and uplink.
func (a *adapter) ListStats(ctx context.Context, m *agentv1.ListStatsRequest) (*agentv1.ListStatsResponse, error) {
	return answer[agentv1.ListStatsResponse](ctx, a, m, bare(a.service.Stats))
}

// ListVitals returns, for each switch, sums of the counters of its ports and uplinks.
func (a *adapter) ListVitals(ctx context.Context, m *agentv1.ListVitalsRequest) (*agentv1.ListVitalsResponse, error) {
	return answer[agentv1.ListVitalsResponse](ctx, a, m, bare(a.service.Vitals))
}

// ListAccounts checks the counters of every port and uplink against the accounting invariant (S94).
func (a *adapter) ListAccounts(ctx context.Context, m *agentv1.ListAccountsRequest) (*agentv1.ListAccountsResponse,
	error) {
	return answer[agentv1.ListAccountsResponse](ctx, a, m, bare(a.service.Accounts))
}

// ListMacs returns the addresses that the switches know.
func (a *adapter) ListMacs(ctx context.Context, m *agentv1.ListMacsRequest) (*agentv1.ListMacsResponse, error) {
	return answer[agentv1.ListMacsResponse](ctx, a, m, bare(a.service.MACs))
}

// ForgetMacs removes learned addresses, until they are learned again.
func (a *adapter) ForgetMacs(ctx context.Context, m *agentv1.ForgetMacsRequest) (*agentv1.ForgetMacsResponse, error) {
	return answer[agentv1.ForgetMacsResponse](ctx, a, m, a.service.ForgetMACs)
}

// Apply replaces the configuration file, all or nothing.
func (a *adapter) Apply(ctx context.Context, m *agentv1.ApplyRequest) (*agentv1.ApplyResponse, error) {
	return answer[agentv1.ApplyResponse](ctx, a, m, a.service.Apply)
}

// GetTrial returns the change that is on trial, or the last one.
func (a *adapter) GetTrial(ctx context.Context, m *agentv1.GetTrialRequest) (*agentv1.GetTrialResponse, error) {
	return answer[agentv1.GetTrialResponse](ctx, a, m, bare(a.service.Trial))
}

// ConfirmTrial keeps the change that is on trial.
func (a *adapter) ConfirmTrial(ctx context.Context, m *agentv1.ConfirmTrialRequest) (*agentv1.ConfirmTrialResponse,
	error) {
	return answer[agentv1.ConfirmTrialResponse](ctx, a, m, bare(a.service.ConfirmChange))
}

// ConnectPort makes a port.
func (a *adapter) ConnectPort(ctx context.Context, m *agentv1.ConnectPortRequest) (*agentv1.ConnectPortResponse,
	error) {
	return answer[agentv1.ConnectPortResponse](ctx, a, m, a.service.Connect)
}

// ReconnectPort makes a port, or changes the port of that name to the request. Another run-time port with the device is
// removed.
func (a *adapter) ReconnectPort(ctx context.Context, m *agentv1.ReconnectPortRequest) (*agentv1.ReconnectPortResponse,
	error) {
	return answer[agentv1.ReconnectPortResponse](ctx, a, m, a.service.Reconnect)
}

// ConnectIncomingPort makes a port whose guest will arrive by migration; the port waits for it (S99).
func (a *adapter) ConnectIncomingPort(ctx context.Context, m *agentv1.ConnectIncomingPortRequest) (
	*agentv1.ConnectIncomingPortResponse, error) {
	return answer[agentv1.ConnectIncomingPortResponse](ctx, a, m, a.service.ConnectIncoming)
}

// ExpectGuest announces a guest that will arrive by migration and whose ports are about to be connected.
func (a *adapter) ExpectGuest(ctx context.Context, m *agentv1.ExpectGuestRequest) (*agentv1.ExpectGuestResponse,
	error) {
	return answer[agentv1.ExpectGuestResponse](ctx, a, m, done(a.service.Expect))
}

// ActivatePort records that the guest of a waiting port runs here.
func (a *adapter) ActivatePort(ctx context.Context, m *agentv1.ActivatePortRequest) (*agentv1.ActivatePortResponse,
	error) {
	return answer[agentv1.ActivatePortResponse](ctx, a, m, done(a.service.Activate))
}

// DisconnectPort removes a port that was connected by command.
func (a *adapter) DisconnectPort(ctx context.Context, m *agentv1.DisconnectPortRequest) (
	*agentv1.DisconnectPortResponse, error) {
	return answer[agentv1.DisconnectPortResponse](ctx, a, m, done(a.service.Disconnect))
}

// BlockPort sets or lifts the blocked state of a port.
func (a *adapter) BlockPort(ctx context.Context, m *agentv1.BlockPortRequest) (*agentv1.BlockPortResponse, error) {
	return answer[agentv1.BlockPortResponse](ctx, a, m, a.service.Block)
}

// MovePort puts a port into another port group of its switch.
func (a *adapter) MovePort(ctx context.Context, m *agentv1.MovePortRequest) (*agentv1.MovePortResponse, error) {
	return answer[agentv1.MovePortResponse](ctx, a, m, a.service.Move)
}

// MaintainUplink drains or blocks an uplink, or takes it back into use.
func (a *adapter) MaintainUplink(ctx context.Context, m *agentv1.MaintainUplinkRequest) (
	*agentv1.MaintainUplinkResponse, error) {
	return answer[agentv1.MaintainUplinkResponse](ctx, a, m, a.service.Maintain)
}

// GetMembership returns the host's part in a cluster.
func (a *adapter) GetMembership(ctx context.Context, m *agentv1.GetMembershipRequest) (
	*agentv1.GetMembershipResponse, error) {
	return answer[agentv1.GetMembershipResponse](ctx, a, m, bare(a.service.Membership))
}

// JoinCluster makes the host part of a cluster.
func (a *adapter) JoinCluster(ctx context.Context, m *agentv1.JoinClusterRequest) (*agentv1.JoinClusterResponse,
	error) {
	return answer[agentv1.JoinClusterResponse](ctx, a, m, a.service.Join)
}

// HandOver hands switches that are also in the host's own file over to the controllers.
func (a *adapter) HandOver(ctx context.Context, m *agentv1.HandOverRequest) (*agentv1.HandOverResponse, error) {
	return answer[agentv1.HandOverResponse](ctx, a, m, a.service.HandOver)
}

// LeaveCluster turns the configuration from the controllers into the host's own.
func (a *adapter) LeaveCluster(ctx context.Context, m *agentv1.LeaveClusterRequest) (*agentv1.LeaveClusterResponse,
	error) {
	return answer[agentv1.LeaveClusterResponse](ctx, a, m, bare(a.service.Leave))
}

// ListHostPorts returns the host's own interfaces on its switches.
func (a *adapter) ListHostPorts(ctx context.Context, m *agentv1.ListHostPortsRequest) (*agentv1.ListHostPortsResponse,
	error) {
	return answer[agentv1.ListHostPortsResponse](ctx, a, m, bare(a.service.HostPorts))
}

// GetAdoption returns the last adoption of the port, also if it was undone; without a name the last of all.
func (a *adapter) GetAdoption(ctx context.Context, m *agentv1.GetAdoptionRequest) (*agentv1.GetAdoptionResponse,
	error) {
	return answer[agentv1.GetAdoptionResponse](ctx, a, m, a.service.Adoption)
}

// Adopt replaces an uplink's device by a host port, which takes its addresses.
func (a *adapter) Adopt(ctx context.Context, m *agentv1.AdoptRequest) (*agentv1.AdoptResponse, error) {
	return answer[agentv1.AdoptResponse](ctx, a, m, a.service.Adopt)
}

// ConfirmAdoption keeps an adoption; without a name the one that waits for confirmation.
func (a *adapter) ConfirmAdoption(ctx context.Context, m *agentv1.ConfirmAdoptionRequest) (
	*agentv1.ConfirmAdoptionResponse, error) {
	return answer[agentv1.ConfirmAdoptionResponse](ctx, a, m, a.service.ConfirmAdoption)
}

// ReleaseAdoption moves everything back. A confirmed adoption is then releasing until the gateway answers through the
// device, or is confirmed again if it does not answer.
func (a *adapter) ReleaseAdoption(ctx context.Context, m *agentv1.ReleaseAdoptionRequest) (
	*agentv1.ReleaseAdoptionResponse, error) {
	return answer[agentv1.ReleaseAdoptionResponse](ctx, a, m, a.service.ReleaseAdoption)
}

// FollowEvents sends the events that are kept and, unless the request says otherwise, new ones. The first answer may be
// empty: it shows that events are followed from then on.
func (a *adapter) FollowEvents(ctx context.Context, m *agentv1.FollowEventsRequest,
	out agentv1connect.EventServiceFollowEventsServerStream) error {
	// The follower learns that it is connected before there is an event.
	if err := out.SendHeaders(); err != nil {
		return err
	}
	return each[agentv1.FollowEventsResponse](ctx, a, m, out, a.service.Events)
}

// ListFlows returns the current flows.
func (a *adapter) ListFlows(ctx context.Context, m *agentv1.ListFlowsRequest) (*agentv1.ListFlowsResponse, error) {
	return answer[agentv1.ListFlowsResponse](ctx, a, m, a.service.Flows)
}

// GetFlowStatus returns the state of metering and export.
func (a *adapter) GetFlowStatus(ctx context.Context, m *agentv1.GetFlowStatusRequest) (*agentv1.GetFlowStatusResponse,
	error) {
	return answer[agentv1.GetFlowStatusResponse](ctx, a, m, bare(a.service.FlowStatus))
}

// FollowFlowTop sends the flows with the highest rates after every interval.
func (a *adapter) FollowFlowTop(ctx context.Context, m *agentv1.FollowFlowTopRequest,
	out agentv1connect.FlowServiceFollowFlowTopServerStream) error {
	return each[agentv1.FollowFlowTopResponse](ctx, a, m, out, a.service.FlowTop)
}

// FollowFlowRecords sends records as they are made.
func (a *adapter) FollowFlowRecords(ctx context.Context, m *agentv1.FollowFlowRecordsRequest,
	out agentv1connect.FlowServiceFollowFlowRecordsServerStream) error {
	return each[agentv1.FollowFlowRecordsResponse](ctx, a, m, out, func(ctx context.Context, q recordsRequest,
		emit func(FlowRecords) error) error {
		return a.service.FlowRecords(ctx, q.Filter, emit)
	})
}

// FollowFlowSums sends sums: once, or after every interval.
func (a *adapter) FollowFlowSums(ctx context.Context, m *agentv1.FollowFlowSumsRequest,
	out agentv1connect.FlowServiceFollowFlowSumsServerStream) error {
	return each[agentv1.FollowFlowSumsResponse](ctx, a, m, out, a.service.FlowSums)
}

// EndCapture ends a capture of any caller; frames captured until then are still sent.
func (a *adapter) EndCapture(ctx context.Context, m *agentv1.EndCaptureRequest) (*agentv1.EndCaptureResponse, error) {
	return answer[agentv1.EndCaptureResponse](ctx, a, m, done(a.service.EndCapture))
}

// Trace returns what would happen to frames; no frame leaves and nothing changes.
func (a *adapter) Trace(ctx context.Context, m *agentv1.TraceRequest) (*agentv1.TraceResponse, error) {
	return answer[agentv1.TraceResponse](ctx, a, m, a.service.Trace)
}

// Advise returns what is misconfigured; it measures for the time in the request.
func (a *adapter) Advise(ctx context.Context, m *agentv1.AdviseRequest) (*agentv1.AdviseResponse, error) {
	return answer[agentv1.AdviseResponse](ctx, a, m, a.service.Advise)
}
