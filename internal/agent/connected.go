package agent

import (
	"maps"
	"reflect"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/agent/adopt"
	"heddle/internal/agent/part"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// connected are the ports that commands connected, with what was set for them, and whose they are.
type connected struct {
	*shared
	parts *part.Table
}

// port finds a port connected by command by name.
func (cn *connected) port(name string) *spec.Port {
	for i := range cn.state.Ports {
		if cn.state.Ports[i].Name == name {
			return &cn.state.Ports[i]
		}
	}
	return nil
}

func (cn *connected) drop(name string) {
	cn.state.Ports = slices.DeleteFunc(slices.Clone(cn.state.Ports), func(p spec.Port) bool { return p.Name == name })
}

// replacing returns the run-time ports with p in place of those that have its name or its device.
func (cn *connected) replacing(p spec.Port) (ports []spec.Port, changes []api.Change, err error) {
	change := api.Change{Kind: api.Added, Object: portRef(p)}
	for _, other := range cn.state.Ports {
		switch {
		case other.Name == p.Name:
			change.Kind = api.Changed
		case p.Device != "" && other.Device == p.Device:
			changes = append(changes, api.Change{Kind: api.Removed, Object: portRef(other)})
		default:
			ports = append(ports, other)
		}
	}
	return append(ports, p), append(changes, change), nil
}

// comesAnew reports whether the repeated request for a connected port counts as a new connection: its own settings have
// ended, and everything else is the same.
func (cn *connected) comesAnew(have, p spec.Port) bool {
	if !cn.state.Overrides[p.Name].Reset {
		return false
	}
	have.Policy, p.Policy = spec.Policy{}, spec.Policy{}
	return reflect.DeepEqual(have, p)
}

// own is what a port has set for itself; false for a port that no command connected.
func (cn *connected) own(id plan.PortID) (o state.OwnPolicy, there bool) {
	o.Blocked = cn.state.Overrides[id.Name].Blocked
	p := cn.port(id.Name)
	if p == nil || p.Switch != id.Switch {
		return o, false
	}
	o.Policy = p.Policy
	return o, true
}

// setOwn is an edit that makes a port's own settings those.
func (cn *connected) setOwn(port string, own state.OwnPolicy) {
	cn.state.Ports = slices.Clone(cn.state.Ports)
	if p := cn.port(port); p != nil {
		p.Policy = own.Policy
	}
	o := cn.state.Overrides[port]
	o.Blocked = own.Blocked
	if cn.state.Overrides[port] = o; o == (state.Override{}) {
		delete(cn.state.Overrides, port)
	}
}

// ends is the part of an edit by which a run-time port ends: a static port keeps its counters.
func (cn *connected) ends(p spec.Port) {
	id := plan.PortID{Switch: p.Switch, Name: p.Name}
	base := cn.state.BaseOf(id)
	cn.state.DropGoods(id)
	n := cn.state.NICOf(p.Name)
	if n == nil {
		return
	}
	cn.parts.Leaving(id)
	if !n.Keeps() {
		cn.state.DropNIC(n.VM, n.Adapter)
		return
	}
	kept := *n
	if r := cn.kernel.CounterReader(); r.Has(id) {
		c, err := r.Read(id)
		if err != nil {
			cn.Complain("read the counters of a port that ends", err)
		}
		kept.Counters = base.With(c)
	}
	cn.state.PutNIC(kept, abi.MaxPorts)
}

// isPresent reports whether a run-time port has a device.
func (cn *connected) isPresent(port string) bool {
	p := cn.port(port)
	if p == nil {
		return false
	}
	d, there, err := cn.dev.Device(p.Device)
	id, ow := plan.PortID{Switch: p.Switch, Name: p.Name}, owned{cn.shared}
	return err == nil && there && (!ow.isVMs(*p) || ow.mayTake(id, d, there))
}

// forget removes a run-time port from what is remembered, before there is a plan.
func (cn *connected) forget(name string) error {
	cn.drop(name)
	return cn.store.Save(cn.state)
}

// before returns the run-time ports and overrides that the change has altered, as they were before it.
func (cn *connected) before(before intent) (list []adopt.PortBefore) {
	was, now := portsByName(before.ports), portsByName(cn.state.Ports)
	names := map[string]bool{}
	for _, some := range []map[string]*spec.Port{was, now} {
		for name := range some {
			names[name] = true
		}
	}
	for _, some := range []map[string]state.Override{before.overrides, cn.state.Overrides} {
		for name := range some {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p := adopt.PortBefore{Name: name, Port: was[name]}
		o, had := before.overrides[name]
		if had {
			p.Override = &o
		}
		n, has := cn.state.Overrides[name]
		if !reflect.DeepEqual(was[name], now[name]) || had != has || !reflect.DeepEqual(o, n) {
			list = append(list, p)
		}
	}
	return list
}
