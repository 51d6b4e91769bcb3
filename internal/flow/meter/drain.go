package meter

import (
	"errors"
	"fmt"
	"maps"

	"heddle/internal/flow"
)

// drain takes the counts out of the source. Flows of ports that were removed are ended: at once if another port has
// their slot, else within Options.Every, as fast as the exporter accepts them.
func (m *Meter) drain(now Instant) error {
	for _, k := range m.switches {
		if k.table.foreign {
			m.end(k, now)
		}
	}
	errs := []error{m.tidy()}
	points := m.o.Source.Points()
	if !maps.Equal(points, m.points) {
		m.forceEnd(reused(m.points, points), now)
		errs = append(errs, m.setPoints(with(points, m.points)))
	}
	before := m.points
	err := m.o.Source.Drain(func(b flow.Batch) error { return m.fold(b, now) })
	begun := 0
	for _, k := range m.switches {
		begun += k.table.drained(now, err == nil)
	}
	m.mu.Lock()
	m.rounds.over(now, m.o.Every, begun, err != nil)
	m.mu.Unlock()
	if err != nil {
		errs = append(errs, fmt.Errorf("take what was counted out of the kernel: %w", err))
		return errors.Join(errs...)
	}
	if m.rounds.look(now, m.o.Every) {
		m.leave(before, points)
		m.look(now)
	}
	return errors.Join(errs...)
}

// leave ends the flows of points that are gone: those from before the drain that the source did not name when it began,
// unless other ports have got their slots since.
func (m *Meter) leave(before, points flow.Points) {
	m.gone = nil
	if len(before) == len(points) { // before contains all of points
		return
	}
	m.gone = without(before, points)
	maps.DeleteFunc(m.gone, func(slot uint16, _ bool) bool { return !m.points[slot].Same(before[slot]) })
	for _, k := range m.switches {
		k.table.lookAt(m.gone)
	}
}

// look does the work that is done once per Options.Every, after a drain, however short rounds are.
func (m *Meter) look(now Instant) {
	for _, k := range m.switches {
		k.table.freeIdle()
		if k.exporter != nil {
			k.exporter.Tick(now, func() State { return m.state(k) })
		}
	}
}

// state is what can be reported about a switch besides its records.
func (m *Meter) state(k *switchFlows) State {
	s := State{Points: flow.Points{}, Statistics: k.statistics(), Sampling: k.table.set.Sampling}
	for slot, p := range m.points {
		if p.ID.Switch == k.name {
			s.Points[slot] = p
		}
	}
	losses, err := m.o.Source.Losses()
	if err != nil {
		m.o.Log.Warn("what the kernel could not record is not known", "error", err)
	}
	for _, l := range losses {
		if _, ok := s.Points[l.Point]; ok {
			s.Losses = append(s.Losses, l)
		}
	}
	return s
}

// forceEnd ends the flows of some slots.
func (m *Meter) forceEnd(slots map[uint16]bool, now Instant) {
	if len(slots) == 0 {
		return
	}
	for _, k := range m.switches {
		k.table.lookAt(slots)
		for m.reap(k, now, slice, slots) > 0 {
		}
	}
}

// fold adds a batch to the tables.
func (m *Meter) fold(b flow.Batch, now Instant) error {
	for _, k := range m.switches {
		if k.table.renumbered(b.Number) {
			m.end(k, now)
			if err := m.tidy(); err != nil {
				return err
			}
		}
	}
	for i := 0; i < len(b.Keys); {
		k, err := m.owner(b.Keys[i].Point)
		if err != nil {
			return err
		}
		if k == nil {
			m.mu.Lock()
			m.unknown.add(&b.Counts[i])
			m.mu.Unlock()
			i++
			continue
		}
		i = m.foldRun(k, b, i, now)
	}
	return nil
}

// foldRun adds the next part of the batch that belongs to one switch, and returns where that part ends. Flows that do
// not fit into the table become records.
func (m *Meter) foldRun(k *switchFlows, b flow.Batch, i int, now Instant) int {
	t := k.table
	t.mu.Lock()
	t.begin(b.Number)
	var hashes [portion]uint32
	for from := i; i < len(b.Keys) && len(m.overflow.records) < slice && m.at(b.Keys[i].Point) == k; i++ {
		if (i-from)%portion == 0 {
			t.ahead(b.Keys[i:min(i+portion, len(b.Keys))], &hashes)
		}
		c := &b.Counts[i]
		if c.Packets == 0 {
			continue
		}
		switch t.fold(&b.Keys[i], hashes[(i-from)%portion], c, b.Number, now) {
		case already:
			continue
		case noRoom:
			k.stats.Overflow.add(c)
			m.overflow.records = append(m.overflow.records,
				flow.Record{Key: b.Keys[i], Reason: flow.NoResources, Start: c.First, Delta: *c, Total: *c})
		}
		k.stats.Folded.add(c)
	}
	t.mu.Unlock()
	m.emit(k, now, m.overflow.records)
	m.overflow.reset()
	return i
}

// reapWithin makes records that are due, as many as the exporter accepts. It returns how many it made, and whether
// there are more.
func (m *Meter) reapWithin(k *switchFlows, now Instant) (made int, more bool) {
	for {
		budget := slice
		if k.exporter != nil {
			budget = min(slice, k.exporter.Budget(now))
		}
		if budget <= 0 {
			return made, true
		}
		n := m.reap(k, now, budget, m.gone)
		if made += n; n < budget {
			return made, false
		}
	}
}

// reap makes at most limit records that are due, and returns how many it made. Flows at the slots in gone are due.
func (m *Meter) reap(k *switchFlows, now Instant, limit int, gone map[uint16]bool) int {
	m.harvest.reset()
	tick := floorTick(now.Up)
	k.table.collect(tick, limit, gone, m.harvest)
	m.emit(k, now, m.harvest.records)
	k.table.settle(m.harvest.items, tick)
	return len(m.harvest.items)
}

// emit hands records to the exporter and to subscribers.
func (m *Meter) emit(k *switchFlows, now Instant, records []flow.Record) {
	if len(records) == 0 {
		return
	}
	m.watchers.tell(k.name, m.points, records)
	k.table.mu.Lock()
	k.stats.count(records)
	if k.table.set.InternalOnly {
		records = k.stats.internal(m.points, records)
	}
	k.table.mu.Unlock()
	if k.exporter != nil && len(records) > 0 {
		k.exporter.Export(now, m.points, records)
	}
}

// count adds the records to the statistics.
func (s *Statistics) count(records []flow.Record) {
	for i := range records {
		s.InRecords.addRecord(&records[i])
	}
	s.Records += uint64(len(records))
}

// internal selects the records whose last packet both came in and went out at one port each, neither of them an uplink
// (S68). Flooded frames, and those whose source or destination is not known, are not between two ends on this host.
func (s *Statistics) internal(points flow.Points, records []flow.Record) []flow.Record {
	inside := func(slot uint16) bool {
		p, ok := points[slot]
		return ok && slot != 0 && !p.Uplink
	}
	left := records[:0]
	for i := range records {
		if c := &records[i].Total; inside(c.In) && inside(c.Out) {
			left = append(left, records[i])
			continue
		}
		s.Excluded.addRecord(&records[i])
	}
	return left
}
