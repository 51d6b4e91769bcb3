package rpc

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/slice"
)

// meetTime is for how long changes are gathered before hosts are brought together.
const meetTime = 20 * time.Millisecond

// meet brings hosts together whenever something changes, until ctx ends.
func (f offering) meet(ctx context.Context) {
	for {
		select {
		case <-f.meeting.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(meetTime):
		case <-ctx.Done():
			return
		}
		f.mu.Lock()
		f.match()
		f.mu.Unlock()
	}
}

// offer is one that counts at this controller.
type offer struct {
	*controllerv1.MoveOffer
	of *host
}

func (o offer) nic() nic      { return nic{o.GetVm(), o.GetAdapter()} }
func (o offer) key() offerKey { return offerKey{o.of.id, o.GetMove()} }

// source is a host that has the port of an adapter, or had it.
type source struct {
	host *host
	nicPort
	runs bool // the guest runs there
	away bool // the host has lost its connection
}

// meetings is a match under way: what each host is to know, by its id.
type meetings map[string]*controllerv1.HostMoves

func (m meetings) of(h *host) *controllerv1.HostMoves {
	if m[h.id] == nil {
		m[h.id] = &controllerv1.HostMoves{}
	}
	return m[h.id]
}

// order names the target of an offer to its source.
func (m meetings) order(o *controllerv1.MoveOffer, target, source *host) {
	to := m.of(source)
	to.Orders = append(to.Orders, &controllerv1.MoveOrder{Move: o.GetMove(), Vm: o.GetVm(), Adapter: o.GetAdapter(),
		Host: target.id, HostName: target.doc.Name, Addresses: o.GetAddresses()})
}

// match finds the source of each offer of this controller's hosts, and what each host is to know. The caller holds the
// lock.
func (f offering) match() {
	m, next := f.meeting, meetings{}
	sources := map[offerKey]chosen{}
	m.wanted = map[nic]bool{}
	for _, o := range f.own() {
		if !f.serves(o.of, o.GetSwitch(), o.GetPortGroup()) {
			f.refuse(o)
			continue
		}
		m.wanted[o.nic()] = true
		from, highest := f.sourceOf(o)
		expected := &controllerv1.MoveExpected{Move: o.GetMove(), Generation: highest}
		if from.host != nil {
			expected.Host, expected.HostName = from.host.id, from.host.doc.Name
			sources[o.key()] = from
			next.order(o.MoveOffer, o.of, from.host)
		}
		next.of(o.of).Expected = append(next.of(o.of).Expected, expected)
	}
	for _, said := range m.away {
		for _, o := range said.moves.GetOffers() {
			m.wanted[nic{o.GetOffer().GetVm(), o.GetOffer().GetAdapter()}] = true
			target, from := f.hosts[o.GetHost()], f.hosts[o.GetSource()]
			if target != nil && from != nil && target.conn == nil {
				next.order(o.GetOffer(), target, from)
			}
		}
	}
	m.sources = sources
	f.tell(next)
	flapping(f).join()
	token(m.news)
}

// refuse leaves an offer out, which is logged once a connection.
func (f offering) refuse(o offer) {
	if c := o.of.conn; c != nil && !c.beyondOffer {
		c.beyondOffer = true
		f.log.Warn("a host offers to take over a port in a port group that is not its to serve; it is left out",
			"host", o.of.doc.Name, "switch", o.GetSwitch(), "group", o.GetPortGroup(), "vm", o.GetVm())
	}
}

// tell wakes the connections of hosts that are to know something else. The caller holds the lock.
func (f offering) tell(next meetings) {
	was := f.meeting.moves
	f.meeting.moves = next
	for _, now := range next {
		slices.SortFunc(now.GetOrders(), func(a, b *controllerv1.MoveOrder) int {
			return cmp.Or(cmp.Compare(a.GetMove(), b.GetMove()), cmp.Compare(a.GetHost(), b.GetHost()))
		})
	}
	for id, h := range f.hosts {
		told := was[id] != nil || next[id] != nil
		if h.conn != nil && told && !proto.Equal(next[id], h.conn.moves) {
			h.conn.poke()
		}
	}
}

// own are the offers for which this controller finds the sources: those of its hosts, and those of a host that has lost
// its connection a moment ago, unless it has another controller by now. The caller holds the lock.
func (f offering) own() (list []offer) {
	for _, h := range f.hosts {
		if len(h.offers) == 0 || h.conn == nil && (!f.keeper().lingering(h) || f.isAway(h)) {
			continue
		}
		for _, o := range h.offers {
			list = append(list, offer{o, h})
		}
	}
	slices.SortFunc(list, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.GetMove(), b.GetMove()), cmp.Compare(a.of.id, b.of.id))
	})
	return list
}

// isAway reports whether another controller says that it has the host's connection. The caller holds the lock.
func (f offering) isAway(h *host) bool {
	for _, said := range f.meeting.away {
		if said.hosts[h.id] {
			return true
		}
	}
	return false
}

// serves reports whether a host may serve a port group. The caller holds the lock.
func (f offering) serves(h *host, sw, group string) bool {
	set, err := f.target(h)
	if err != nil {
		return false
	}
	_, ok := set.Get(slice.Key{Kind: slice.PortGroup, Name: sw + "/" + group})
	return ok
}

// sourceOf is the host from which the port of an offer comes, none where none is known, and the highest generation of
// the port that any other host has reported: a target that heard its own would raise it above itself, again and again,
// and the source would never know how high it is. A host that runs the guest counts more than one that does not, one
// that is connected more than one that is not, and the one that a static port is bound on more than another. The port
// may be in another port group there: what the target may not serve, it does not get. The caller holds the lock.
func (f offering) sourceOf(o offer) (from chosen, highest uint64) {
	known := f.sources(o.nic())
	for _, s := range known {
		if s.host != o.of {
			highest = max(highest, s.gen)
		}
	}
	all := slices.DeleteFunc(slices.Clone(known), func(s source) bool {
		return s.host == o.of || !s.runs && (s.gen == 0 || s.host.offered[o.nic()]) ||
			!f.serves(o.of, s.sw, s.group)
	})
	was := f.stillFrom(o, known, all)
	highest = max(highest, was.generation)
	if len(all) == 0 {
		return was, highest
	}
	bound := f.statics.byNIC[o.nic()]
	best := slices.MinFunc(all, func(a, b source) int {
		return cmp.Or(first(a.runs, b.runs), first(a.runs && !a.away, b.runs && !b.away),
			first(bound != nil && bound.host == a.host.id, bound != nil && bound.host == b.host.id),
			cmp.Compare(b.gen, a.gen), first(!a.away, !b.away), byName(a.host, b.host))
	})
	if was.host != nil && !best.runs && best.gen < was.generation {
		return was, highest
	}
	return chosen{best.host, best.gen}, highest
}

// stillFrom is the source that was found before, while it may be the source without having a port any more; known are
// the hosts that have one, all those of them that may be the source. The caller holds the lock.
func (f offering) stillFrom(o offer, known, all []source) chosen {
	was := f.meeting.sources[o.key()]
	is := func(s source) bool { return s.host == was.host }
	if was.host == nil || f.hosts[was.host.id] != was.host || was.host.offered[o.nic()] ||
		slices.ContainsFunc(known, is) && !slices.ContainsFunc(all, is) {
		return chosen{}
	}
	return was
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

// sources are the hosts that have, or had, the port of an adapter, here and at other controllers. What a host reported
// before it lost its connection counts no more where the controller that it has by now says that the port is gone. The
// caller holds the lock.
func (f offering) sources(n nic) []source {
	list, gone := f.sourcesSaid(n)
	return slices.DeleteFunc(list, func(s source) bool { return s.away && gone[s.host] })
}

// sourcesSaid are those hosts by all that was said, and the hosts that other controllers have, without that port.
func (f offering) sourcesSaid(n nic) (list []source, gone map[*host]bool) {
	list, gone = f.sourcesHere(n), map[*host]bool{}
	for _, said := range f.meeting.away {
		for _, p := range said.ports[n] {
			h := f.hosts[p.GetHost()]
			if h == nil || h.conn != nil {
				continue // it was removed, or is here by now
			}
			if p.GetGone() {
				gone[h] = true
				continue
			}
			s := source{h, nicPort{sw: p.GetSwitch(), group: p.GetPortGroup(), gen: p.GetGeneration()}, p.GetRuns(),
				p.GetAway()}
			if p.GetAway() && slices.ContainsFunc(list, func(o source) bool { return o.host == h }) {
				continue
			}
			list = slices.DeleteFunc(list, func(o source) bool { return o.host == h })
			list = append(list, s)
		}
	}
	return list, gone
}

// sourcesHere are those of them that reported to this controller last. The caller holds the lock.
func (f offering) sourcesHere(n nic) (list []source) {
	for _, h := range f.statics.running[n] {
		list = append(list, source{h, h.running[n], true, h.conn == nil})
	}
	for _, h := range f.statics.silent[n] {
		list = append(list, source{h, h.silent[n], false, h.conn == nil})
	}
	return list
}
