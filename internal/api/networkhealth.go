package api

import (
	"context"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// NetworkFinding is something about the physical network that is not as it should be, or a note.
type NetworkFinding struct {
	// Code is vlan-missing, nothing-passes, cables-swapped, mtu, no-bundle, bundle, one-way, lossy, slow, apart,
	// tunnel-unreachable or does-not-know.
	Code string `json:"code"`
	// Note: it need not be wrong.
	Note   bool   `json:"note"`
	Switch string `json:"switch"`
	// VLANs, 0 for untagged frames.
	VLANs []uint32 `json:"vlans"`
	// Ends are the uplinks that it is about, HOST/UPLINK, or the tunnel endpoints, HOST (ADDRESS); Others some with
	// which they were compared.
	Ends   []string `json:"ends"`
	Others []string `json:"others"`
	// Have and Want are lengths of packets, in bytes: the longest that passes, 0 for unknown, and the switch's MTU.
	Have   uint32 `json:"have"`
	Want   uint32 `json:"want"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"`
}

// NetworkHealth is what the probes between hosts have found (S109).
type NetworkHealth struct {
	// Findings are what is wrong first, then notes.
	Findings []NetworkFinding `json:"findings"`
	// Hosts, Uplinks and VLANs that take part, and the Paths between uplinks that are probed.
	Hosts   uint32 `json:"hosts"`
	Uplinks uint32 `json:"uplinks"`
	VLANs   uint32 `json:"vlans"`
	Paths   uint32 `json:"paths"`
	// Passing is how many paths pass, Waiting how many are not known yet.
	Passing uint32 `json:"passing"`
	Waiting uint32 `json:"waiting"`
	// Lonely is how many VLANs only one uplink uses: nobody can tell whether they pass.
	Lonely uint32 `json:"lonely"`
	// Tunnels are the pairs of tunnel endpoints of two hosts that are probed: how many pass, and how many are not known
	// yet.
	Tunnels        uint32 `json:"tunnels"`
	TunnelsPassing uint32 `json:"tunnelsPassing"`
	TunnelsWaiting uint32 `json:"tunnelsWaiting"`
}

// HostHealth is what one host knows of the physical network.
type HostHealth struct {
	// Alone: no controller has this host probe others, so that only its own uplinks probe one another.
	Alone    bool             `json:"alone"`
	Findings []NetworkFinding `json:"findings"`
	Uplinks  uint32           `json:"uplinks"`
	Paths    uint32           `json:"paths"`
	Passing  uint32           `json:"passing"`
	Waiting  uint32           `json:"waiting"`
	// Sent are probes, Answered those of others, and Forged frames that are signed with no key of the cluster, since
	// the agent's start.
	Sent     uint64 `json:"sent"`
	Answered uint64 `json:"answered"`
	Forged   uint64 `json:"forged"`
	// Tunnels are pairs of a tunnel endpoint of this host and one of another host that are probed: how many pass, and
	// how many are not known yet.
	Tunnels        uint32 `json:"tunnels"`
	TunnelsPassing uint32 `json:"tunnelsPassing"`
	TunnelsWaiting uint32 `json:"tunnelsWaiting"`
}

// healthCalls are those about the physical network.
type healthCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.HealthServiceClient
}

// NetworkHealth is what the probes of all hosts have found.
func (h healthCalls) NetworkHealth(ctx context.Context) (*NetworkHealth, error) {
	out, err := call[NetworkHealth, controllerv1.GetNetworkHealthRequest, controllerv1.GetNetworkHealthResponse](ctx,
		h.fleet, h.rpc.GetNetworkHealth, nil)
	return &out, err
}

// NetworkHealth is what the host knows of the physical network.
func (k clusterCalls) NetworkHealth(ctx context.Context) (*HostHealth, error) {
	return ask[*HostHealth](ctx, k.client, k.rpc.GetHostHealth, nil)
}

// clusterAdapter answers the calls of the cluster's service.
type clusterAdapter struct{ *adapter }

// GetHostHealth returns what the host knows of the physical network.
func (a clusterAdapter) GetHostHealth(ctx context.Context, m *agentv1.GetHostHealthRequest) (
	*agentv1.GetHostHealthResponse, error) {
	return answer[agentv1.GetHostHealthResponse](ctx, a.adapter, m, bare(a.service.NetworkHealth))
}
