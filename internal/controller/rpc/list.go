package rpc

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/identity"
	"heddle/internal/overlay/span"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// ListHosts lists the hosts and how they follow the definition.
func (p people) ListHosts(ctx context.Context, _ *controllerv1.ListHostsRequest) (*controllerv1.ListHostsResponse,
	error) {
	there, stale := p.everywhere().askAll(ctx, &controllerv1.GetHostsHereRequest{})
	shared := sharedEndpoints(p.segments.Twice())
	f := p.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &controllerv1.ListHostsResponse{Revision: f.revision, Controllers: int32(len(p.Cluster())),
		Unreachable: there.Away, Stale: stale}
	for _, h := range f.sorted() {
		out.Hosts = append(out.Hosts, p.shown(h, there))
	}
	nameShared(out.GetHosts(), shared)
	p.seenHosts(access.GrantedTo(ctx), out)
	return out, nil
}

// ListFleetPorts lists the ports of the distributed switches as the hosts reported them last.
func (p people) ListFleetPorts(ctx context.Context, q *controllerv1.ListFleetPortsRequest) (
	*controllerv1.ListFleetPortsResponse, error) {
	ask := &controllerv1.GetHostsHereRequest{Reports: true}
	if q.GetHost() != "" {
		ask.Names = []string{q.GetHost()}
	}
	there, stale := p.everywhere().askAll(ctx, ask)
	f, sight := p.fleet, access.GrantedTo(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	fits := func(want, got string) bool { return want == "" || want == got }
	out := &controllerv1.ListFleetPortsResponse{Unreachable: there.Away, Stale: stale}
	for _, h := range f.sorted() {
		report, connected := there.ReportOf(h.known())
		if report == nil {
			continue
		}
		for _, port := range report.GetPorts() {
			if fits(q.GetHost(), h.doc.Name) && fits(q.GetSwitch(), port.GetSwitch()) &&
				fits(q.GetPortGroup(), port.GetPortGroup()) && sight.Sees(port.GetSwitch(), port.GetPortGroup()) {
				out.Ports = append(out.Ports, &controllerv1.FleetPort{Host: h.doc.Name, Switch: port.GetSwitch(),
					Name: port.GetName(), PortGroup: port.GetPortGroup(), State: port.GetState(), Mac: port.GetMac(),
					Device: port.GetDevice(), Stale: !connected, Vm: port.GetVm(), Adapter: port.GetAdapter()})
			}
		}
	}
	return out, nil
}

// RemoveHost takes a host out of the cluster and revokes its certificates: its connection ends, and no controller
// answers it any more.
func (p people) RemoveHost(ctx context.Context, q *controllerv1.RemoveHostRequest) (*controllerv1.RemoveHostResponse,
	error) {
	key := store.Key{Kind: store.KindHost, Name: q.GetName()}
	o, ok := p.Store.Get(key)
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("the cluster has no host %q: see heddle host list",
				q.GetName()))
	}
	name := identity.Name{Cluster: p.Authority.Trust().Cluster, Kind: identity.Host, ID: o.ID}
	now := p.TLS.Now()
	// No certificate of it is made from now on.
	e := pki.Revocation{At: now, By: access.NameOf(ctx),
		Why:   "host " + q.GetName() + " was taken out of the cluster",
		Until: pki.UntilOf(now.Add(pki.CertificateLife))}
	revoke, err := oldListOf(p.Server).revoking(name, e, p.issuing.Fits(ctx, health.Clocks.Doubted))
	if err != nil {
		return nil, err
	}
	changes := append(revoke, store.Change{Key: key, Delete: true, IfVersion: o.Version})
	changes = append(changes, tokens.JoinsInPlaceOf(p.Store, q.GetName())...)
	if _, has := p.Store.Get(addresses.Key(q.GetName())); has { // they are free again
		changes = append(changes, store.Change{Key: addresses.Key(q.GetName()), Delete: true, IfVersion: store.Any})
	}
	if _, err := p.Store.Write(ctx, changes); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	p.Log.Info("a host was taken out of the cluster", "host", q.GetName())
	return &controllerv1.RemoveHostResponse{}, nil
}

// sharedEndpoints are the endpoint addresses that two hosts have.
func sharedEndpoints(twice []span.Twice) (list []health.SharedEndpoint) {
	for _, t := range twice {
		list = append(list, health.SharedEndpoint{Address: t.Address.String(), A: t.A.Name, B: t.B.Name})
	}
	return list
}

// nameShared says at both hosts of a pair that they share an endpoint. A host that is up has a warning then.
func nameShared(hosts []*controllerv1.Host, shared []health.SharedEndpoint) {
	by := health.Shared(shared)
	for i, h := range hosts {
		said := by[h.GetName()]
		if len(said) == 0 {
			continue
		}
		h = proto.CloneOf(h) // what another controller said is kept
		hosts[i] = h
		h.Problems = append(slices.Clone(h.GetProblems()), said...)
		if h.GetState() == controllerv1.HostState_HOST_STATE_UP {
			h.State = controllerv1.HostState_HOST_STATE_WARNING
		}
	}
}
