package moves_test

import (
	"fmt"

	"heddle/internal/agent/moves"
	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
)

// frames is how many frames the guest sends in a world at most.
const frames = 3

// adder takes what can happen next.
type adder func(next world, format string, args ...any)

// events are all things that can happen now.
func (w world) events() []event {
	var all []event
	add := func(next world, format string, args ...any) {
		if next != w {
			all = append(all, event{fmt.Sprintf(format, args...), next})
		}
	}
	w.hypervisor(add)
	for i := range w.hosts {
		w.onHost(i, add)
		w.controllers(i, add)
	}
	w.network(add)
	return all
}

// hypervisor is what QEMU does: a live migration step by step, one that is cancelled, one that fails half way, and the
// end of any QEMU.
func (w world) hypervisor(add adder) {
	for from := range w.hosts {
		to := 1 - from
		if w.runs == from && w.migrations > 0 && w.hosts[to].qemu == guest.RunUnknown && !w.hosts[to].connected &&
			!w.hosts[to].lost && w.hosts[from].knows() {
			next := w
			next.migrations--
			next.hosts[to].qemu = guest.RunWaits
			add(next, "host %d starts a QEMU that waits for the guest", to)
		}
		if w.runs == from && w.faults > 0 {
			next := w
			next.faults--
			next.runs = dead
			next.end(from)
			add(next, "host %d's QEMU is killed while the guest runs", from)
		}
		if w.hosts[to].qemu != guest.RunWaits {
			continue
		}
		if w.runs == from {
			next := w
			next.hosts[from].qemu, next.hosts[from].late, next.runs = guest.RunLeft, true, stopped
			add(next, "host %d's QEMU stops the guest", from)
			next = w
			next.end(to)
			add(next, "the migration is cancelled; host %d's QEMU ends", to)
		}
		if w.runs == stopped {
			next := w
			next.hosts[to].qemu, next.runs = guest.RunHere, to
			add(next, "host %d's QEMU runs the guest", to)
		}
		if w.runs == stopped && w.hosts[from].qemu == guest.RunLeft {
			next := w
			next.hosts[from].qemu, next.runs = guest.RunHere, from
			next.end(to)
			add(next, "the migration fails; host %d's QEMU runs the guest again", from)
		}
	}
	for i, h := range w.hosts {
		if h.qemu == guest.RunLeft && w.runs == 1-i {
			next := w
			next.end(i)
			add(next, "host %d's QEMU ends after the migration", i)
		}
	}
}

// knows reports whether the host has noticed that the guest runs there: one that a guest passes faster than that has
// nothing to give.
func (h *host) knows() bool { return h.agent && h.memory.place.Serves }

// end ends the QEMU of a host. What no move was to carry goes with its port, and so does a late frame of the guest, if
// the agent had no time to ask the QEMU about it.
func (w *world) end(i int) {
	h := &w.hosts[i]
	if a := &h.memory.away; h.agent && !w.carried(&h.memory) || !h.agent && !w.carried(&h.disk) || a.left {
		w.excused |= h.memory.base | h.disk.base | h.own
	}
	if unasked := h.memory.away.silent || !h.agent; unasked && h.qemu == guest.RunLeft && h.active() {
		w.excused |= h.own &^ (h.memory.away.goods | h.disk.away.goods)
	}
	h.ends(i)
}

// carried reports whether a move is there that gives away what the port has when it ends.
func (w *world) carried(r *record) bool {
	a := r.away
	return a.there && a.phase != moves.Released && a.phase != moves.Cancelled && !a.left
}

// onHost is what happens on one host.
func (w world) onHost(i int, add adder) {
	change := func(what string, edit func(*host)) {
		next := w
		edit(&next.hosts[i])
		add(next, "host %d: "+what, i)
	}
	h := w.hosts[i]
	if h.connected && w.n < frames && (w.runs == i || h.late) {
		next := w
		unit := units(1) << w.n
		next.n++
		next.sent |= unit
		next.hosts[i].own |= unit
		next.hosts[i].awake, next.hosts[i].late = max(h.awake, h.waits), false
		how := "the guest sends frame %d"
		if h.late {
			how = "frame %d comes, which the guest sent before it was stopped"
		}
		add(next, "host %d: "+how, i, w.n)
	}
	if h.lost {
		return
	}
	if !h.agent {
		change("the agent starts", func(h *host) { h.start(i) })
		return
	}
	if h.qemu == guest.RunWaits && !h.connected {
		change("a hook connects the port", func(h *host) { h.connects(i) })
	}
	if h.connected {
		change("the monitor is read", func(h *host) { h.monitors(i) })
		change("the agent sees which waits are over", func(h *host) {
			h.take(i, presence.Sent(h.memory.presence(), h.awake, h.cached))
		})
	}
	change("the agent writes its record", func(h *host) { h.disk = h.memory })
	if w.kills > 0 {
		next := w
		next.kills--
		next.hosts[i].agent, next.hosts[i].memory = false, record{}
		next.hosts[i].cached, next.hosts[i].asks = guest.RunUnknown, false
		next.hangUp(i)
		add(next, "host %d: the agent is killed", i)
	}
	if w.faults > 0 {
		next := w
		next.faults--
		next.power(i)
		add(next, "host %d loses its power", i)
	}
}

// hangUp ends the calls that a killed agent waits for; what it has sent may still arrive.
func (w *world) hangUp(i int) {
	for k, m := range w.net {
		if m.there && m.answer && m.from == i {
			w.net[k] = message{}
		}
	}
}

// power takes a host away. What its target did not get is lost.
func (w *world) power(i int) {
	h := &w.hosts[i]
	w.excused |= h.memory.base | h.disk.base | h.own | h.memory.away.goods | h.disk.away.goods
	if w.runs == i {
		w.runs = dead
	}
	*h = host{lost: true}
	w.hangUp(i)
}

// controllers is what controllers say: the target offers its move, they name the two hosts to each other.
func (w world) controllers(i int, add adder) {
	h := w.hosts[i]
	if here := h.memory.getHere(); h.agent && here != nil && here.Offers(now) && w.ordered != here.Move {
		next := w
		next.ordered, next.offerer = here.Move, i
		add(next, "host %d's offer reaches the controllers", i)
	}
	if w.ordered == "" {
		return
	}
	if h.agent && w.offerer == i && h.memory.here.move == w.ordered {
		next := w
		next.hosts[i].expects(i, w.hosts[1-i].disk.place.Generation)
		add(next, "host %d: the controllers name the source", i)
	}
	// The source is the host that runs or ran the adapter.
	if h.agent && w.offerer != i && h.memory.place.Generation > 0 && h.connected {
		next := w
		next.order(i)
		add(next, "host %d: the controllers order the move", i)
	}
}

// expects is the target that hears who may call.
func (h *host) expects(i int, generation uint64) {
	here := h.memory.getHere()
	if _, drop := here.Expected("source", "source", generation); drop {
		h.memory.base = 0
	}
	h.memory.putHere(here)
	h.look(i)
	h.disk = h.memory
}

// order is the source that hears who takes over. It remembers that before anything else. What it still had to give to
// the host of an earlier move is lost: the guest has gone on from there before the two were named to each other.
func (w *world) order(i int) {
	h := &w.hosts[i]
	before := h.memory.away
	a, changed := moves.Ordered(h.memory.getAway(), moves.Order{Move: w.ordered, Host: "target", HostName: "target"},
		h.sees(), now)
	if !changed {
		return
	}
	if h.memory.putAway(a); before.left && before.packed && !a.Left {
		w.excused |= before.goods
	}
	h.look(i)
	h.disk = h.memory
}

// network is what happens to messages: they arrive in any order, more than once, or never.
func (w world) network(add adder) {
	free := -1
	for k, m := range w.net {
		if !m.there {
			free = k
			continue
		}
		next := w
		next.net[k] = message{}
		add(next, "a message of host %d is lost", m.from)
		next = w
		next.net[k] = message{}
		next.deliver(m, k)
		add(next, "a message of host %d arrives: %+v", m.from, m.send)
		next = w
		next.deliver(m, -1)
		add(next, "a message of host %d arrives, and will once more: %+v", m.from, m.send)
	}
	if free < 0 {
		return
	}
	for i, h := range w.hosts {
		if h.agent {
			next := w
			if m, ok := next.hosts[i].says(i); ok {
				next.net[free] = m
				add(next, "host %d sends: %+v", i, m.send)
			}
		}
	}
}

// deliver delivers a message. The answer takes the place of the copy on its way; it is lost where there is none.
func (w *world) deliver(m message, place int) {
	to := 1 - m.from
	if m.answer {
		if h := &w.hosts[m.from]; h.agent {
			before := h.memory.away
			h.hears(m)
			w.forsaken(before, h.memory.away)
		}
		return
	}
	if h := &w.hosts[to]; h.agent && (h.memory.here.move != m.move || h.memory.here.host != "") { // or it is refused
		answer := h.takes(m)
		if place >= 0 && w.hosts[m.from].agent {
			w.net[place] = answer
		}
	}
}

// unnamed are the frames that a source can't give to its target, because no controller named it while the guest was
// there.
func (w *world) unnamed() (out units) {
	for i := range w.hosts {
		a, here := w.hosts[i].memory.away, w.hosts[1-i].memory.here
		if a.packed && a.move == here.move && here.host == "" {
			out |= a.goods
		}
	}
	return out
}

// forsaken excuses what a source had to give to a target whose port was gone.
func (w *world) forsaken(before, after awayRecord) {
	if before.phase != after.phase && after.phase == moves.Cancelled && before.silent {
		w.excused |= before.goods
	}
}
