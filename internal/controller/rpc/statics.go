package rpc

import (
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/store"
)

// nic is an adapter of a VM, which it is on whatever host the VM runs. A port's name says nothing: equal names on two
// hosts are two ports.
type nic struct{ vm, adapter string }

// bound is a static port that is bound. It does not change: a change of the port makes another one.
type bound struct {
	id, group string
	nic       nic
	host, mac string
	chunk     string // the object of the store that it is in
}

// statics are the static ports that are bound, by what they are looked for, and the adapters that hosts report. The
// fleet's lock guards them.
type statics struct {
	byNIC  map[nic]*bound
	byHost map[string]map[string]*bound // by the host's id, then the port's
	chunks map[string]chunkOf           // by the object's name
	// running are the hosts that report that an adapter runs there.
	running map[nic][]*host
	// rivals are the hosts that are in conflict about an adapter.
	rivals map[nic]map[*host]string
}

// chunkOf is what is known of one object with ports.
type chunkOf struct {
	group string
	ports int // with unbound ones
	bound []*bound
}

func newStatics() *statics {
	s := &statics{running: map[nic][]*host{}, rivals: map[nic]map[*host]string{}}
	s.reset()
	return s
}

func (s *statics) reset() {
	s.byNIC, s.byHost, s.chunks = map[nic]*bound{}, map[string]map[string]*bound{}, map[string]chunkOf{}
}

// take takes in an object with ports, nil for one that is gone, and returns the hosts and adapters that it concerns.
func (s *statics) take(name string, o *store.Object) (hosts map[string]bool, nics map[nic]bool, err error) {
	var ports store.Bindings
	if o != nil {
		if ports, err = store.DecodeBindings(o); err != nil {
			return nil, nil, err
		}
	}
	hosts, nics = map[string]bool{}, map[nic]bool{}
	was := map[string]*bound{}
	for _, b := range s.chunks[name].bound {
		was[b.id] = b
	}
	now := chunkOf{group: ports.Group, ports: ports.Ports}
	for id, p := range ports.Bound {
		b := &bound{id: id, group: ports.Group, nic: nic{p.VM, p.Adapter}, host: p.Host, mac: p.MAC, chunk: name}
		if old := was[b.id]; old != nil && *old == *b {
			b = old
			delete(was, b.id)
		} else {
			hosts[b.host], nics[b.nic] = true, true
		}
		now.bound = append(now.bound, b)
	}
	for _, b := range was {
		s.drop(b)
		hosts[b.host], nics[b.nic] = true, true
	}
	for _, b := range now.bound {
		s.put(b)
	}
	if s.chunks[name] = now; o == nil {
		delete(s.chunks, name)
	}
	return hosts, nics, nil
}

func (s *statics) put(b *bound) {
	s.byNIC[b.nic] = b
	if s.byHost[b.host] == nil {
		s.byHost[b.host] = map[string]*bound{}
	}
	s.byHost[b.host][b.id] = b
}

func (s *statics) drop(b *bound) {
	if s.byNIC[b.nic] == b {
		delete(s.byNIC, b.nic)
	}
	if delete(s.byHost[b.host], b.id); len(s.byHost[b.host]) == 0 {
		delete(s.byHost, b.host)
	}
}

// groupsOn are the port groups of the ports that are bound on a host, by the ports' ids.
func (s *statics) groupsOn(host string) map[string]string {
	groups := make(map[string]string, len(s.byHost[host]))
	for id, b := range s.byHost[host] {
		groups[id] = b.group
	}
	return groups
}

// count is how many ports a port group has, and how many of them are bound.
func (s *statics) count(group string) (ports, bound int) {
	for _, c := range s.chunks {
		if c.group == group {
			ports, bound = ports+c.ports, bound+len(c.bound)
		}
	}
	return ports, bound
}

// port finds a bound port by its id.
func (s *statics) port(id string) *bound {
	for _, ports := range s.byHost {
		if b := ports[id]; b != nil {
			return b
		}
	}
	return nil
}

// runningPort is the port of an adapter that runs on a host.
type runningPort struct {
	sw, name string
	arrived  bool // a moment ago, by a migration
	placed
}

// reported takes in the ports that a host reports, and returns the adapters that run there now and did not, or the
// other way round.
func (s *statics) reported(h *host, ports []*controllerv1.HostPort) map[nic]bool {
	changed, now := map[nic]bool{}, map[nic]bool{}
	for _, p := range ports {
		if n, ok := runs(p); ok {
			now[n] = true
		}
	}
	for n := range h.running {
		if !now[n] {
			changed[n] = true
			s.stops(h, n)
		}
	}
	s.begin(h, ports, changed)
	return changed
}

// amended takes in what is another since a host's report before: ports that it has and has no more, by switch and name.
func (s *statics) amended(h *host, put []*controllerv1.HostPort, gone []*controllerv1.HostPortKey) map[nic]bool {
	changed := map[nic]bool{}
	names := map[[2]string]bool{}
	for _, k := range gone {
		names[[2]string{k.GetSwitch(), k.GetName()}] = true
	}
	for _, p := range put {
		names[[2]string{p.GetSwitch(), p.GetName()}] = true
	}
	was := map[nic]bool{}
	for n, p := range h.running {
		if names[[2]string{p.sw, p.name}] {
			was[n] = true
			s.stops(h, n)
		}
	}
	s.begin(h, put, changed)
	for n := range was {
		if _, still := h.running[n]; still {
			delete(changed, n)
		} else {
			changed[n] = true
		}
	}
	return changed
}

// begin takes in ports; changed gets the adapters that run there and did not.
func (s *statics) begin(h *host, ports []*controllerv1.HostPort, changed map[nic]bool) {
	for _, p := range ports {
		n, ok := runs(p)
		if !ok {
			continue
		}
		if h.running == nil {
			h.running = map[nic]runningPort{}
		}
		if _, did := h.running[n]; !did {
			changed[n] = true
			s.running[n] = append(slices.Clip(s.running[n]), h)
		}
		h.running[n] = runningPort{p.GetSwitch(), p.GetName(), p.GetArrived(), placedBy(p)}
	}
}

// stops takes in that an adapter does not run on a host any more.
func (s *statics) stops(h *host, n nic) {
	delete(h.running, n)
	left := slices.DeleteFunc(slices.Clone(s.running[n]), func(o *host) bool { return o == h })
	if s.running[n] = left; len(left) == 0 {
		delete(s.running, n)
	}
}

// runs is the adapter whose port that is, if it runs there: not while its guest waits elsewhere, nor without a device.
func runs(p *controllerv1.HostPort) (nic, bool) {
	return nic{p.GetVm(), p.GetAdapter()}, p.GetVm() != "" && !p.GetWaits() && !p.GetAbsent()
}

// on are the hosts that are connected and report that an adapter runs there, by name.
func (s *statics) on(n nic) []*host {
	list := slices.DeleteFunc(slices.Clone(s.running[n]), func(h *host) bool { return h.conn == nil })
	slices.SortFunc(list, byName)
	return list
}

// adapters are those that a host reports as running.
func (h *host) adapters() map[nic]bool {
	all := make(map[nic]bool, len(h.running))
	for n := range h.running {
		all[n] = true
	}
	return all
}
