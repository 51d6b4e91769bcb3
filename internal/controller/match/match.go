package match

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// source is a host that has the port of an adapter, or had it.
type source struct {
	host *host
	Port
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
		Host: target.id, HostName: target.name, Addresses: o.GetAddresses()})
}

// Match brings hosts together by what is known now.
func (b *Board) Match() {
	adapters, hosts, asked := b.concerned()
	b.bring(b.Known(slices.Collect(maps.Keys(adapters)), hosts), asked)
	b.Flaps.Find()
	token(b.news)
}

// concerned are the adapters of this controller's offers, the ids of the hosts that make them, and the offers. What is
// reported of the adapters from now on has them matched again, since it may come after they were asked about.
func (b *Board) concerned() (adapters map[part.Adapter]bool, hosts []string, asked map[offerKey]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	adapters, asked = map[part.Adapter]bool{}, map[offerKey]bool{}
	of := map[string]bool{}
	if b.wanted == nil {
		b.wanted = map[part.Adapter]bool{}
	}
	for _, o := range b.own() {
		adapters[o.adapter()], of[o.of.id], asked[o.key()] = true, true, true
		b.wanted[o.adapter()] = true
	}
	return adapters, slices.Collect(maps.Keys(of)), asked
}

// bring finds the source of each offer of this controller's hosts, and what each host is to know. An offer that came
// after its adapter and its host were asked about is left for the next time, which it has asked for.
func (b *Board) bring(known Known, asked map[offerKey]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, sources := meetings{}, map[offerKey]chosen{}
	b.wanted = map[part.Adapter]bool{}
	for _, o := range b.own() {
		if asked[o.key()] && !known.serves(o.of.id, o.GetSwitch(), o.GetPortGroup()) {
			b.refuse(o)
			continue
		}
		if b.wanted[o.adapter()] = true; !asked[o.key()] {
			continue
		}
		from, highest := b.sourceOf(o, known)
		expected := &controllerv1.MoveExpected{Move: o.GetMove(), Generation: highest}
		if from.host != nil {
			expected.Host, expected.HostName = from.host.id, from.host.name
			sources[o.key()] = from
			next.order(o.MoveOffer, o.of, from.host)
		}
		next.of(o.of).Expected = append(next.of(o.of).Expected, expected)
	}
	for _, said := range b.away {
		for _, o := range said.moves.GetOffers() {
			b.wanted[part.AdapterOf(o.GetOffer().GetVm(), o.GetOffer().GetAdapter())] = true
			target, from := b.hosts[o.GetHost()], b.hosts[o.GetSource()]
			if target != nil && from != nil && target.conn == nil {
				next.order(o.GetOffer(), target, from)
			}
		}
	}
	b.sources = sources
	b.tell(next)
}

// tell wakes the connections of hosts that are to know something else. The caller holds the lock.
func (b *Board) tell(next meetings) {
	was := b.moves
	b.moves = next
	for _, now := range next {
		slices.SortFunc(now.GetOrders(), func(a, b *controllerv1.MoveOrder) int {
			return cmp.Or(cmp.Compare(a.GetMove(), b.GetMove()), cmp.Compare(a.GetHost(), b.GetHost()))
		})
	}
	for id, h := range b.hosts {
		told := was[id] != nil || next[id] != nil
		if h.conn != nil && told && !proto.Equal(next[id], h.told) {
			h.conn.Poke()
		}
	}
}

// sourceOf is the host from which the port of an offer comes, none where none is known, and the highest generation of
// the port that any other host has reported: a target that heard its own would raise it above itself, again and again,
// and the source would never know how high it is. A host that runs the guest counts more than one that does not, one
// that is connected more than one that is not, and the one that a static port is bound on more than another. The port
// may be in another port group there: what the target may not serve, it does not get. The caller holds the lock.
func (b *Board) sourceOf(o offer, known Known) (from chosen, highest uint64) {
	said := b.portsOf(o.adapter(), known)
	for _, s := range said {
		if s.host != o.of {
			highest = max(highest, s.Generation)
		}
	}
	all := slices.DeleteFunc(slices.Clone(said), func(s source) bool {
		return s.host == o.of || !s.Runs && (s.Generation == 0 || s.host.offered[o.adapter()]) ||
			!known.serves(o.of.id, s.Switch, s.Group)
	})
	was := b.stillFrom(o, said, all)
	highest = max(highest, was.generation)
	if len(all) == 0 {
		return was, highest
	}
	bound := known.Bound[o.adapter()]
	best := slices.MinFunc(all, func(a, b source) int {
		return cmp.Or(first(a.Runs, b.Runs), first(a.Runs && !a.away, b.Runs && !b.away),
			first(bound == a.host.id, bound == b.host.id), cmp.Compare(b.Generation, a.Generation),
			first(!a.away, !b.away), byName(a, b))
	})
	if was.host != nil && !best.Runs && best.Generation < was.generation {
		return was, highest
	}
	return chosen{best.host, best.Generation}, highest
}

// stillFrom is the source that was found before, while it may be the source without having a port any more; said are
// the hosts that have one, all those of them that may be the source. The caller holds the lock.
func (b *Board) stillFrom(o offer, said, all []source) chosen {
	was := b.sources[o.key()]
	is := func(s source) bool { return s.host == was.host }
	if was.host == nil || b.hosts[was.host.id] != was.host || was.host.offered[o.adapter()] ||
		slices.ContainsFunc(said, is) && !slices.ContainsFunc(all, is) {
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

func byName(a, b source) int { return strings.Compare(a.host.name, b.host.name) }

// portsOf are the hosts that have, or had, the port of an adapter, here and at other controllers. What a host reported
// before it lost its connection counts no more where the controller that it has by now says that the port is gone. The
// caller holds the lock.
func (b *Board) portsOf(n part.Adapter, known Known) []source {
	list, gone := b.portsSaid(n, known)
	return slices.DeleteFunc(list, func(s source) bool { return s.away && gone[s.host] })
}

// portsSaid are those hosts by all that was said, and the hosts that other controllers have, without that port.
func (b *Board) portsSaid(n part.Adapter, known Known) (list []source, gone map[*host]bool) {
	list, gone = b.portsHere(n, known), map[*host]bool{}
	for _, said := range b.away {
		for _, p := range said.ports[n] {
			h := b.hosts[p.GetHost()]
			if h == nil || h.conn != nil {
				continue // it was removed, or is here by now
			}
			if p.GetGone() {
				gone[h] = true
				continue
			}
			s := source{h, Port{Host: h.id, Switch: p.GetSwitch(), Group: p.GetPortGroup(),
				Generation: p.GetGeneration(), Runs: p.GetRuns()}, p.GetAway()}
			if p.GetAway() && slices.ContainsFunc(list, func(o source) bool { return o.host == h }) {
				continue
			}
			list = slices.DeleteFunc(list, func(o source) bool { return o.host == h })
			list = append(list, s)
		}
	}
	return list, gone
}

// portsHere are those of them that reported to this controller last. The caller holds the lock.
func (b *Board) portsHere(n part.Adapter, known Known) (list []source) {
	for _, p := range known.Ports[n] {
		if h := b.hosts[p.Host]; h != nil {
			list = append(list, source{h, p, h.conn == nil})
		}
	}
	return list
}
