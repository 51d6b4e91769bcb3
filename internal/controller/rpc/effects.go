package rpc

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// mostNamed bounds how many ports of a port group are named.
const mostNamed = 16

// foresee completes what a change of the definition does with what it means for the hosts, and refuses one that leaves
// ports less protected on a host than the definition says.
func (f *fleet) foresee(there *fanout.Answers, have *slice.Set, c slice.Change, after *inventory.Inventory,
	g *addresses.Grant, q *controllerv1.ApplyDefinitionRequest, out *controllerv1.ApplyDefinitionResponse) error {
	out.Objects = definition.ObjectChanges(have, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	e := &effects{fleet: f, there: there, out: out, touched: map[[2]slice.Hash]*touched{},
		groups: map[string]*controllerv1.AffectedGroup{}, harmless: harmless(out.GetObjects())}
	for _, h := range f.sorted() {
		if err := e.host(h, after, g, q.GetDryRun()); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.groups)) {
		out.Affected = append(out.Affected, e.groups[name])
	}
	if len(e.unprotected) > 0 && !q.GetAllowUnprotected() && !q.GetDryRun() {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(e.unprotected, "\n")+
			"\nupdate the hosts first, or make the change with --allow-unprotected: their ports go without it")
	}
	return nil
}

// effects are what a change means for the hosts.
type effects struct {
	*fleet
	there       *fanout.Answers
	out         *controllerv1.ApplyDefinitionResponse
	touched     map[[2]slice.Hash]*touched // by the contents before and after
	groups      map[string]*controllerv1.AffectedGroup
	harmless    map[slice.Key]bool // changes of no way of a frame
	unprotected []string
}

// touched are the objects of a host's slice that change.
type touched struct{ switches, groups map[string]bool }

// host adds what the change means for one host.
func (e *effects) host(h *host, after *inventory.Inventory, g *addresses.Grant, dry bool) error {
	was, err := e.target(h)
	if err != nil {
		return err
	}
	will, _, err := contents{e.fleet}.sliceOf(after, h, g.Of(e.addresses, h.doc.Name))
	if err != nil {
		return err
	}
	if err := e.hostPorts(h, was, will.set); err != nil {
		return err
	}
	var unknown []string
	for _, l := range will.lacks {
		if slices.Contains(h.lacks, l) {
			continue
		}
		line := l.String() + ": the agent there (" + h.agent + ") does not know it"
		unknown = append(unknown, line)
		if l.Security() {
			e.unprotected = append(e.unprotected, "host "+h.doc.Name+" would go without "+line)
		}
	}
	if len(unknown) > 0 {
		e.out.Unknown = append(e.out.Unknown, &controllerv1.HostProblem{Host: h.doc.Name, Problems: unknown})
		if !slices.Contains(e.out.Hosts, h.doc.Name) {
			e.out.Hosts = append(e.out.Hosts, h.doc.Name)
			slices.Sort(e.out.Hosts)
		}
	}
	if dry && was.Hash() != will.set.Hash() {
		_, sharedWas := was.Parts()
		_, sharedWill := will.set.Parts()
		e.ports(h, e.between(sharedWas, sharedWill))
	}
	return nil
}

// hostPorts adds what becomes of a host's own host ports. One that is there already and changes may be the way to a
// controller.
func (e *effects) hostPorts(h *host, was, will *slice.Set) error {
	before, _ := was.Parts()
	after, _ := will.Parts()
	var risks []string
	add := func(k slice.Key, change string) error {
		if k.Kind != slice.Port {
			return nil
		}
		then, err := hostPortOf(before, k)
		if err != nil {
			return err
		}
		now, err := hostPortOf(after, k)
		if err != nil {
			return err
		}
		shown := now
		if shown == nil {
			shown = then
		}
		out := &controllerv1.HostPortChange{Host: h.doc.Name, Name: k.Name, Change: change, Switch: shown.Switch,
			PortGroup: shown.PortGroup, Addresses: now.addresses(), Before: then.addresses()}
		e.out.HostPorts = append(e.out.HostPorts, out)
		if then != nil {
			risks = append(risks, fmt.Sprintf("host port %s is %s, and has addresses of the host's own", k.Name,
				change))
		}
		return nil
	}
	c := slice.Between(before, after)
	for _, o := range c.Put {
		change := "added"
		if _, there := before.Get(o.Key); there {
			change = "changed"
		}
		if err := add(o.Key, change); err != nil {
			return err
		}
	}
	for _, k := range c.Removed {
		if err := add(k, "removed"); err != nil {
			return err
		}
	}
	e.risk(h, risks)
	return nil
}

// risk adds why a host may lose the way to its controllers.
func (e *effects) risk(h *host, risks []string) {
	if len(risks) == 0 {
		return
	}
	if n := len(e.out.GetAtRisk()); n > 0 && e.out.GetAtRisk()[n-1].GetHost() == h.doc.Name {
		e.out.AtRisk[n-1].Problems = append(e.out.AtRisk[n-1].Problems, risks...)
		return
	}
	e.out.AtRisk = append(e.out.AtRisk, &controllerv1.HostProblem{Host: h.doc.Name, Problems: risks})
}

// ownPort is a host port of a slice; nil for none.
type ownPort struct{ spec.Port }

func hostPortOf(set *slice.Set, k slice.Key) (*ownPort, error) {
	o, ok := set.Get(k)
	if !ok {
		return nil, nil
	}
	p := &ownPort{}
	if err := json.Unmarshal(o.Doc, &p.Port); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", k, err)
	}
	return p, nil
}

func (p *ownPort) addresses() []string {
	if p == nil {
		return nil
	}
	return p.Addresses
}

// between are the objects that differ. Hosts that have the same share the answer.
func (e *effects) between(was, will *slice.Set) *touched {
	key := [2]slice.Hash{was.Hash(), will.Hash()}
	if t := e.touched[key]; t != nil {
		return t
	}
	t := &touched{map[string]bool{}, map[string]bool{}}
	add := func(k slice.Key) {
		switch k.Kind {
		case slice.Switch:
			t.switches[k.Name] = true
		case slice.PortGroup:
			t.groups[k.Name] = true
		}
	}
	c := slice.Between(was, will)
	for _, o := range c.Put {
		add(o.Key)
	}
	for _, k := range c.Removed {
		add(k)
	}
	e.touched[key] = t
	return t
}

// ports adds the ports of a host that the change concerns.
func (e *effects) ports(h *host, t *touched) {
	seen := map[string]bool{}
	var risks []string
	list, _ := e.there.ReportOf(h.known())
	if list == nil {
		return
	}
	for _, p := range list.GetPorts() {
		name := p.GetSwitch() + "/" + p.GetPortGroup()
		if !t.switches[p.GetSwitch()] && !t.groups[name] {
			continue
		}
		g := e.groups[name]
		if g == nil {
			g = &controllerv1.AffectedGroup{Switch: p.GetSwitch(), PortGroup: p.GetPortGroup()}
			e.groups[name] = g
		}
		g.Ports++
		if !seen[name] {
			seen[name] = true
			g.Hosts++
		}
		if len(g.GetSome()) < mostNamed {
			g.Some = append(g.Some, h.doc.Name+"/"+p.GetName())
		}
		way := t.switches[p.GetSwitch()] && !e.harmless[slice.Key{Kind: slice.Switch, Name: p.GetSwitch()}] ||
			t.groups[name] && !e.harmless[slice.Key{Kind: slice.PortGroup, Name: name}]
		if p.GetRole() != "" && way {
			risks = append(risks, fmt.Sprintf("%s in port group %s has addresses of the host's own", p.GetName(), name))
		}
	}
	e.risk(h, risks)
}

// harmless are the objects of which only what is metered changes.
func harmless(list []*controllerv1.ObjectChange) map[slice.Key]bool {
	is := map[slice.Key]bool{}
	for _, o := range list {
		metered := func(c *controllerv1.FieldChange) bool {
			return strings.HasPrefix(strings.TrimPrefix(c.GetField(), "defaults."), "monitoring")
		}
		if len(o.GetFields()) > 0 && !slices.ContainsFunc(o.GetFields(), func(c *controllerv1.FieldChange) bool {
			return !metered(c)
		}) {
			is[slice.Key{Kind: slice.Kind(o.GetKind()), Name: o.GetName()}] = true
		}
	}
	return is
}
