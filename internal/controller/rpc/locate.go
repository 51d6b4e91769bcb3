package rpc

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
)

// locator says where ports are, by what all controllers know.
type locator struct {
	everywhere *everywhere
	roster     *peers.Roster
	fleet      *fleet
	log        *slog.Logger
}

func locatorOf(s *Server) locator { return locator{s.everywhere(), s.Roster, s.fleet, s.Log} }

// LocatePorts says on which hosts the ports of a VM, or a port, are, whichever controllers these are connected to.
func (s locator) LocatePorts(ctx context.Context, q *controllerv1.LocatePortsRequest) (
	*controllerv1.LocatePortsResponse, error) {
	if q.GetVm() == "" && q.GetPort() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument,
			"say which port: the UUID of a VM, or the name of a port")
	}
	stale := s.everywhere.confirming(ctx)
	ports, unreachable := s.locate(ctx, q)
	return &controllerv1.LocatePortsResponse{Stale: stale(), Unreachable: unreachable,
		Ports: seenPorts(access.GrantedTo(ctx), ports)}, nil
}

// locate finds where ports are, by what all controllers know; those that do not answer are named.
func (s locator) locate(ctx context.Context, q *controllerv1.LocatePortsRequest) (ports []*controllerv1.LocatedPort,
	unreachable []string) {
	q = proto.CloneOf(q)
	q.Vm = strings.ToLower(q.GetVm())
	known := locating{s.fleet}.here(q)
	for _, a := range peers.AskOthers(ctx, s.roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.LocatePortsHereResponse, error) {
		return k.LocatePortsHere(ctx, &controllerv1.LocatePortsHereRequest{Query: q})
	}) {
		if a.Err != nil {
			s.log.Debug("another controller does not say where ports are", "controller", peers.NameOf(a.Of), "err",
				a.Err)
			unreachable = append(unreachable, peers.NameOf(a.Of))
			continue
		}
		known = append(known, a.Got.GetPorts()...)
	}
	return locating{s.fleet}.together(known), unreachable
}

// LocatePortsHere says what this controller knows of it, for another one.
func (o others) LocatePortsHere(ctx context.Context, q *controllerv1.LocatePortsHereRequest) (
	*controllerv1.LocatePortsHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	return &controllerv1.LocatePortsHereResponse{Ports: locating{o.fleet}.here(q.GetQuery())}, nil
}

// locating is the part of a fleet that says where ports are.
type locating struct{ *fleet }

// found is a host with the report that may have the ports, and what else is known of them.
type found struct {
	host      *host
	name      string
	report    *report
	connected bool
	since     time.Time
	keys      map[portKey]bool // nil where the report is to be searched
	conflicts map[part.Adapter]string
}

// here are the ports on hosts that are or were connected to this controller. Reports are read without the lock, as they
// do not change.
func (l locating) here(q *controllerv1.LocatePortsRequest) (list []*controllerv1.LocatedHere) {
	for _, f := range l.hosts(q) {
		for _, body := range f.report.bodies() {
			sw, name := keyOf(body)
			if f.keys != nil && !f.keys[portKey{string(sw), string(name)}] ||
				q.GetPort() != "" && string(name) != q.GetPort() {
				continue
			}
			p := &controllerv1.HostPort{}
			if proto.Unmarshal(body, p) != nil {
				continue
			}
			n, active := fanout.Runs(p)
			if n.VM == "" || q.GetVm() != "" && n.VM != q.GetVm() ||
				q.GetAdapter() != "" && n.Name != q.GetAdapter() {
				continue
			}
			list = append(list, &controllerv1.LocatedHere{Vm: n.VM, Adapter: n.Name, Host: f.host.id,
				Conflict: cmp.Or(f.conflicts[n], p.GetConflict()), ConnectedSince: timestamppb.New(f.since),
				Instance: &controllerv1.PortInstance{Host: f.name, Switch: p.GetSwitch(), Name: p.GetName(),
					PortGroup: p.GetPortGroup(), State: p.GetState(), Generation: p.GetGeneration(), Active: active,
					Why: whyOf(p), Stale: !f.connected, Since: p.GetSince()}})
		}
	}
	return list
}

// hosts are those that may have the ports. One adapter of a VM is looked up, all else is searched for.
func (l locating) hosts(q *controllerv1.LocatePortsRequest) (list []found) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add := func(h *host, keys map[portKey]bool) {
		f := found{host: h, name: h.doc.Name, report: h.report, connected: h.conn != nil, since: h.since, keys: keys,
			conflicts: map[part.Adapter]string{}}
		for n, m := range l.adapters.Marks(h.id) {
			if q.GetVm() == "" || n.VM == q.GetVm() {
				f.conflicts[n] = m.Text
			}
		}
		list = append(list, f)
	}
	if q.GetVm() == "" || q.GetAdapter() == "" {
		for _, h := range l.sorted() {
			add(h, nil)
		}
		return list
	}
	n := part.AdapterOf(q.GetVm(), q.GetAdapter())
	for _, p := range l.adapters.Ports(n) {
		if h := l.fleet.hosts[p.Host]; h != nil {
			add(h, map[portKey]bool{{p.Switch, p.Name}: true})
		}
	}
	return list
}

// whyOf says by what a host takes a port for active or not.
func whyOf(p *controllerv1.HostPort) string {
	switch {
	case p.GetAbsent():
		return "the port has no device on the host"
	case p.GetWaits():
		return "the port waits for its guest, which does not run there"
	}
	return "the host reports that the guest runs there"
}

// together makes of what controllers know the adapters with their hosts. What the controller says that a host is
// connected to counts more than what others remember of the host.
func (l locating) together(known []*controllerv1.LocatedHere) (list []*controllerv1.LocatedPort) {
	best := map[string]*controllerv1.LocatedHere{} // by host
	for _, k := range known {
		if was := best[k.GetHost()]; was == nil || fresher(k, was) {
			best[k.GetHost()] = k
		}
	}
	by := map[part.Adapter]*controllerv1.LocatedPort{}
	for _, k := range known {
		if of := best[k.GetHost()]; k.GetInstance().GetStale() != of.GetInstance().GetStale() ||
			!k.GetConnectedSince().AsTime().Equal(of.GetConnectedSince().AsTime()) {
			continue
		}
		n := part.AdapterOf(k.GetVm(), k.GetAdapter())
		if by[n] == nil {
			by[n] = &controllerv1.LocatedPort{Vm: n.VM, Adapter: n.Name}
			list = append(list, by[n])
		}
		by[n].Instances = append(by[n].Instances, k.GetInstance())
		by[n].Conflict = cmp.Or(by[n].GetConflict(), k.GetConflict())
	}
	for _, p := range list {
		slices.SortFunc(p.GetInstances(), func(a, b *controllerv1.PortInstance) int {
			return cmp.Or(cmp.Compare(b.GetGeneration(), a.GetGeneration()), cmp.Compare(a.GetHost(), b.GetHost()))
		})
		l.decide(p)
	}
	slices.SortFunc(list, func(a, b *controllerv1.LocatedPort) int {
		return cmp.Or(cmp.Compare(a.GetVm(), b.GetVm()), cmp.Compare(a.GetAdapter(), b.GetAdapter()))
	})
	return list
}

// fresher reports whether one controller knows a host better than another one.
func fresher(a, b *controllerv1.LocatedHere) bool {
	if a.GetInstance().GetStale() != b.GetInstance().GetStale() {
		return b.GetInstance().GetStale()
	}
	return a.GetConnectedSince().AsTime().After(b.GetConnectedSince().AsTime())
}

// decide finds the host where a port is: with the highest generation of those that are connected and report it active;
// of several with that one, where its static port is bound.
func (l locating) decide(p *controllerv1.LocatedPort) {
	var top []*controllerv1.PortInstance
	for _, i := range p.GetInstances() {
		if !i.GetActive() || i.GetStale() || len(top) > 0 && i.GetGeneration() < top[0].GetGeneration() {
			continue
		}
		top = append(top, i) // the highest come first
	}
	if len(top) == 0 {
		return
	}
	p.Generation = top[0].GetGeneration()
	if len(top) == 1 {
		p.Host = top[0].GetHost()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	b := l.adapters.Bindings.Of(part.AdapterOf(p.GetVm(), p.GetAdapter()))
	for _, i := range top {
		names = append(names, i.GetHost())
		if h := l.names[i.GetHost()]; b != nil && h != nil && h.id == b.Host {
			p.Host = i.GetHost()
		}
	}
	if p.GetGeneration() == 0 {
		return // of hosts of an earlier version, which mark it themselves
	}
	p.Conflict = cmp.Or(p.GetConflict(), fmt.Sprintf("hosts %s report the guest with the same generation, %d: until "+
		"they have reported anew, one of the reports may be old", strings.Join(names, ", "), p.GetGeneration()))
}
