package agent

import (
	"context"

	"heddle/internal/agent/connection"
	"heddle/internal/agent/definition"
	"heddle/internal/api"
)

// inCluster is what the host is in its cluster.
type inCluster struct {
	*shared
	definition *definition.Part
	connection *connection.Connection
}

// Membership is the host's part in a cluster.
func (ic *inCluster) Membership(ctx context.Context) (*api.Membership, error) {
	out := &api.Membership{Controllers: []string{}, Switches: []string{}, HostPorts: []api.DefinedHostPort{}}
	r, stands := ic.connection.Member()
	if out.Error = stands.Problem; r != nil {
		*out = api.Membership{Member: true, Cluster: r.Cluster(), Host: r.Host(), Name: r.Name(),
			Controllers: r.Controllers(), Connected: stands.Controller, Since: stands.Since, Error: stands.Problem,
			Expires:  r.Expires(),
			Switches: []string{}, HostPorts: []api.DefinedHostPort{}}
	}
	return out, ic.Do(ctx, func() error {
		if s := ic.definition.Given(); s != nil {
			out.Revision, out.Epoch = s.Revision, s.Epoch
		}
		if cfg := ic.definition.Config(); cfg != nil {
			for _, sw := range cfg.Switches {
				out.Switches = append(out.Switches, sw.Name)
			}
			for _, p := range cfg.Ports {
				out.HostPorts = append(out.HostPorts, api.DefinedHostPort{Name: p.Name, Switch: p.Switch,
					PortGroup: p.PortGroup, Addresses: p.Addresses})
			}
		}
		out.Kept = ic.definition.Keeps()
		return nil
	})
}
