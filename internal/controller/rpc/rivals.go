package rpc

import (
	"maps"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Where an adapter is follows from generations and from nothing else (S100): whoever begins to serve a guest raises the
// generation of its port above all that it knows. Reports are older than what is, so that two hosts may report one
// guest for a moment. Neither is called a conflict before both have looked at their ports anew, after the controller
// had heard of the other. Time decides nothing here. Hosts of an earlier version report no generation: for their
// adapters portKeeper.migrates decides as it did.

// rivalry is the part of a fleet that decides by generations where an adapter is.
type rivalry struct{ *fleet }

// instance is a host that is connected, to whichever controller, and reports that an adapter runs there.
type instance struct {
	id   string
	here *host // nil for a host of another controller
	gen  uint64
	sure map[string]uint64 // as of runningPort
}

// instances are those of an adapter. The caller holds the lock.
func (r rivalry) instances(n nic) (list []instance) {
	for _, h := range r.statics.on(n) {
		p := h.running[n]
		list = append(list, instance{h.id, h, p.gen, p.sure})
	}
	for _, id := range r.sharing.runsAt(n) {
		a := r.sharing.away[n][id]
		list = append(list, instance{id, nil, a.gen, a.sure})
	}
	return list
}

// numbered reports whether all hosts say generations.
func numbered(list []instance) bool {
	for _, i := range list {
		if i.gen == 0 {
			return false
		}
	}
	return true
}

// knows reports whether the host said that the guest runs there after its controller had heard of another one.
func (i instance) knows(other instance) bool { return i.sure[other.id] == other.gen }

// clashing are the ids of the hosts on which guests run at once for certain: each said so knowing of the other.
func clashing(list []instance) map[string]bool {
	in := map[string]bool{}
	for k, a := range list {
		for _, b := range list[k+1:] {
			if a.knows(b) && b.knows(a) {
				in[a.id], in[b.id] = true, true
			}
		}
	}
	return in
}

// highest is the instance with the highest generation, if it is the only one; nil otherwise.
func highest(list []instance) (top *instance) {
	for k := range list {
		switch i := &list[k]; {
		case top == nil || i.gen > top.gen:
			top = i
		case i.gen == top.gen:
			return highestOf(list[k+1:], i.gen)
		}
	}
	return top
}

// highestOf is highest of those above a generation.
func highestOf(list []instance, above uint64) *instance {
	var left []instance
	for _, i := range list {
		if i.gen > above {
			left = append(left, i)
		}
	}
	return highest(left)
}

// place is the host of this controller that the static port of an adapter is bound to, by what the hosts report; nil
// for another controller's, or none yet. A report that is older than the binding moves nothing back. The caller holds
// the lock.
func (r rivalry) place(n nic, list []instance, clash map[string]bool) *host {
	b := r.statics.byNIC[n]
	if b == nil || len(list) == 0 || len(clash) > 0 || len(list) > 1 && !numbered(list) {
		return nil
	}
	top := highest(list)
	if top == nil || top.here == nil || top.gen > 0 && top.gen < b.gen && top.sure[b.host] != b.gen {
		return nil
	}
	return top.here
}

// inquire asks the hosts of this controller anew that report an adapter and were not asked since this controller has
// heard of the others that do, or of a higher generation by the port's binding. The caller holds the lock.
func (r rivalry) inquire(n nic, list []instance) {
	b := r.statics.byNIC[n]
	for _, i := range list {
		if i.here == nil || i.gen == 0 {
			continue
		}
		rivals := map[string]uint64{}
		for _, other := range list {
			if other.id != i.id && other.gen > 0 {
				rivals[other.id] = other.gen
			}
		}
		if _, there := rivals[boundHost(b)]; b != nil && !there && b.host != i.id && b.gen > i.gen {
			rivals[b.host] = b.gen
		}
		if maps.Equal(rivals, i.sure) {
			continue
		}
		if r.forget(i.here, n, rivals); len(rivals) > 0 && !maps.Equal(rivals, i.here.running[n].sure) {
			i.here.conn.askAnew(n, rivals)
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
