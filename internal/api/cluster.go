package api

import (
	"context"
	"time"

	"heddle/api/heddle/agent/v1/agentv1connect"
)

// ClusterService makes the host part of a cluster of controllers.
type ClusterService interface {
	// Membership returns the host's part in a cluster.
	Membership(context.Context) (*Membership, error)
	// Join makes the host part of a cluster. The configuration from the host's own file stays.
	Join(context.Context, Join) (*Membership, error)
	// HandOver hands switches that are also in the host's own file over to the controllers.
	HandOver(context.Context, HandOver) (*Applied, error)
	// Leave turns the configuration from the controllers into the host's own, and returns the membership as it was.
	Leave(context.Context) (*Membership, error)
	// NetworkHealth returns what the host knows of the physical network.
	NetworkHealth(context.Context) (*HostHealth, error)
}

// Join identifies the cluster, and authorises the host to join.
type Join struct {
	// Controller is HOST:PORT of any controller of the cluster.
	Controller string `json:"controller"`
	// Token is the token that the controller made. It must not be logged.
	Token string `json:"token"`
	// Name is the name of the host in the cluster; "" for the host's own name.
	Name string `json:"name"`
	// Replace takes over the name of a host that was reinstalled.
	Replace bool `json:"replace"`
}

// HandOver is a request to hand switches over to the controllers.
type HandOver struct {
	DryRun bool `json:"dryRun"`
	Window
}

// Membership is a host's part in a cluster.
type Membership struct {
	// Member: the host is in a cluster.
	Member bool `json:"member"`
	// Cluster is the cluster's id, Host the host's id in it, Name the host's name in it.
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	Name    string `json:"name"`
	// Controllers are the addresses of the controllers, HOST:PORT.
	Controllers []string `json:"controllers"`
	// Connected is the controller to which the host is connected; "" for none.
	Connected string `json:"connected"`
	// Since is when that connection began, or ended; Error is why there is none.
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error"`
	// Revision and Epoch are those of the active definition.
	Revision int64 `json:"revision"`
	Epoch    int64 `json:"epoch"`
	// Switches are the switches that the controllers declare on this host.
	Switches []string `json:"switches"`
	// HostPorts are those that the controllers declare on this host.
	HostPorts []DefinedHostPort `json:"hostPorts"`
	// Expires is when the host's certificate expires.
	Expires time.Time `json:"expires,omitzero"`
	// Kept are the port groups with which this host goes on although the definition lacks them.
	Kept []KeptPortGroup `json:"kept,omitzero"`
}

// KeptPortGroup is a port group that the controllers' definition lacks and ports of a host use.
type KeptPortGroup struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	// Epoch and Revision are those of the last version that had it.
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
	// Ports are those that use it.
	Ports []string `json:"ports"`
	// Without says what of it was left out, since the definition does not go with it; "" for nothing.
	Without string `json:"without,omitzero"`
}

// clusterCalls are a client's calls about the cluster.
type clusterCalls struct {
	client *Client
	rpc    agentv1connect.ClusterServiceClient
	bench  agentv1connect.BenchmarkServiceClient
}

// Membership returns the host's part in a cluster.
func (k clusterCalls) Membership(ctx context.Context) (*Membership, error) {
	return ask[*Membership](ctx, k.client, k.rpc.GetMembership, nil)
}

// Join makes the host part of a cluster.
func (k clusterCalls) Join(ctx context.Context, q Join) (*Membership, error) {
	return ask[*Membership](ctx, k.client, k.rpc.JoinCluster, q)
}

// HandOver hands switches that are also in the host's own file over to the controllers.
func (k clusterCalls) HandOver(ctx context.Context, q HandOver) (*Applied, error) {
	return ask[*Applied](ctx, k.client, k.rpc.HandOver, q)
}

// Leave turns the configuration from the controllers into the host's own.
func (k clusterCalls) Leave(ctx context.Context) (*Membership, error) {
	return ask[*Membership](ctx, k.client, k.rpc.LeaveCluster, nil)
}
