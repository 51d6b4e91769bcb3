package rpc

import (
	"context"
	"log/slog"
	"time"

	"heddle/internal/controller/adapters"
	"heddle/internal/controller/capability"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// capabilities are the parts of those that a controller has.
type capabilities []capable

// capable is a part, with the capability that it is of.
type capable struct {
	capability.Capability
	part capability.Part
}

// capabilitiesOf makes the parts of a server's capabilities.
func capabilitiesOf(s *Server) (all capabilities) {
	d := capability.Deps{Log: s.Log, Store: s.Store, Roster: s.Roster, Hosts: knownHosts(s), Adapters: s.fleet.adapters,
		CatchUp: s.catchUp, Fresh: s.fresh, Lease: func() time.Duration { return s.PortLease }, Look: s.ShareTime}
	for _, c := range s.Options.Capabilities {
		for _, p := range c.New(d) {
			all = append(all, capable{c, p})
		}
	}
	return all
}

// parts are those that take part in the conversations with hosts.
func (l capabilities) parts() (list []any) {
	for _, c := range l {
		list = append(list, c.part)
	}
	return list
}

// each calls a hook of all parts that have it.
func each[Hook any](l capabilities, call func(capable, Hook)) {
	for _, c := range l {
		if hook, has := c.part.(Hook); has {
			call(c, hook)
		}
	}
}

// take has the parts take in a batch of the store: each the objects of its kinds, together, so that no host is told a
// part of them. It returns the hosts whose parts of the definition are to be made anew.
func (l capabilities) take(b store.Batch) map[string]bool {
	changed := map[string]bool{}
	each(l, func(c capable, p capability.Taker) {
		var own []store.Event
		for _, e := range b.Events {
			if c.Takes(e.Kind) {
				own = append(own, e)
			}
		}
		if len(own) == 0 && !b.Reset {
			return
		}
		for id := range p.Take(own, b.Reset) {
			changed[id] = true
		}
	})
	return changed
}

// changeParts are the parts of one change of the definition: those that judge it, and those that have work with it.
func (l capabilities) changeParts(w capability.World) (judge, work []pipeline.Part) {
	each(l, func(_ capable, p capability.Changer) {
		c := p.Change(w)
		if c.Judge != nil {
			judge = append(judge, c.Judge)
		}
		if c.Work != nil {
			work = append(work, c.Work)
		}
	})
	return judge, work
}

// bindings are the static ports of adapters, by the capability that keeps them; nil for none.
func (l capabilities) bindings() (found adapters.Bindings) {
	each(l, func(_ capable, p adapters.Bindings) { found = p })
	return found
}

// knownHosts is what a server knows of its hosts, for its capabilities.
func knownHosts(s *Server) capability.Hosts {
	f := s.fleet
	return capability.Hosts{
		Of:    func(id string) (fanout.Host, bool) { return knownHost(f, func() *host { return f.hosts[id] }) },
		Named: func(name string) (fanout.Host, bool) { return knownHost(f, func() *host { return f.names[name] }) },
		All: func() (list []fanout.Host) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, h := range f.sorted() {
				list = append(list, h.known())
			}
			return list
		},
		Ask: s.askHosts,
		Defined: func() *inventory.Inventory {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.inventory
		},
		DefinedFor: func(id string) (*inventory.Inventory, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if h := f.hosts[id]; h != nil {
				return withheld{f}.definitionOf(f.inventory, h)
			}
			return f.inventory, nil
		},
		Serves: func(id, group string) (spec.PortGroup, bool, error) { return servesGroup(f, id, group) },
		Say: func(id string, level slog.Level, text string, args ...any) {
			f.mu.Lock()
			h := f.hosts[id]
			f.mu.Unlock()
			if h != nil {
				h.say(f.log, level, text, args...)
			}
		},
	}
}

// knownHost is the host that find finds with the lock.
func knownHost(f *fleet, find func() *host) (fanout.Host, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := find()
	if h == nil {
		return fanout.Host{}, false
	}
	return h.known(), true
}

// servesGroup reports whether what a host is to have has a port group. A host that was removed serves none.
func servesGroup(f *fleet, id, group string) (g spec.PortGroup, is bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[id]
	if h == nil {
		return g, false, nil
	}
	set, err := f.target(h)
	if err != nil {
		return g, false, err
	}
	if _, is = set.Get(slice.Key{Kind: slice.PortGroup, Name: group}); !is {
		return g, false, nil
	}
	v, err := withheld{f}.definitionOf(f.inventory, h)
	if err != nil {
		return g, false, err
	}
	return v.Group(group), true, nil
}

// run does what the parts do by themselves, until ctx ends.
func (l capabilities) run(ctx context.Context, beside func(func())) {
	each(l, func(_ capable, p capability.Runner) { beside(func() { p.Run(ctx) }) })
}
