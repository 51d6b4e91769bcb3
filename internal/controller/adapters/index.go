package adapters

import (
	"slices"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
)

// port is the port of an adapter on a host.
type port struct {
	sw, name string
	arrived  bool   // a moment ago, by a migration
	group    string // the port group's name
	gen      uint64
	// sure are the generations of the hosts on which the adapter runs too, by the hosts' ids, of which the controller
	// had heard when it asked this host anew: the guest runs here still.
	sure map[string]uint64
}

// index is the adapters that hosts have reported, by the adapter.
type index struct {
	// running are the hosts that report that an adapter runs there, silent those that have a port for it whose guest
	// does not run there.
	running, silent hostsOf
	// marked are the hosts of this controller that are in conflict about an adapter.
	marked hostsOf
}

func newIndex() index { return index{running: hostsOf{}, silent: hostsOf{}, marked: hostsOf{}} }

// hostsOf are the hosts of adapters. A list does not change: a change makes another one.
type hostsOf map[part.Adapter][]*host

func (m hostsOf) add(n part.Adapter, h *host) { m[n] = append(slices.Clip(m[n]), h) }

func (m hostsOf) remove(n part.Adapter, h *host) {
	left := slices.DeleteFunc(slices.Clone(m[n]), func(o *host) bool { return o == h })
	if m[n] = left; len(left) == 0 {
		delete(m, n)
	}
}

// portKey is what a port is called on its host.
type portKey struct{ sw, name string }

// reported takes in the ports that a host reports, and returns the adapters that run there now and did not, or the
// other way round, or with another generation.
func (x index) reported(h *host, ports []*controllerv1.HostPort) map[part.Adapter]bool {
	return x.exchange(h, ports, func(port) bool { return true })
}

// amended takes in what is another since a host's report before: ports that it has and has no more, by switch and name.
func (x index) amended(h *host, put []*controllerv1.HostPort,
	gone []*controllerv1.HostPortKey) map[part.Adapter]bool {
	names := map[portKey]bool{}
	for _, k := range gone {
		names[portKey{k.GetSwitch(), k.GetName()}] = true
	}
	for _, p := range put {
		names[portKey{p.GetSwitch(), p.GetName()}] = true
	}
	return x.exchange(h, put, func(p port) bool { return names[portKey{p.sw, p.name}] })
}

// exchange puts ports in the place of those of a host for which old is true, and returns the adapters of which
// something is another.
func (x index) exchange(h *host, ports []*controllerv1.HostPort, old func(port) bool) map[part.Adapter]bool {
	was := map[part.Adapter]port{}
	for n, p := range h.running {
		if old(p) {
			was[n] = p
			delete(h.running, n)
			x.running.remove(n, h)
		}
	}
	for n, p := range h.silent {
		if old(p) {
			delete(h.silent, n)
			x.silent.remove(n, h)
		}
	}
	changed := x.begin(h, ports)
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
func (x index) begin(h *host, ports []*controllerv1.HostPort) map[part.Adapter]bool {
	changed := map[part.Adapter]bool{}
	for _, p := range ports {
		n, run := fanout.Runs(p)
		if n.VM == "" {
			continue
		}
		to, at := &h.silent, x.silent
		if run {
			to, at, changed[n] = &h.running, x.running, true
		}
		if *to == nil {
			*to = map[part.Adapter]port{}
		}
		if _, did := (*to)[n]; !did {
			at.add(n, h)
		}
		(*to)[n] = port{sw: p.GetSwitch(), name: p.GetName(), arrived: p.GetArrived(), gen: p.GetGeneration(),
			group: p.GetPortGroup()}
	}
	return changed
}

// on are the hosts that are connected and report that an adapter runs there, by name.
func (x index) on(n part.Adapter) []*host {
	list := slices.DeleteFunc(slices.Clone(x.running[n]), func(h *host) bool { return h.conn == nil })
	slices.SortFunc(list, func(a, b *host) int { return strings.Compare(a.name, b.name) })
	return list
}
