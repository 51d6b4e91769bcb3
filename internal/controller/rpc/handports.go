package rpc

import (
	"maps"
	"slices"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/conflict"
	"heddle/internal/platform/store"
)

// portKeeper is the part of a fleet that knows whose the static ports are, and on which hosts adapters run.
type portKeeper struct{ *fleet }

func (f *fleet) keeper() portKeeper { return portKeeper{f} }

// arrivalTime is how long a VM that came by a migration may be reported by the host that it has left.
const arrivalTime = time.Minute

// portsSent is what a connection has been sent of static ports.
type portsSent struct {
	portAnswers []*controllerv1.PortAnswer // to be sent
	slots       chan struct{}              // one for each claim under way
	ports       map[string]*bound          // nil before the first message
	marks       map[nic]mark               // nil before the first message
}

// addPorts adds to a message what the host has to know of its static ports; m is nil for no message so far.
func (f portKeeper) addPorts(h *host, c *conn, m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	answers := c.portAnswers
	c.portAnswers = nil
	ports, conflicts := f.portsOf(h, c), f.marksFor(h, c)
	if len(answers) == 0 && ports == nil && conflicts == nil {
		return m
	}
	if m == nil {
		m = &controllerv1.FollowSliceResponse{}
	}
	m.Answers, m.Ports, m.Conflicts = answers, ports, conflicts
	return m
}

// portsOf is what has changed of the static ports bound on a host; nil for nothing.
func (f portKeeper) portsOf(h *host, c *conn) *controllerv1.StaticPorts {
	now := f.statics.byHost[h.id]
	out := &controllerv1.StaticPorts{Whole: c.ports == nil}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if c.ports[id] != now[id] {
			out.Put = append(out.Put, f.message(now[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.ports)) {
		if now[id] == nil {
			out.Removed = append(out.Removed, id)
		}
	}
	if !out.GetWhole() && len(out.GetPut())+len(out.GetRemoved()) == 0 {
		return nil
	}
	if c.ports = maps.Clone(now); c.ports == nil {
		c.ports = map[string]*bound{}
	}
	return out
}

// takePorts takes in an object of the store with static ports. The caller holds the lock.
func (f portKeeper) takePorts(name string, o *store.Object) {
	hosts, nics, err := f.statics.take(name, o)
	if err != nil {
		f.log.Error("static ports in the store cannot be read", "ports", name, "err", err)
		return
	}
	for id := range hosts {
		h := f.hosts[id]
		switch {
		case h == nil:
		case f.inventory.HasSettings(): // those of its ports are part of what it is to have
			contents(f).renew(h)
		case h.conn != nil:
			h.conn.poke()
		}
	}
	f.judge(nics)
}

// judge finds out which of these adapters run on several hosts, and tells those hosts. No guest is cut off by that: all
// go on. A port that follows its VM to another host is bound there. The caller holds the lock.
func (f portKeeper) judge(nics map[nic]bool) {
	for n := range nics {
		f.sharing.changed(n)
		f.weigh(n)
	}
}

// weigh is judge of one adapter by what is known here, which other controllers are not told of. The caller holds the
// lock.
func (f portKeeper) weigh(n nic) {
	list := rivalry(f).instances(n)
	clash := f.clash(n, list)
	if h := rivalry(f).place(n, list, clash); h != nil {
		f.follow(n, h)
	}
	rivalry(f).inquire(n, list)
	f.mark(n, list, clash)
}

// clash are the ids of the hosts on which an adapter's guests run at once. The caller holds the lock.
func (f portKeeper) clash(n nic, list []conflict.Instance) map[string]bool {
	if conflict.Numbered(list) {
		return conflict.Clashing(list)
	}
	in := map[string]bool{}
	if len(list) > 1 && !f.migrates(n, f.statics.on(n), f.sharing.runsAt(n)) {
		for _, i := range list {
			in[i.Host] = true
		}
	}
	return in
}

// migrates reports whether a migration explains that a VM is on two hosts: one of them reports its arrival. It is
// looked at again when that is over.
func (f portKeeper) migrates(n nic, on []*host, away []string) bool {
	if len(on)+len(away) > 2 {
		return false
	}
	for _, id := range away {
		if a := f.sharing.away[n][id]; a.arrived {
			f.sharing.open[n] = true
			return time.Since(a.since) < arrivalTime
		}
	}
	for _, h := range on {
		if !h.running[n].arrived {
			continue
		}
		left := arrivalTime - time.Since(h.arrivals[n])
		if h.arrivals[n].IsZero() {
			left = arrivalTime
			if h.arrivals == nil {
				h.arrivals = map[nic]time.Time{}
			}
			h.arrivals[n] = time.Now()
			time.AfterFunc(left, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.judge(map[nic]bool{n: true})
			})
		}
		return left > 0
	}
	return false
}

// follow binds a port where its VM runs, when it is bound elsewhere and the host there says that it does not run there.
func (f portKeeper) follow(n nic, h *host) {
	b := f.statics.byNIC[n]
	if b == nil || b.host == h.id || f.moving[n] || f.rebind == nil {
		return
	}
	p, was := h.running[n], f.hosts[b.host]
	if was != nil && was.conn == nil && (!p.arrived || p.gen <= max(b.gen, was.running[n].gen)) {
		return // the host that is connected claims the port itself, as far as the lease of the other one lets it
	}
	f.moving[n] = true
	go func() {
		f.rebind(b, h, p.gen)
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.moving, n); f.statics.byNIC[n] != b { // which nobody looked at while the port was moving
			f.judge(map[nic]bool{n: true})
		}
		f.wake()
	}()
}
