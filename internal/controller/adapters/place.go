package adapters

import (
	"maps"

	"heddle/internal/controller/conflict"
	"heddle/internal/controller/part"
)

// Package conflict decides by generations where an adapter is, and when hosts are in conflict about it. Hosts of an
// earlier version report no generation: for their adapters Book.migrates decides as it did.

// instances are those of an adapter. The caller holds the lock.
func (b *Book) instances(n part.Adapter) (list []conflict.Instance) {
	for _, h := range b.index.on(n) {
		p := h.running[n]
		list = append(list, conflict.Instance{Host: h.id, Here: true, Generation: p.gen, Sure: p.sure})
	}
	for _, id := range b.sharing.runsAt(n) {
		a := b.sharing.away[n][id]
		list = append(list, conflict.Instance{Host: id, Generation: a.gen, Sure: a.sure})
	}
	return list
}

// place is the host of this controller that the static port of an adapter is bound to, by what the hosts report; nil
// for another controller's, or none yet. A report that is older than the binding moves nothing back. The caller holds
// the lock.
func (b *Book) place(n part.Adapter, list []conflict.Instance, clash map[string]bool) *host {
	bound := b.Bindings.Of(n)
	if bound == nil || len(list) == 0 || len(clash) > 0 || len(list) > 1 && !conflict.Numbered(list) {
		return nil
	}
	top := conflict.Highest(list)
	if top == nil || !top.Here ||
		top.Generation > 0 && top.Generation < bound.Generation && top.Sure[bound.Host] != bound.Generation {
		return nil
	}
	return b.hosts[top.Host]
}

// inquire asks the hosts of this controller anew that report an adapter and were not asked since this controller has
// heard of the others that do, or of a higher generation by the port's binding. The caller holds the lock.
func (b *Book) inquire(n part.Adapter, list []conflict.Instance) {
	bound := b.Bindings.Of(n)
	for _, i := range list {
		h := b.hosts[i.Host]
		if !i.Here || i.Generation == 0 {
			continue
		}
		rivals := map[string]uint64{}
		for _, other := range list {
			if other.Host != i.Host && other.Generation > 0 {
				rivals[other.Host] = other.Generation
			}
		}
		if _, there := rivals[bound.On()]; bound != nil && !there && bound.Host != i.Host &&
			bound.Generation > i.Generation {
			rivals[bound.Host] = bound.Generation
		}
		if maps.Equal(rivals, i.Sure) {
			continue
		}
		if b.forget(h, n, rivals); len(rivals) > 0 && !maps.Equal(rivals, h.running[n].sure) {
			askAnew(h, n, rivals)
		}
	}
}

// forget forgets what a host said about others than these: they run the guest no more, or with another generation.
func (b *Book) forget(h *host, n part.Adapter, rivals map[string]uint64) {
	p, left := h.running[n], map[string]uint64{}
	for id, gen := range p.sure {
		if rivals[id] == gen {
			left[id] = gen
		}
	}
	if p.sure = left; len(left) == 0 {
		p.sure = nil
	}
	h.running[n] = p
}
