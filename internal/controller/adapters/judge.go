package adapters

import (
	"time"

	"heddle/internal/controller/conflict"
	"heddle/internal/controller/part"
)

// arrivalTime is how long a VM that came by a migration may be reported by the host that it has left.
const arrivalTime = time.Minute

// judge finds out which of these adapters run on several hosts, and tells those hosts. No guest is cut off by that: all
// go on. A port that follows its VM to another host is bound there. The caller holds the lock.
func (b *Book) judge(nics map[part.Adapter]bool) {
	for n := range nics {
		b.sharing.changed(n)
		b.weigh(n)
	}
}

// weigh is judge of one adapter by what is known here, which other controllers are not told of. The caller holds the
// lock.
func (b *Book) weigh(n part.Adapter) {
	list := b.instances(n)
	clash := b.clash(n, list)
	if h := b.place(n, list, clash); h != nil {
		b.follow(n, h)
	}
	b.inquire(n, list)
	b.mark(n, list, clash)
}

// clash are the ids of the hosts on which an adapter's guests run at once. The caller holds the lock.
func (b *Book) clash(n part.Adapter, list []conflict.Instance) map[string]bool {
	if conflict.Numbered(list) {
		return conflict.Clashing(list)
	}
	in := map[string]bool{}
	if len(list) > 1 && !b.migrates(n, b.index.on(n), b.sharing.runsAt(n)) {
		for _, i := range list {
			in[i.Host] = true
		}
	}
	return in
}

// migrates reports whether a migration explains that a VM is on two hosts: one of them reports its arrival. It is
// looked at again when that is over.
func (b *Book) migrates(n part.Adapter, on []*host, away []string) bool {
	if len(on)+len(away) > 2 {
		return false
	}
	for _, id := range away {
		if a := b.sharing.away[n][id]; a.arrived {
			b.sharing.open[n] = true
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
				h.arrivals = map[part.Adapter]time.Time{}
			}
			h.arrivals[n] = time.Now()
			time.AfterFunc(left, func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.judge(map[part.Adapter]bool{n: true})
			})
		}
		return left > 0
	}
	return false
}

// follow binds a port where its VM runs, when it is bound elsewhere and the host there says that it does not run there.
func (b *Book) follow(n part.Adapter, h *host) {
	bound := b.Bindings.Of(n)
	if bound == nil || bound.Host == h.id || b.moving[n] {
		return
	}
	p, was := h.running[n], b.hosts[bound.Host]
	if was != nil && was.conn == nil && (!p.arrived || p.gen <= max(bound.Generation, was.running[n].gen)) {
		return // the host that is connected claims the port itself, as far as the lease of the other one lets it
	}
	b.moving[n] = true
	id, name := h.id, h.name
	go func() {
		b.Bindings.Rebind(bound, id, name, p.gen)
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.moving, n); b.Bindings.Of(n) != bound { // which nobody looked at while the port was moving
			b.judge(map[part.Adapter]bool{n: true})
		}
		b.wake()
	}()
}
