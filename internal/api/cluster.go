package api

import (
	"context"
	"time"

	"heddle/api/heddle/agent/v1/agentv1connect"
)

// ClusterService makes the host part of a cluster of controllers.
type ClusterService interface {
	// Membership is the host's part in a cluster.
	Membership(context.Context) (*Membership, error)
	// Join makes the host part of a cluster. What the host has by its file stays.
	Join(context.Context, Join) (*Membership, error)
	// HandOver hands the switches that the host's own file has too over to the controllers.
	HandOver(context.Context, HandOver) (*Applied, error)
	// Leave makes what the controllers declared the host's own configuration, and returns how it was.
	Leave(context.Context) (*Membership, error)
}

// Join says which cluster, and by what right.
type Join struct {
	// Controller is HOST:PORT of any controller of the cluster.
	Controller string `json:"controller"`
	// Token as the controller made it. It is not to be logged.
	Token string `json:"token"`
	// Name of the host in the cluster; "" for the host's name.
	Name string `json:"name"`
	// Replace takes the name of a host that was installed anew.
	Replace bool `json:"replace"`
}

// HandOver asks for a hand-over of switches to the controllers.
type HandOver struct {
	DryRun bool `json:"dryRun"`
	Window
}

// Membership is a host's part in a cluster.
type Membership struct {
	// Member: the host is in a cluster.
	Member bool `json:"member"`
	// Cluster is the cluster's id, Host the host's there, Name the host's name there.
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	Name    string `json:"name"`
	// Controllers are their addresses, HOST:PORT.
	Controllers []string `json:"controllers"`
	// Connected is the controller that the host speaks with; "" for none.
	Connected string `json:"connected"`
	// Since is when that connection began, or ended; Error is why there is none.
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error"`
	// Revision and Epoch are of the definition that is active.
	Revision int64 `json:"revision"`
	Epoch    int64 `json:"epoch"`
	// Switches are those that the controllers declare here.
	Switches []string `json:"switches"`
	// Expires is when the host's certificate does.
	Expires time.Time `json:"expires,omitzero"`
}

// clusterCalls are a client's calls about the cluster.
type clusterCalls struct {
	client *Client
	rpc    agentv1connect.ClusterServiceClient
}

// Membership returns the host's part in a cluster.
func (k clusterCalls) Membership(ctx context.Context) (*Membership, error) {
	return ask[*Membership](ctx, k.client, k.rpc.GetMembership, nil)
}

// Join makes the host part of a cluster.
func (k clusterCalls) Join(ctx context.Context, q Join) (*Membership, error) {
	return ask[*Membership](ctx, k.client, k.rpc.JoinCluster, q)
}

// HandOver hands the switches that the host's own file has too over to the controllers.
func (k clusterCalls) HandOver(ctx context.Context, q HandOver) (*Applied, error) {
	return ask[*Applied](ctx, k.client, k.rpc.HandOver, q)
}

// Leave makes what the controllers declared the host's own configuration.
func (k clusterCalls) Leave(ctx context.Context) (*Membership, error) {
	return ask[*Membership](ctx, k.client, k.rpc.LeaveCluster, nil)
}
