package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// ReleaseStaticPort makes a port nobody's. One whose guest runs is not released: no guest loses its port by that.
func (p *Ports) ReleaseStaticPort(ctx context.Context, q *controllerv1.ReleaseStaticPortRequest) (
	*controllerv1.ReleaseStaticPortResponse, error) {
	if err := p.CatchUp(ctx); err != nil { // it may have been bound by another controller a moment ago
		return nil, rpcerrors.OfStore(err)
	}
	b, used := p.Port(q.GetPort()), ""
	if b != nil {
		sw, group, _ := strings.Cut(b.Group, "/")
		if err := access.Need(ctx, roles.Operate, "", roles.Scope{Switch: sw, PortGroup: group}); err != nil {
			return nil, err
		}
		for _, on := range p.Adapters.RunsOn(b.Adapter) {
			used = fmt.Sprintf("static port %s is in use on host %s, by port %s: disconnect that first", b.ID,
				p.Hosts.Name(on.Host), on.Name)
		}
		if err := isOf(b, q.GetVm(), q.GetAdapter()); err != nil {
			return nil, err
		}
	}
	if b != nil && used == "" {
		if held := p.held(ctx, "", b); !held.lease || !q.GetForce() {
			used = held.why
		}
	}
	switch {
	case b == nil:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("no static port %q is bound: see heddle port "+
			"static list", q.GetPort()))
	case used != "":
		return nil, connect.NewError(connect.CodeFailedPrecondition, used)
	}
	err := p.Store.Release(ctx, store.ReleaseRequest{PortGroup: b.Group, Port: b.ID, VM: b.Adapter.VM,
		Adapter: b.Adapter.Name, Was: b.Was()})
	if err != nil {
		return nil, p.portError(err)
	}
	p.Log.Info("a static port was released", "force", q.GetForce(), "port", b.ID, "group", b.Group, "vm", b.Adapter.VM,
		"adapter", b.Adapter.Name)
	sw, group, _ := strings.Cut(b.Group, "/")
	return &controllerv1.ReleaseStaticPortResponse{Port: &controllerv1.FleetStaticPort{Port: b.ID, Switch: sw,
		PortGroup: group}}, nil
}

// isOf refuses a port that has another owner than the caller has named; "" stands for any.
func isOf(b *adapters.Binding, vm, adapter string) error {
	if vm != "" && strings.ToLower(vm) != b.Adapter.VM || adapter != "" && adapter != b.Adapter.Name {
		return connect.NewError(connect.CodeNotFound, fmt.Sprintf("static port %s is not of the VM and adapter that "+
			"were named: adapter %s of VM %s has it", b.ID, b.Adapter.Name, b.Adapter.VM))
	}
	return nil
}

// SettleStaticPort binds the port of an adapter on the host that an operator names, where it runs. Guests on other
// hosts go on, and stay marked as long as they do. It rests on the binding that is looked at first: one that has
// changed
// by the time of the write is refused.
func (p *Ports) SettleStaticPort(ctx context.Context, q *controllerv1.SettleStaticPortRequest) (
	*controllerv1.SettleStaticPortResponse, error) {
	n := part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter())
	if err := p.CatchUp(ctx); err != nil { // it may have been bound by another controller a moment ago
		return nil, rpcerrors.OfStore(err)
	}
	there := p.Hosts.Ask(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	r, seen, err := p.settling(n, q, there)
	if err != nil {
		return nil, err
	}
	if err := access.Need(ctx, roles.Operate, "", roles.GroupOf(r.PortGroup)); err != nil {
		return nil, err
	}
	if err := p.mayTake(ctx, seen, r.Host, q.GetForce()); err != nil {
		return nil, err
	}
	port, err := p.Store.Claim(ctx, r)
	var taken *store.Taken
	if seen == nil && errors.As(err, &taken) && taken.What == "port" && !overtaken(err, n) {
		r.Port = "" // another adapter has the port that it was to have
		port, err = p.Store.Claim(ctx, r)
	}
	if overtaken(err, n) {
		return nil, connect.NewError(connect.CodeAborted, fmt.Sprintf("adapter %s of VM %s: its static port has "+
			"changed "+
			"since it was looked at (%s): see heddle port static list, and settle it again if that is still meant",
			n.Name, n.VM, p.named(err)))
	}
	if err != nil {
		return nil, p.portError(err)
	}
	p.Log.Info("a conflict was settled", "force", q.GetForce(), "port", port.ID, "group", port.Group, "vm", n.VM,
		"adapter", n.Name, "host", q.GetHost(), "from", p.hostOf(seen))
	return &controllerv1.SettleStaticPortResponse{Port: p.staticPort(&port, p.known(there), nil)}, nil
}

// mayTake refuses to take a port, nil for none, from a lost host that holds it, but by force.
func (p *Ports) mayTake(ctx context.Context, b *adapters.Binding, to string, force bool) error {
	if b == nil || b.Host == to || force {
		return nil
	}
	if held := p.held(ctx, "", b); held.lease {
		return connect.NewError(connect.CodeFailedPrecondition, held.why)
	}
	return nil
}

// hostOf is the name of the host where a port is bound; "" for no port, and for a host that was removed.
func (p *Ports) hostOf(b *adapters.Binding) string {
	if b == nil {
		return ""
	}
	h, _ := p.Hosts.Of(b.Host)
	return h.Name
}

// settling is the claim by which an adapter gets its port on a host, and the port that it has by what is known, nil for
// none: the claim rests on that.
func (p *Ports) settling(n part.Adapter, q *controllerv1.SettleStaticPortRequest, there *fanout.Answers) (
	r store.ClaimRequest, seen *adapters.Binding, err error) {
	h, is := p.Hosts.Named(q.GetHost())
	if !is {
		return r, nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("the cluster has no host %q: see heddle host list", q.GetHost()))
	}
	now := p.known(there)[h.ID].of[n]
	if now == nil {
		return r, nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("host %s has no port of adapter %s of VM "+
			"%s: "+
			"see heddle port static list", q.GetHost(), n.Name, n.VM))
	}
	group := now.GetSwitch() + "/" + now.GetPortGroup()
	_, serves, err := p.Hosts.Serves(h.ID, group)
	if err != nil {
		return r, nil, err
	}
	g := p.Hosts.Defined().Group(group)
	if !serves || !g.HasStaticPorts() {
		return r, nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("port group %s of adapter %s on "+
			"host %s has no static ports there: stop one of the guests", group, n.Name, q.GetHost()))
	}
	_, limit := g.StaticPorts()
	r = store.ClaimRequest{PortGroup: group, Port: now.GetPort(), Limit: limit,
		Binding: store.Binding{Host: h.ID, VM: n.VM, Adapter: n.Name, MAC: strings.ToLower(now.GetMac())}}
	if seen = p.Of(n); seen != nil {
		r.Port, r.Move, r.Was = seen.ID, true, seen.Was()
	}
	return r, seen, cmp.Or(p.boundAsSaid(n, seen, q.GetFrom()), p.boundAsSeen(n, seen, q.GetBinding()))
}

// boundAsSaid refuses a port that is bound on another host than the caller has named; "" stands for any.
func (p *Ports) boundAsSaid(n part.Adapter, b *adapters.Binding, from string) error {
	name := p.hostOf(b)
	switch {
	case from == "" || name == from:
		return nil
	case b == nil:
		return connect.NewError(connect.CodeAborted, fmt.Sprintf("adapter %s of VM %s has no static port on host %s "+
			"any "+
			"more, nor elsewhere: see heddle port static list", n.Name, n.VM, from))
	}
	return connect.NewError(connect.CodeAborted, fmt.Sprintf("static port %s of adapter %s of VM %s is bound on host "+
		"%s "+
		"by now, not on %s: see heddle port static list", b.ID, n.Name, n.VM, name, from))
}

// boundAsSeen refuses a port whose binding is another than the caller has seen; "" stands for any.
func (p *Ports) boundAsSeen(n part.Adapter, b *adapters.Binding, was string) error {
	if was == "" || seen(b) == was {
		return nil
	}
	is := "it has no static port now"
	if b != nil {
		is = fmt.Sprintf("static port %s is its port now, bound on host %s (binding %s)", b.ID,
			p.Hosts.Name(b.Host), seen(b))
	}
	return connect.NewError(connect.CodeAborted, fmt.Sprintf("adapter %s of VM %s is not bound by %s any more: %s; "+
		"see heddle port static list, and settle it by that if it is still meant", n.Name, n.VM, was, is))
}

// portError is an error about a static port, for people.
func (p *Ports) portError(err error) error {
	var taken *store.Taken
	var none *store.NoFreePort
	var missing *store.NotFound
	switch {
	case errors.As(err, &taken), errors.As(err, &none):
		return connect.NewError(connect.CodeFailedPrecondition, p.named(err))
	case errors.As(err, &missing):
		return connect.NewError(connect.CodeNotFound, err.Error())
	}
	return rpcerrors.OfStore(err)
}
