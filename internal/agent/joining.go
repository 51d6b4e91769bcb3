package agent

import (
	"context"
	"fmt"
	"os"

	"heddle/internal/agent/cluster"
	"heddle/internal/api"
)

// Join makes the host part of a cluster.
func (m *membership) Join(ctx context.Context, q api.Join) (*api.Membership, error) {
	defer m.connection.Hold()()
	is, stands := m.connection.Member()
	switch {
	case is != nil && (stands.Controller != "" || q.Name != "" && q.Name != is.Name()):
		return nil, api.NewError(api.Invalid, fmt.Sprintf("this host is %s of cluster %s: leave that first (heddle "+
			"host leave)", is.Name(), is.Cluster()))
	case is != nil:
		return m.repair(ctx, is, q.Controller)
	case q.Token == "":
		return nil, api.NewError(api.Invalid, "this host is in no cluster: a token is needed (heddle host token at a "+
			"controller)")
	}
	if q.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		q.Name = name
	}
	record, err := cluster.Join(ctx, m.connection.Dir(), cluster.Request{Controller: q.Controller, Token: q.Token,
		Name:    q.Name,
		Replace: q.Replace})
	if err != nil {
		return nil, api.NewError(api.Invalid, err.Error())
	}
	m.connection.Joined(record)
	m.log.Info("joined a cluster", "cluster", record.Cluster(), "as", record.Name())
	m.connection.Begin()
	return m.Membership(ctx)
}

// repair has the host of a cluster, which has lost its controllers, look for them at another address. It is who it was,
// by the certificate that it has: no token is used up.
func (m *membership) repair(ctx context.Context, is *cluster.Record, controller string) (*api.Membership, error) {
	if err := is.Repair(ctx, controller); err != nil {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("this host is %s of cluster %s already, and finds none of "+
			"its controllers at %s: %v. To join another cluster, leave that first (heddle host leave)", is.Name(),
			is.Cluster(), controller, err))
	}
	m.log.Info("the controllers are looked for at another address", "controller", controller)
	m.connection.End()
	m.connection.Begin()
	return m.Membership(ctx)
}

// HandOver hands the switches that the host's own file has too over to the controllers. The conversation begins anew
// then, by which the controllers hear of it.
func (m *membership) HandOver(ctx context.Context, q api.HandOver) (*api.Applied, error) {
	defer m.connection.Hold()()
	out, err := m.slicing.HandOver(ctx, q)
	if err == nil && !q.DryRun {
		m.connection.End()
		m.connection.Begin()
	}
	return out, err
}

// Leave makes what the controllers declared the host's own configuration, and returns how it was.
func (m *membership) Leave(ctx context.Context) (*api.Membership, error) {
	defer m.connection.Hold()()
	was, err := m.Membership(ctx)
	if err != nil {
		return nil, err
	}
	if !was.Member {
		return nil, api.NewError(api.Invalid, "this host is in no cluster")
	}
	m.connection.End()
	if err := m.slicing.own(ctx, was.Cluster, m.locating.Peers); err != nil {
		m.connection.Begin()
		return nil, err
	}
	record := m.connection.Left()
	m.locating.Left(ctx)
	m.parts.LeftCluster()
	m.log.Info("left the cluster; what it declared here is the host's own configuration", "cluster", was.Cluster)
	return was, record.Forget()
}
