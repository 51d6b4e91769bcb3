package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/controller/staticports"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// ListStaticPorts lists the static ports, bound or not, and the ports that should be static ones and are not.
func (p people) ListStaticPorts(ctx context.Context, q *controllerv1.ListStaticPortsRequest) (
	*controllerv1.ListStaticPortsResponse, error) {
	out, sight := &controllerv1.ListStaticPortsResponse{Stale: p.fresh(ctx)}, access.GrantedTo(ctx)
	var all []store.Port
	for _, o := range p.Store.List(store.KindPorts) {
		ports, err := store.DecodePorts(&o)
		if err != nil {
			return nil, err
		}
		all = append(all, ports...)
	}
	there := p.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	f := p.fleet.keeper()
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.known(there)
	settings, err := f.inventory.Settings()
	if err != nil {
		return nil, err
	}
	for _, port := range all {
		out.Ports = append(out.Ports, f.staticPort(&port, known, settings))
	}
	out.Ports = append(out.Ports, f.conflictPorts(known)...)
	fits := func(want, got string) bool { return want == "" || want == got }
	out.Ports = slices.DeleteFunc(out.GetPorts(), func(port *controllerv1.FleetStaticPort) bool {
		return !fits(q.GetSwitch(), port.GetSwitch()) || !fits(q.GetPortGroup(), port.GetPortGroup()) ||
			!fits(q.GetHost(), port.GetHost()) || !sight.Sees(port.GetSwitch(), port.GetPortGroup())
	})
	slices.SortStableFunc(out.GetPorts(), func(a, b *controllerv1.FleetStaticPort) int {
		return cmp.Or(cmp.Compare(a.GetSwitch(), b.GetSwitch()), cmp.Compare(a.GetPortGroup(), b.GetPortGroup()),
			cmp.Compare(len(a.GetPort()), len(b.GetPort())), cmp.Compare(a.GetPort(), b.GetPort()),
			cmp.Compare(a.GetHost(), b.GetHost()))
	})
	return out, nil
}

// knownPorts is what a host has reported of the adapters on it.
type knownPorts struct {
	of        map[nic]*controllerv1.HostPort
	connected bool
}

// known is what the hosts have reported of adapters, to whichever controller. The caller holds the lock.
func (f portKeeper) known(there *elsewhere) map[*host]knownPorts {
	all := make(map[*host]knownPorts, len(f.hosts))
	for _, h := range f.hosts {
		report, connected := there.reportOf(h)
		k := knownPorts{map[nic]*controllerv1.HostPort{}, connected}
		if report != nil {
			for _, p := range report.GetPorts() {
				if p.GetVm() != "" {
					k.of[part.AdapterOf(p.GetVm(), p.GetAdapter())] = p
				}
			}
		}
		all[h] = k
	}
	return all
}

// staticPort is a static port as people see it. The caller holds the lock.
func (f portKeeper) staticPort(p *store.Port, known map[*host]knownPorts,
	settings map[string]spec.PortSettings) *controllerv1.FleetStaticPort {
	out := &controllerv1.FleetStaticPort{Port: p.ID}
	out.Switch, out.PortGroup, _ = strings.Cut(p.Group, "/")
	if s, ok := settings[p.ID]; ok && s.Switch == out.GetSwitch() && s.PortGroup == out.GetPortGroup() {
		out.Label, out.Description, out.Settings = s.Name, s.Description, policyText(s.Policy)
	}
	b := p.Binding
	if b == nil {
		return out
	}
	out.Bound, out.Vm, out.Adapter, out.Mac = true, b.VM, b.Adapter, b.MAC
	out.Binding = staticports.SeenOf(p.ID, b)
	h := f.hosts[b.Host]
	if h == nil {
		return out
	}
	n := part.AdapterOf(b.VM, b.Adapter)
	out.Host, out.Stale = h.doc.Name, !known[h].connected
	if now := known[h].of[n]; now != nil {
		out.Name, out.State, out.Conflict = now.GetName(), now.GetState(), now.GetConflict()
	}
	out.Conflict = cmp.Or(f.adapters.Marks(h.id)[n].Text, out.GetConflict())
	return out
}

// conflictPorts are the ports on hosts whose adapters have no static port there and should. The caller holds the lock.
func (f portKeeper) conflictPorts(known map[*host]knownPorts) (list []*controllerv1.FleetStaticPort) {
	for h, k := range known {
		marks := f.adapters.Marks(h.id)
		for n, p := range k.of {
			text := cmp.Or(marks[n].Text, p.GetConflict())
			if b := f.bindings.Of(n); text == "" || b != nil && b.Host == h.id {
				continue
			}
			list = append(list, &controllerv1.FleetStaticPort{Port: p.GetPort(), Switch: p.GetSwitch(),
				PortGroup: p.GetPortGroup(), Vm: n.VM, Adapter: n.Name, Mac: p.GetMac(), Host: h.doc.Name,
				Name: p.GetName(), State: p.GetState(), Conflict: text, Stale: !k.connected,
				Binding: f.bindings.Of(n).Seen()})
		}
	}
	return list
}

// ReleaseStaticPort makes a port nobody's. One whose guest runs is not released: no guest loses its port by that.
func (p people) ReleaseStaticPort(ctx context.Context, q *controllerv1.ReleaseStaticPortRequest) (
	*controllerv1.ReleaseStaticPortResponse, error) {
	if err := p.catchUp(ctx); err != nil { // it may have been bound by another controller a moment ago
		return nil, rpcerrors.OfStore(err)
	}
	f := p.fleet.keeper()
	f.mu.Lock()
	b, used := f.bindings.Port(q.GetPort()), ""
	if b != nil {
		sw, group, _ := strings.Cut(b.Group, "/")
		if err := operates(ctx, sw, group); err != nil {
			f.mu.Unlock()
			return nil, err
		}
	}
	if b != nil {
		for _, on := range f.adapters.RunsOn(b.Adapter) {
			used = fmt.Sprintf("static port %s is in use on host %s, by port %s: disconnect that first", b.ID,
				f.nameAt(on.Host), on.Name)
		}
	}
	f.mu.Unlock()
	if b != nil {
		if err := isOf(b, q.GetVm(), q.GetAdapter()); err != nil {
			return nil, err
		}
	}
	if b != nil && used == "" {
		if held := claimant(p).held(ctx, nil, b); !held.lease || !q.GetForce() {
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
		return nil, portError(f, err)
	}
	p.Log.Info("a static port was released", "force", q.GetForce(), "port", b.ID, "group", b.Group, "vm", b.Adapter.VM,
		"adapter", b.Adapter.Name)
	sw, group, _ := strings.Cut(b.Group, "/")
	return &controllerv1.ReleaseStaticPortResponse{Port: &controllerv1.FleetStaticPort{Port: b.ID, Switch: sw,
		PortGroup: group}}, nil
}

// isOf refuses a port that has another owner than the caller has named; "" stands for any.
func isOf(b *staticports.Binding, vm, adapter string) error {
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
func (p people) SettleStaticPort(ctx context.Context, q *controllerv1.SettleStaticPortRequest) (
	*controllerv1.SettleStaticPortResponse, error) {
	n := part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter())
	if err := p.catchUp(ctx); err != nil { // it may have been bound by another controller a moment ago
		return nil, rpcerrors.OfStore(err)
	}
	there := p.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	r, seen, err := p.fleet.keeper().settling(n, q, there)
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
			n.Name, n.VM, p.fleet.keeper().named(err)))
	}
	if err != nil {
		return nil, portError(p.fleet.keeper(), err)
	}
	p.Log.Info("a conflict was settled", "force", q.GetForce(), "port", port.ID, "group", port.Group, "vm", n.VM,
		"adapter", n.Name, "host", q.GetHost(), "from", p.fleet.keeper().hostOf(seen))
	p.fleet.mu.Lock()
	defer p.fleet.mu.Unlock()
	return &controllerv1.SettleStaticPortResponse{Port: p.fleet.keeper().staticPort(&port,
		p.fleet.keeper().known(there), nil)}, nil
}

// mayTake refuses to take a port, nil for none, from a lost host that holds it, but by force.
func (p people) mayTake(ctx context.Context, b *staticports.Binding, to string, force bool) error {
	if b == nil || b.Host == to || force {
		return nil
	}
	if held := claimant(p).held(ctx, nil, b); held.lease {
		return connect.NewError(connect.CodeFailedPrecondition, held.why)
	}
	return nil
}

// hostOf is the name of the host where a port is bound; "" for no port, and for a host that was removed.
func (f portKeeper) hostOf(b *staticports.Binding) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b == nil || f.hosts[b.Host] == nil {
		return ""
	}
	return f.hosts[b.Host].doc.Name
}

// settling is the claim by which an adapter gets its port on a host, and the port that it has by what is known, nil for
// none: the claim rests on that.
func (f portKeeper) settling(n nic, q *controllerv1.SettleStaticPortRequest, there *elsewhere) (r store.ClaimRequest,
	seen *staticports.Binding, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.names[q.GetHost()]
	if h == nil {
		return r, nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("the cluster has no host %q: see heddle host list", q.GetHost()))
	}
	now := f.known(there)[h].of[n]
	if now == nil {
		return r, nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("host %s has no port of adapter %s of VM "+
			"%s: "+
			"see heddle port static list", q.GetHost(), n.Name, n.VM))
	}
	group := now.GetSwitch() + "/" + now.GetPortGroup()
	set, err := f.target(h)
	if err != nil {
		return r, nil, err
	}
	g := f.inventory.Group(group)
	if _, ok := set.Get(slice.Key{Kind: slice.PortGroup, Name: group}); !ok || !g.HasStaticPorts() {
		return r, nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("port group %s of adapter %s on "+
			"host %s has no static ports there: stop one of the guests", group, n.Name, q.GetHost()))
	}
	_, limit := g.StaticPorts()
	r = store.ClaimRequest{PortGroup: group, Port: now.GetPort(), Limit: limit,
		Binding: store.Binding{Host: h.id, VM: n.VM, Adapter: n.Name, MAC: strings.ToLower(now.GetMac())}}
	if seen = f.bindings.Of(n); seen != nil {
		r.Port, r.Move, r.Was = seen.ID, true, seen.Was()
	}
	return r, seen, cmp.Or(f.boundAsSaid(n, seen, q.GetFrom()), f.boundAsSeen(n, seen, q.GetBinding()))
}

// boundAsSaid refuses a port that is bound on another host than the caller has named; "" stands for any. The caller
// holds the lock.
func (f portKeeper) boundAsSaid(n nic, b *staticports.Binding, from string) error {
	name := ""
	if b != nil && f.hosts[b.Host] != nil {
		name = f.hosts[b.Host].doc.Name
	}
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

// portError is an error about a static port, for people.
func portError(f portKeeper, err error) error {
	var taken *store.Taken
	var none *store.NoFreePort
	var missing *store.NotFound
	switch {
	case errors.As(err, &taken), errors.As(err, &none):
		return connect.NewError(connect.CodeFailedPrecondition, f.named(err))
	case errors.As(err, &missing):
		return connect.NewError(connect.CodeNotFound, err.Error())
	}
	return rpcerrors.OfStore(err)
}
