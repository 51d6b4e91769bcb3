package api

import (
	"context"
	"time"
)

// ClusterService makes the host part of a cluster of controllers.
type ClusterService interface {
	// Membership is the host's part in a cluster.
	Membership(context.Context) (*Membership, error)
	// Join makes the host part of a cluster. What the host has by its file stays.
	Join(context.Context, Join) (*Membership, error)
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

// Membership is the host's part in a cluster.
func (c *Client) Membership(ctx context.Context) (*Membership, error) {
	return ask[*Membership](ctx, c, c.cluster.GetMembership, nil)
}

// Join makes the host part of a cluster.
func (c *Client) Join(ctx context.Context, q Join) (*Membership, error) {
	return ask[*Membership](ctx, c, c.cluster.JoinCluster, q)
}

// Leave makes what the controllers declared the host's own configuration.
func (c *Client) Leave(ctx context.Context) (*Membership, error) {
	return ask[*Membership](ctx, c, c.cluster.LeaveCluster, nil)
}
