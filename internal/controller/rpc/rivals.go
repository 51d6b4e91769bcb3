package rpc

import (
	"maps"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/conflict"
)

// Package conflict decides by generations where an adapter is, and when hosts are in conflict about it. Hosts of an
// earlier version report no generation: for their adapters portKeeper.migrates decides as it did.

// rivalry is the part of a fleet that decides by generations where an adapter is.
type rivalry struct{ *fleet }

// instances are those of an adapter. The caller holds the lock.
func (r rivalry) instances(n nic) (list []conflict.Instance) {
	for _, h := range r.statics.on(n) {
		p := h.running[n]
		list = append(list, conflict.Instance{Host: h.id, Here: true, Generation: p.gen, Sure: p.sure})
	}
	for _, id := range r.sharing.runsAt(n) {
		a := r.sharing.away[n][id]
		list = append(list, conflict.Instance{Host: id, Generation: a.gen, Sure: a.sure})
	}
	return list
}

// place is the host of this controller that the static port of an adapter is bound to, by what the hosts report; nil
// for another controller's, or none yet. A report that is older than the binding moves nothing back. The caller holds
// the lock.
func (r rivalry) place(n nic, list []conflict.Instance, clash map[string]bool) *host {
	b := r.statics.byNIC[n]
	if b == nil || len(list) == 0 || len(clash) > 0 || len(list) > 1 && !conflict.Numbered(list) {
		return nil
	}
	top := conflict.Highest(list)
	if top == nil || !top.Here || top.Generation > 0 && top.Generation < b.gen && top.Sure[b.host] != b.gen {
		return nil
	}
	return r.hosts[top.Host]
}

// inquire asks the hosts of this controller anew that report an adapter and were not asked since this controller has
// heard of the others that do, or of a higher generation by the port's binding. The caller holds the lock.
func (r rivalry) inquire(n nic, list []conflict.Instance) {
	b := r.statics.byNIC[n]
	for _, i := range list {
		h := r.hosts[i.Host]
		if !i.Here || i.Generation == 0 {
			continue
		}
		rivals := map[string]uint64{}
		for _, other := range list {
			if other.Host != i.Host && other.Generation > 0 {
				rivals[other.Host] = other.Generation
			}
		}
		if _, there := rivals[boundHost(b)]; b != nil && !there && b.host != i.Host && b.gen > i.Generation {
			rivals[b.host] = b.gen
		}
		if maps.Equal(rivals, i.Sure) {
			continue
		}
		if r.forget(h, n, rivals); len(rivals) > 0 && !maps.Equal(rivals, h.running[n].sure) {
			h.conn.askAnew(n, rivals)
		}
	}
}

func boundHost(b *bound) string {
	if b == nil {
		return ""
	}
	return b.host
}

// forget forgets what a host said about others than these: they run the guest no more, or with another generation.
func (r rivalry) forget(h *host, n nic, rivals map[string]uint64) {
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

// asking is what a connection's host has been asked to look at anew.
type asking struct {
	anew, anewSent uint64 // numbers of the newest question, and of the newest that was sent
	open           map[nic]question
}

// question is one that is not answered yet.
type question struct {
	number uint64
	rivals map[string]uint64 // hosts and generations that were known when it was asked
}

// askAnew has the host look at its ports.
func (c *conn) askAnew(n nic, rivals map[string]uint64) {
	if q, is := c.open[n]; is && maps.Equal(q.rivals, rivals) {
		return
	}
	if c.open == nil {
		c.open = map[nic]question{}
	}
	c.anew++
	c.open[n] = question{c.anew, rivals}
	c.poke()
}

// addAnew adds to a message that the host is to look at its ports; m is nil for no message so far.
func (r rivalry) addAnew(c *conn, m *controllerv1.FollowSliceResponse) *controllerv1.FollowSliceResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.anewSent == c.anew {
		return m
	}
	if m == nil {
		m = &controllerv1.FollowSliceResponse{}
	}
	c.anewSent, m.ReportAnew = c.anew, c.anew
	return m
}

// looked takes in that a host has reported what it has since it was asked. The caller holds the lock.
func (r rivalry) looked(h *host, c *conn, number uint64) {
	if number == 0 || number > c.anewSent {
		return
	}
	again := map[nic]bool{}
	for n, q := range c.open {
		if q.number > number {
			continue
		}
		delete(c.open, n)
		if p, runs := h.running[n]; runs {
			p.sure = q.rivals
			h.running[n], again[n] = p, true
		}
	}
	r.keeper().judge(again)
}
