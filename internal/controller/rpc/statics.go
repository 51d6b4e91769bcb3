package rpc

import (
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/staticports"
	"heddle/internal/platform/store"
)

// nic is an adapter of a VM, which it is on whatever host the VM runs. A port's name says nothing: equal names on two
// hosts are two ports.
type nic struct{ vm, adapter string }

// bound is a static port that is bound. It does not change: a change of the port makes another one.
type bound struct {
	id, group string
	nic       nic
	host, mac string
	gen       uint64 // with which it came there; 0 where the host claimed it
	claim     store.Claim
	chunk     string // the object of the store that it is in
}

// statics are the static ports that are bound, by what they are looked for, and the adapters that hosts report. The
// fleet's lock guards them.
type statics struct {
	byNIC  map[nic]*bound
	byHost map[string]map[string]*bound // by the host's id, then the port's
	chunks map[string]chunkOf           // by the object's name
	// running are the hosts that report that an adapter runs there, silent those that have a port for it whose guest
	// does not run there.
	running, silent hostsOf
	// marked are the hosts of this controller that are in conflict about an adapter.
	marked hostsOf
}

// chunkOf is what is known of one object with ports.
type chunkOf struct {
	group string
	ports int // with unbound ones
	bound []*bound
}

func newStatics() *statics {
	s := &statics{running: hostsOf{}, silent: hostsOf{}, marked: hostsOf{}}
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
		b := &bound{id: id, group: ports.Group, nic: nic{p.VM, p.Adapter}, host: p.Host, mac: p.MAC,
			gen: p.Generation, claim: p.Claim, chunk: name}
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

// counts are how many static ports each port group has that has any.
func (s *statics) counts() map[string]staticports.Count {
	all := map[string]staticports.Count{}
	for _, c := range s.chunks {
		n := all[c.group]
		all[c.group] = staticports.Count{Ports: n.Ports + c.ports, Bound: n.Bound + len(c.bound)}
	}
	return all
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

// nicPort is the port of an adapter on a host.
type nicPort struct {
	sw, name string
	arrived  bool   // a moment ago, by a migration
	group    string // the port group's name
	gen      uint64
	// sure are the generations of the hosts on which the adapter runs too, by the hosts' ids, of which the controller
	// had heard when it asked this host anew: the guest runs here still.
	sure map[string]uint64
}

// hostsOf are the hosts of adapters. A list does not change: a change makes another one.
type hostsOf map[nic][]*host

func (m hostsOf) add(n nic, h *host) { m[n] = append(slices.Clip(m[n]), h) }

func (m hostsOf) remove(n nic, h *host) {
	left := slices.DeleteFunc(slices.Clone(m[n]), func(o *host) bool { return o == h })
	if m[n] = left; len(left) == 0 {
		delete(m, n)
	}
}

// reported takes in the ports that a host reports, and returns the adapters that run there now and did not, or the
// other way round, or with another generation.
func (s *statics) reported(h *host, ports []*controllerv1.HostPort) map[nic]bool {
	return s.exchange(h, ports, func(nicPort) bool { return true })
}

// amended takes in what is another since a host's report before: ports that it has and has no more, by switch and name.
func (s *statics) amended(h *host, put []*controllerv1.HostPort, gone []*controllerv1.HostPortKey) map[nic]bool {
	names := map[portKey]bool{}
	for _, k := range gone {
		names[portKey{k.GetSwitch(), k.GetName()}] = true
	}
	for _, p := range put {
		names[portKey{p.GetSwitch(), p.GetName()}] = true
	}
	return s.exchange(h, put, func(p nicPort) bool { return names[portKey{p.sw, p.name}] })
}

// exchange puts ports in the place of those of a host for which old is true, and returns the adapters of which
// something is another.
func (s *statics) exchange(h *host, ports []*controllerv1.HostPort, old func(nicPort) bool) map[nic]bool {
	was := map[nic]nicPort{}
	for n, p := range h.running {
		if old(p) {
			was[n] = p
			delete(h.running, n)
			s.running.remove(n, h)
		}
	}
	for n, p := range h.silent {
		if old(p) {
			delete(h.silent, n)
			s.silent.remove(n, h)
		}
	}
	changed := s.begin(h, ports)
	for n, before := range was {
		now, still := h.running[n]
		if !still || now.gen != before.gen {
			changed[n] = true
			continue
		}
		now.sure = before.sure
		h.running[n] = now
		delete(changed, n)
	}
	return changed
}

// begin takes in ports and returns the adapters that run there by them.
func (s *statics) begin(h *host, ports []*controllerv1.HostPort) map[nic]bool {
	changed := map[nic]bool{}
	for _, p := range ports {
		n, run := runs(p)
		if n.vm == "" {
			continue
		}
		delete(h.starting, n)
		to, index := &h.silent, s.silent
		if run {
			to, index, changed[n] = &h.running, s.running, true
		}
		if *to == nil {
			*to = map[nic]nicPort{}
		}
		if _, did := (*to)[n]; !did {
			index.add(n, h)
		}
		(*to)[n] = nicPort{sw: p.GetSwitch(), name: p.GetName(), arrived: p.GetArrived(),
			gen: p.GetGeneration(), group: p.GetPortGroup()}
	}
	return changed
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
