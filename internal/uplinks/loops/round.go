package loops

import (
	"maps"
	"slices"
	"time"

	"heddle/internal/plan"
)

// goOn advances the running round to this instant.
func (m *Machine) goOn(now time.Time) {
	r := &m.round
	if r.began.IsZero() {
		return
	}
	if now.Sub(r.began) >= roundLasts {
		m.judge(now)
		m.tried(now)
		for _, id := range m.round.yielded {
			delete(m.yields, id)
		}
		m.round = round{}
		return
	}
	if !r.look.IsZero() && !now.Before(r.look) {
		m.judge(now)
		r.look = time.Time{}
	}
	if again := resend(); r.sent <= len(again) && now.Sub(r.began) >= again[r.sent-1] {
		r.sent++
		m.send = append(m.send, Send{m.number, slices.Clone(r.segments)})
	}
}

// add adds segments to those that the round probes.
func (r *round) add(segments ...Segment) {
	for _, s := range segments {
		if !slices.Contains(r.segments, s) {
			r.segments = append(r.segments, s)
		}
	}
}

// begin starts a round for the waiting segments and for the ports that are due for a try.
func (m *Machine) begin(now time.Time) {
	var r round
	for id, b := range m.blocks {
		if b.Seen || b.Retry.After(now) || len(r.segments)+len(b.Segments) > mostSegments {
			continue
		}
		r.tries = append(r.tries, id)
		r.add(b.Segments...)
	}
	for id, y := range m.yields {
		if now.Before(y.until) || len(r.segments)+len(y.segments) > mostSegments {
			continue
		}
		r.yielded = append(r.yielded, id)
		r.add(y.segments...)
	}
	for len(m.waiting) > 0 && len(r.segments) < mostSegments {
		r.add(m.waiting[0])
		m.waiting = m.waiting[1:]
	}
	if len(r.segments) == 0 {
		return
	}
	m.number++
	r.began, r.sent = now, 1
	m.round = r
	maps.DeleteFunc(m.ways, func(_ Way, at time.Time) bool { return now.Sub(at) >= staleAfter })
	for _, id := range slices.Concat(r.tries, r.yielded) { // only what this round shows of these ports counts
		maps.DeleteFunc(m.ways, func(w Way, _ time.Time) bool { return w.uses(id) })
	}
	m.send = append(m.send, Send{m.number, slices.Clone(r.segments)})
}

// open returns the known paths that frames take at present. Paths through blocked ports are closed, except those of the
// port but.
func (m *Machine) open(but plan.PortID) []Way {
	list := slices.Clone(m.seen)
	for w := range m.ways {
		list = append(list, w)
	}
	closed := func(id plan.PortID) bool { return id != but && m.blocks[id] != nil }
	return slices.DeleteFunc(list, func(w Way) bool { return closed(w.Out.ID) || closed(w.In.ID) })
}

// judge blocks a port of every known loop.
func (m *Machine) judge(now time.Time) {
	for _, l := range Find(m.open(plan.PortID{})) {
		if l.Port != (plan.PortID{}) && !m.leaves(l, now) {
			m.block(l, false, now)
		}
	}
}

// leaves reports whether the loop is left to another host for now: it goes through an uplink, and the port received
// probes of another host that blocks first. That host may not exist, or may not open the loop: the port is tried again
// in a round of its own.
func (m *Machine) leaves(l Loop, now time.Time) bool {
	met, ok := m.others[l.Port]
	if !ok || now.Sub(met) >= staleAfter || slices.Contains(m.round.yielded, l.Port) || !l.outside() {
		return false
	}
	if _, known := m.yields[l.Port]; !known {
		m.yields[l.Port] = yield{now.Add(yieldFor), l.segments()}
	}
	return true
}

// tried ends the round for the ports that were tried in it: a port through which no loop would go any more is
// unblocked.
func (m *Machine) tried(now time.Time) {
	for _, id := range m.round.tries {
		b := m.blocks[id]
		if b == nil || b.Seen || b.Retry.After(m.round.began) { // requested anew in the meantime
			continue
		}
		if m.loopsBy(id) {
			b.Pause = min(max(2*b.Pause, FirstRetry), LastRetry)
			b.Retry = now.Add(b.Pause)
			continue
		}
		m.lift(id, now)
	}
}

// loopsBy reports whether frames would loop if the port were not blocked.
func (m *Machine) loopsBy(id plan.PortID) bool {
	return slices.ContainsFunc(Find(m.open(id)), func(l Loop) bool {
		return slices.ContainsFunc(l.Ways, func(w Way) bool { return w.uses(id) })
	})
}

func (m *Machine) block(l Loop, seen bool, now time.Time) {
	b := &Block{Port: l.Port, Why: l.String(), Since: now, Seen: seen}
	if was := m.blocks[l.Port]; was != nil {
		b.Since = was.Since
	}
	if !seen {
		b.Segments = l.segments()
		b.Pause = FirstRetry
		// A port that was unblocked too early waits longer.
		if before, ok := m.lifted[l.Port]; ok && now.Sub(before.at) < 2*before.pause {
			b.Pause = min(2*before.pause, LastRetry)
		}
		b.Retry = now.Add(b.Pause)
	}
	m.blocks[l.Port] = b
	delete(m.yields, l.Port)
	// If the loop opens and closes again, its signs count as new.
	maps.DeleteFunc(m.signs, func(s Sign, _ *answered) bool { return slices.Contains(b.Segments, s.Segment) })
	m.changes = append(m.changes, Change{Block: *b})
}

func (m *Machine) lift(id plan.PortID, now time.Time) {
	b := m.blocks[id]
	delete(m.blocks, id)
	m.lifted[id] = lifted{now, max(b.Pause, FirstRetry)}
	m.changes = append(m.changes, Change{Block: *b, Lifted: true})
}
