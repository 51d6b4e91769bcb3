package adapters

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
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
)

// mostRivals is how many rivals of an adapter a host may bring along: others are asked about each of them.
const mostRivals = 16

// Mark says on which other hosts an adapter runs.
type Mark struct {
	Text   string
	Rivals []string // the hosts' ids, sorted
}

func (m Mark) equal(o Mark) bool { return m.Text == o.Text && slices.Equal(m.Rivals, o.Rivals) }

// mark marks the hosts of this controller that are in conflict about an adapter. The caller holds the lock.
func (b *Book) mark(n part.Adapter, list []conflict.Instance, clash map[string]bool) {
	marked := b.index.marked[n]
	delete(b.sharing.doubts, n)
	for _, h := range b.index.on(n) {
		rivals, doubts := conflict.Rivals(h.id, clash, h.marks[n].Rivals, func(id string) conflict.Word {
			return b.wordOf(n, id, list)
		})
		b.doubt(n, doubts)
		if len(rivals) == 0 {
			continue
		}
		marked = slices.DeleteFunc(slices.Clone(marked), func(o *host) bool { return o == h })
		b.setMark(h, n, Mark{fmt.Sprintf("adapter %s of VM %s runs on host %s too, and no migration explains that: "+
			"stop one of the two guests, or give one another UUID", n.Name, n.VM, b.namesOf(rivals)), rivals})
	}
	for _, h := range marked {
		b.setMark(h, n, Mark{})
	}
}

// wordOf is what this controller has heard of an adapter on a host; list are those on which it runs. The caller holds
// the lock.
func (b *Book) wordOf(n part.Adapter, id string, list []conflict.Instance) conflict.Word {
	h := b.hosts[id]
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
func (b *Book) doubt(n part.Adapter, hosts []string) {
	if len(hosts) == 0 {
		return
	}
	for _, id := range hosts {
		if !slices.Contains(b.sharing.doubts[n], id) {
			b.sharing.doubts[n] = append(b.sharing.doubts[n], id)
		}
	}
	token(b.sharing.doubtful)
}

// setMark marks the adapter on a host; no rivals take the mark away. A host that has left takes it along. The caller
// holds the lock.
func (b *Book) setMark(h *host, n part.Adapter, m Mark) {
	was, is := h.marks[n]
	switch {
	case is && was.equal(m):
		return
	case len(m.Rivals) == 0:
		delete(h.marks, n)
		b.index.marked.remove(n, h)
		if h.conn != nil {
			b.Log.Info("a conflict has ended", "host", h.name, "vm", n.VM, "adapter", n.Name)
		}
	default:
		if h.marks == nil {
			h.marks = map[part.Adapter]Mark{}
		}
		if !is {
			b.index.marked.add(n, h)
		}
		if h.marks[n] = m; was.Text != m.Text {
			b.Log.Warn("a conflict", "host", h.name, "why", m.Text)
		}
	}
	poke(h)
}

// resume takes over the marks that a host had from a controller before: who is in conflict with it may not have
// connected yet. The caller holds the lock.
func (b *Book) resume(h *host, ports []*controllerv1.HostPort) {
	for _, p := range ports {
		n, ok := fanout.Runs(p)
		if _, kept := h.running[n]; !ok || !kept || len(h.marks[n].Rivals) > 0 {
			continue
		}
		if rivals := slices.Clone(p.GetRivals()[:min(len(p.GetRivals()), mostRivals)]); len(rivals) > 0 {
			slices.Sort(rivals)
			b.setMark(h, n, Mark{p.GetConflict(), slices.Compact(rivals)})
		}
	}
}

// newMarks are the marks of a host where they are others than it was told; nil otherwise.
func newMarks(h *host) *controllerv1.PortConflicts {
	if h.told != nil && maps.EqualFunc(h.told, h.marks, Mark.equal) {
		return nil
	}
	h.told = map[part.Adapter]Mark{}
	maps.Copy(h.told, h.marks)
	out := &controllerv1.PortConflicts{}
	for n, m := range h.marks {
		out.Conflicts = append(out.Conflicts, &controllerv1.PortConflict{Vm: n.VM, Adapter: n.Name, Text: m.Text,
			Rivals: m.Rivals})
	}
	slices.SortFunc(out.GetConflicts(), func(a, b *controllerv1.PortConflict) int {
		return cmp.Or(strings.Compare(a.GetVm(), b.GetVm()), strings.Compare(a.GetAdapter(), b.GetAdapter()))
	})
	return out
}

// namesOf are the names of hosts by their ids. The caller holds the lock.
func (b *Book) namesOf(ids []string) string {
	var names []string
	for _, id := range ids {
		if h := b.hosts[id]; h != nil {
			names = append(names, h.name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Marks are what a host is to be told of its adapters in conflict.
func (b *Book) Marks(id string) map[part.Adapter]Mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil {
		return maps.Clone(h.marks)
	}
	return nil
}

// Stopped reports whether an adapter does not run any more, for certain, on the host with that id.
type Stopped func(n part.Adapter, id string) bool

// Clear asks the other controllers about hosts in doubt, until ctx ends.
func (b *Book) Clear(ctx context.Context, every time.Duration, ask func(ctx context.Context, names []string) Stopped) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, ended := due(ctx, tick, b.sharing.doubtful); ended {
			return
		}
		b.Resolve(func(names []string) Stopped { return ask(ctx, names) })
	}
}

// Resolve takes in what is said of hosts in doubt, who are asked about by their names. What nobody knows stays in
// doubt.
func (b *Book) Resolve(ask func(names []string) Stopped) {
	doubts, names := b.inDoubt()
	stopped := ask(names)
	for n, ids := range doubts {
		for _, id := range ids {
			if stopped(n, id) {
				b.settle(n, id)
			}
		}
	}
}

// inDoubt are the hosts of which it is not known whether adapters run there, and the hosts' names.
func (b *Book) inDoubt() (doubts map[part.Adapter][]string, names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ids := range b.sharing.doubts {
		for _, id := range ids {
			if h := b.hosts[id]; h != nil {
				names = append(names, h.name)
			}
		}
	}
	slices.Sort(names)
	return maps.Clone(b.sharing.doubts), slices.Compact(names)
}

// settle takes a host out of the marks of an adapter, unless it is known by now that it runs there.
func (b *Book) settle(n part.Adapter, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wordOf(n, id, b.instances(n)) == conflict.Runs {
		return
	}
	for _, h := range b.index.marked[n] {
		m := h.marks[n]
		m.Rivals = slices.DeleteFunc(slices.Clone(m.Rivals), func(rival string) bool { return rival == id })
		h.marks[n] = m
	}
	b.weigh(n)
}
