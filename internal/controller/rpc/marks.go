package rpc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/conflict"
)

// Hosts in conflict are marked, each by the controller that it is connected to. A host brings its marks along to its
// next controller: they stay until it is known that the guest elsewhere has stopped, or the host there is lost for as
// long as it would hold its static ports. What a controller has not heard it asks the others.

// mostRivals is how many rivals of an adapter a host may bring along: others are asked about each of them.
const mostRivals = 16

// mark says on which other hosts an adapter runs.
type mark struct {
	text   string
	rivals []string // the hosts' ids, sorted
}

func (m mark) equal(o mark) bool { return m.text == o.text && slices.Equal(m.rivals, o.rivals) }

// mark marks the hosts of this controller that are in conflict about an adapter. The caller holds the lock.
func (f portKeeper) mark(n nic, list []conflict.Instance, clash map[string]bool) {
	marked := f.statics.marked[n]
	delete(f.sharing.doubts, n)
	for _, h := range f.statics.on(n) {
		rivals, doubts := conflict.Rivals(h.id, clash, h.marks[n].rivals, func(id string) conflict.Word {
			return f.wordOf(n, id, list)
		})
		f.doubt(n, doubts)
		if len(rivals) == 0 {
			continue
		}
		marked = slices.DeleteFunc(slices.Clone(marked), func(o *host) bool { return o == h })
		f.setMark(h, n, mark{fmt.Sprintf("adapter %s of VM %s runs on host %s too, and no migration explains that: "+
			"stop one of the two guests, or give one another UUID", n.adapter, n.vm, f.namesOf(rivals)), rivals})
	}
	for _, h := range marked {
		f.setMark(h, n, mark{})
	}
}

// wordOf is what this controller has heard of an adapter on a host; list are those on which it runs. The caller holds
// the lock.
func (f portKeeper) wordOf(n nic, id string, list []conflict.Instance) conflict.Word {
	h := f.hosts[id]
	runs := slices.ContainsFunc(list, func(i conflict.Instance) bool { return i.Host == id })
	switch {
	case runs && conflict.Numbered(list):
		return conflict.Runs
	case runs, h == nil, h.conn != nil:
		return conflict.Stopped
	}
	return conflict.Nothing
}

// doubt has the other controllers asked whether an adapter runs on hosts. The caller holds the lock.
func (f portKeeper) doubt(n nic, hosts []string) {
	if len(hosts) == 0 {
		return
	}
	for _, id := range hosts {
		if !slices.Contains(f.sharing.doubts[n], id) {
			f.sharing.doubts[n] = append(f.sharing.doubts[n], id)
		}
	}
	token(f.sharing.doubtful)
}

// setMark marks the adapter on a host; no rivals take the mark away. A host that has left takes it along. The caller
// holds the lock.
func (f portKeeper) setMark(h *host, n nic, m mark) {
	was, is := h.marks[n]
	switch {
	case is && was.equal(m):
		return
	case len(m.rivals) == 0:
		delete(h.marks, n)
		f.statics.marked.remove(n, h)
		if h.conn != nil {
			f.log.Info("a conflict has ended", "host", h.doc.Name, "vm", n.vm, "adapter", n.adapter)
		}
	default:
		if h.marks == nil {
			h.marks = map[nic]mark{}
		}
		if !is {
			f.statics.marked.add(n, h)
		}
		if h.marks[n] = m; was.text != m.text {
			f.log.Warn("a conflict", "host", h.doc.Name, "why", m.text)
		}
	}
	if h.conn != nil {
		h.conn.poke()
	}
}

// resume takes over the marks that a host had from a controller before: who is in conflict with it may not have
// connected yet. The caller holds the lock.
func (f portKeeper) resume(h *host, ports []*controllerv1.HostPort) {
	for _, p := range ports {
		n, ok := runs(p)
		if _, kept := h.running[n]; !ok || !kept || len(h.marks[n].rivals) > 0 {
			continue
		}
		if rivals := slices.Clone(p.GetRivals()[:min(len(p.GetRivals()), mostRivals)]); len(rivals) > 0 {
			slices.Sort(rivals)
			f.setMark(h, n, mark{p.GetConflict(), slices.Compact(rivals)})
		}
	}
}

// marksFor are the marks of a host where they are others than it was told; nil otherwise.
func (f portKeeper) marksFor(h *host, c *conn) *controllerv1.PortConflicts {
	if c.marks != nil && maps.EqualFunc(c.marks, h.marks, mark.equal) {
		return nil
	}
	c.marks = map[nic]mark{}
	maps.Copy(c.marks, h.marks)
	out := &controllerv1.PortConflicts{}
	for n, m := range h.marks {
		out.Conflicts = append(out.Conflicts, &controllerv1.PortConflict{Vm: n.vm, Adapter: n.adapter, Text: m.text,
			Rivals: m.rivals})
	}
	slices.SortFunc(out.GetConflicts(), func(a, b *controllerv1.PortConflict) int {
		return cmp.Or(strings.Compare(a.GetVm(), b.GetVm()), strings.Compare(a.GetAdapter(), b.GetAdapter()))
	})
	return out
}

// namesOf are the names of hosts by their ids. The caller holds the lock.
func (f portKeeper) namesOf(ids []string) string {
	var names []string
	for _, id := range ids {
		if h := f.hosts[id]; h != nil {
			names = append(names, h.doc.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// clear asks the other controllers about hosts in doubt, until ctx ends.
func (s claimant) clear(ctx context.Context) {
	tick := time.NewTicker(s.ShareTime)
	defer tick.Stop()
	for {
		if _, ended := due(ctx, tick, s.fleet.sharing.doubtful); ended {
			return
		}
		doubts, names := s.keeper().inDoubt()
		there := &elsewhere{}
		if len(names) > 0 {
			there = s.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: names, Reports: true})
		}
		s.resolve(doubts, there)
	}
}

// inDoubt are the hosts of which it is not known whether adapters run there, and the hosts' names.
func (f portKeeper) inDoubt() (doubts map[nic][]string, names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ids := range f.sharing.doubts {
		for _, id := range ids {
			if h := f.hosts[id]; h != nil {
				names = append(names, h.doc.Name)
			}
		}
	}
	slices.Sort(names)
	return maps.Clone(f.sharing.doubts), slices.Compact(names)
}

// resolve takes in what others say of hosts in doubt. What they do not know stays in doubt.
func (s claimant) resolve(doubts map[nic][]string, there *elsewhere) {
	f := s.keeper()
	for n, ids := range doubts {
		for _, id := range ids {
			f.mu.Lock()
			h := f.hosts[id]
			f.mu.Unlock()
			if h == nil || s.stopped(there, h, n) {
				f.settle(n, id)
			}
		}
	}
}

// stopped reports whether an adapter does not run on a host any more, for certain: the host says so to the controller
// that has it, or has been lost for as long as its lease lasts. What it said before it was lost is not enough: the
// controller that it said more to may be away.
func (s claimant) stopped(there *elsewhere, h *host, n nic) bool {
	if at := there.hosts[h.id]; at.GetConnected() && !at.GetHost().GetStale() {
		runs, known := s.lastSaid(there, h, n)
		return known && !runs
	}
	return s.lostFor(there, h) >= s.PortLease
}

// settle takes a host out of the marks of an adapter, unless it is known by now that it runs there.
func (f portKeeper) settle(n nic, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wordOf(n, id, rivalry(f).instances(n)) == conflict.Runs {
		return
	}
	for _, h := range f.statics.marked[n] {
		m := h.marks[n]
		m.rivals = slices.DeleteFunc(slices.Clone(m.rivals), func(rival string) bool { return rival == id })
		h.marks[n] = m
	}
	f.weigh(n)
}
