package api

import (
	"context"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/diagnose"
)

// State returns everything that is active in the agent.
func (c *Client) State(ctx context.Context) (*State, error) {
	return ask[*State](ctx, c, c.state.GetState, nil)
}

// Stats returns all ports' and uplinks' counters.
func (c *Client) Stats(ctx context.Context) ([]Stats, error) {
	return ask[[]Stats](ctx, c, c.stats.ListStats, nil)
}

// Vitals returns the sums of the counters of each switch.
func (c *Client) Vitals(ctx context.Context) ([]Vitals, error) {
	return ask[[]Vitals](ctx, c, c.stats.ListVitals, nil)
}

// Accounts returns for every port and uplink whether its counters add up.
func (c *Client) Accounts(ctx context.Context) ([]PortAccount, error) {
	return ask[[]PortAccount](ctx, c, c.stats.ListAccounts, nil)
}

// Metrics returns all metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	return ask[string](ctx, c, c.state.GetMetrics, nil)
}

// MACs returns the addresses that the switches know.
func (c *Client) MACs(ctx context.Context) ([]MAC, error) {
	return ask[[]MAC](ctx, c, c.stats.ListMacs, nil)
}

// ForgetMACs removes learned addresses, until they are learned again, and returns them.
func (c *Client) ForgetMACs(ctx context.Context, q ForgetMACs) ([]MAC, error) {
	return ask[[]MAC](ctx, c, c.stats.ForgetMacs, q)
}

// Trace returns what would happen to frames.
func (c *Client) Trace(ctx context.Context, q diagnose.Request) (*diagnose.Report, error) {
	return ask[*diagnose.Report](ctx, c, c.trace.Trace, q)
}

// Advise returns what is misconfigured.
func (c *Client) Advise(ctx context.Context, q AdviseRequest) (*Advice, error) {
	return ask[*Advice](ctx, c, c.advise.Advise, q)
}

// Events follows the agent's events. It ends without an error when ctx ends, or when the agent does.
func (c *Client) Events(ctx context.Context, q Follow, emit func(Events) error) error {
	return follow[Events, agentv1.FollowEventsRequest, agentv1.FollowEventsResponse](ctx, c, c.events.FollowEvents, q,
		emit)
}

// Apply replaces the configuration file, all or nothing.
func (c *Client) Apply(ctx context.Context, q Apply) (*Applied, error) {
	return ask[*Applied](ctx, c, c.change.Apply, q)
}

// Trial returns the change that is on trial, or the last one.
func (c *Client) Trial(ctx context.Context) (*Trial, error) {
	return ask[*Trial](ctx, c, c.change.GetTrial, nil)
}

// ConfirmChange keeps the change that is on trial.
func (c *Client) ConfirmChange(ctx context.Context) (*Trial, error) {
	return ask[*Trial](ctx, c, c.change.ConfirmTrial, nil)
}

// Connect makes a port.
func (c *Client) Connect(ctx context.Context, q Connect) (*Applied, error) {
	return ask[*Applied](ctx, c, c.ports.ConnectPort, q)
}

// Reconnect makes a port, or changes the port of that name to the request. Another run-time port with the device is
// removed.
func (c *Client) Reconnect(ctx context.Context, q Connect) (*Applied, error) {
	return ask[*Applied](ctx, c, c.ports.ReconnectPort, q)
}

// ConnectIncoming makes a port that waits for its guest, which will arrive by migration.
func (c *Client) ConnectIncoming(ctx context.Context, q Incoming) (*Applied, error) {
	return ask[*Applied](ctx, c, c.ports.ConnectIncomingPort, q)
}

// Expect announces a guest that will arrive by migration and whose ports are about to be connected.
func (c *Client) Expect(ctx context.Context, q Expect) error {
	return act(ctx, c, c.ports.ExpectGuest, q)
}

// Activate records that the guest of a waiting port runs here.
func (c *Client) Activate(ctx context.Context, q Activate) error {
	return act(ctx, c, c.ports.ActivatePort, q)
}

// Disconnect removes a port that was connected by command.
func (c *Client) Disconnect(ctx context.Context, q Disconnect) error {
	return act(ctx, c, c.ports.DisconnectPort, q)
}

// Block sets or lifts the blocked state of a port.
func (c *Client) Block(ctx context.Context, q Block) (*Applied, error) {
	return ask[*Applied](ctx, c, c.ports.BlockPort, q)
}

// Move puts a port into another port group.
func (c *Client) Move(ctx context.Context, q Move) (*Applied, error) {
	return ask[*Applied](ctx, c, c.ports.MovePort, q)
}

// Progress returns how many devices have yet to be attached.
func (c *Client) Progress(ctx context.Context) (*Progress, error) {
	return ask[*Progress](ctx, c, c.state.GetProgress, nil)
}

// Stop ends the agent; the kernel continues forwarding.
func (c *Client) Stop(ctx context.Context) error { return act(ctx, c, c.state.StopAgent, nil) }

// HostPorts returns the host's own interfaces on its switches.
func (c *Client) HostPorts(ctx context.Context) ([]HostPort, error) {
	return ask[[]HostPort](ctx, c, c.hosts.ListHostPorts, nil)
}

// Adoption returns the state of an adoption.
func (c *Client) Adoption(ctx context.Context, q HostPortName) (*Adoption, error) {
	return ask[*Adoption](ctx, c, c.hosts.GetAdoption, q)
}

// Adopt replaces an uplink's device by a host port, which takes its addresses.
func (c *Client) Adopt(ctx context.Context, q Adopt) (*Adoption, error) {
	return ask[*Adoption](ctx, c, c.hosts.Adopt, q)
}

// ConfirmAdoption keeps an adoption.
func (c *Client) ConfirmAdoption(ctx context.Context, q HostPortName) (*Adoption, error) {
	return ask[*Adoption](ctx, c, c.hosts.ConfirmAdoption, q)
}

// ReleaseAdoption moves everything back.
func (c *Client) ReleaseAdoption(ctx context.Context, q Release) (*Adoption, error) {
	return ask[*Adoption](ctx, c, c.hosts.ReleaseAdoption, q)
}

// Flows returns the current flows, the first of them in the requested order.
func (c *Client) Flows(ctx context.Context, q FlowQuery) (*FlowList, error) {
	return ask[*FlowList](ctx, c, c.flows.ListFlows, q)
}

// FlowStatus returns the state of metering and export.
func (c *Client) FlowStatus(ctx context.Context) (*FlowStatus, error) {
	return ask[*FlowStatus](ctx, c, c.flows.GetFlowStatus, nil)
}

// FlowTop follows the flows with the highest rates.
func (c *Client) FlowTop(ctx context.Context, q FlowTopQuery, emit func(FlowTop) error) error {
	return follow[FlowTop, agentv1.FollowFlowTopRequest, agentv1.FollowFlowTopResponse](ctx, c, c.flows.FollowFlowTop,
		q, emit)
}

// recordsRequest is a request for records.
type recordsRequest struct {
	Filter FlowFilter `json:"filter"`
}

// FlowRecords calls emit with records as they are made.
func (c *Client) FlowRecords(ctx context.Context, q FlowFilter, emit func(FlowRecords) error) error {
	return follow[FlowRecords, agentv1.FollowFlowRecordsRequest, agentv1.FollowFlowRecordsResponse](ctx, c,
		c.flows.FollowFlowRecords, recordsRequest{q}, emit)
}

// FlowSums calls emit with sums: once, or after every interval until ctx ends or emit fails.
func (c *Client) FlowSums(ctx context.Context, q FlowSumQuery, emit func(FlowSums) error) error {
	return follow[FlowSums, agentv1.FollowFlowSumsRequest, agentv1.FollowFlowSumsResponse](ctx, c,
		c.flows.FollowFlowSums, q, emit)
}

// EndCapture ends a capture of any client.
func (c *Client) EndCapture(ctx context.Context, q EndCapture) error {
	return act(ctx, c, c.capture.EndCapture, q)
}
