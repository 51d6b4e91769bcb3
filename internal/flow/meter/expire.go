package meter

import (
	"time"

	"heddle/internal/flow"
)

// TCP flags that end a flow.
const (
	finFlag = 1 << 0
	rstFlag = 1 << 2
)

// quiet is how long no packet must be seen after a FIN or RST before a flow counts as ended: packets that are still on
// their way belong to it.
const quiet = tick(2 * time.Second / tickLength)

// expiry is the next thing to do with a flow, and when.
type expiry struct {
	at     tick
	reason flow.EndReason
	end    bool // no further record follows
}

// expiry is when the flow's next record is due; this may be before now.
func (t *table) expiry(s *slot, now tick) expiry {
	return t.next(s.seen, s.reported, s.unsent(), s.flags&(finFlag|rstFlag) != 0, now)
}

// next decides when a flow's next record is due. The flow ends idleTimeout after its last packet (S64). While it
// lasts, its counts are reported every activeTimeout (S65); if nothing was counted, the next record is due one
// activeTimeout later.
func (t *table) next(seen, reported tick, unsent, finished bool, now tick) expiry {
	idle := expiry{at: seen + ticks(t.set.IdleTimeout), reason: flow.IdleTimeout, end: true}
	if finished && quiet < ticks(t.set.IdleTimeout) {
		idle = expiry{at: seen + quiet, reason: flow.EndOfFlow, end: true}
	}
	active := ticks(t.set.ActiveTimeout)
	report := expiry{at: reported + active, reason: flow.ActiveTimeout}
	if report.at <= now && !unsent {
		report.at = now + active - (now-reported)%active
	}
	if report.at < idle.at && idle.at > now {
		return report
	}
	return idle
}

func ticks(d time.Duration) tick { return max(1, tick(d/tickLength)) }

// expired is a record that is due, and the entries it reports.
type expired struct {
	first, second int // entries; second is -1 in a record of one direction
	end           bool
}

// examine adds the record of an entry that may be due, or notes when to check again. partner is the hash of its
// partner's key.
func (t *table) examine(i int, partner uint32, now tick, gone map[uint16]bool, to *harvest) {
	e := &t.file.entries[i]
	s, j := e.current(), -1
	x := t.expiry(s, now)
	if t.set.Biflow {
		if j = t.partner(&e.key, partner); j >= 0 {
			x = t.both(s, t.file.entries[j].current(), now)
		}
	}
	over := t.foreign || gone[e.key.Point]
	if over || t.stopping {
		x = expiry{reason: flow.ForcedEnd, end: true}
	}
	if x.end && !over && !t.free(s, j) {
		// The last batch may come again, and would be added to a new entry: check again after the next drain.
		x.at = max(x.at, now+1)
	}
	if x.at > now {
		t.setDue(i, x.at)
		return
	}
	if j >= 0 && t.file.entries[j].start() < e.start() {
		i, j = j, i
	}
	to.add(t, i, j, x)
	t.due.s[i] = never
	if j >= 0 {
		t.due.s[j] = never
	}
}

// free says whether an entry and its partner can be freed, because the last batch that was added to them will not come
// again.
func (t *table) free(s *slot, partner int) bool {
	return s.batch <= t.settled && (partner < 0 || t.file.entries[partner].current().batch <= t.settled)
}

// settle notes that the records were exported, and frees the entries of flows that ended.
//
// A single entry is freed by one store: a kill before it leaves a flow that is reported again with the same totals, a
// kill after it a free entry. Both entries of a pair are marked before one is freed, so that a kill in between leaves
// nothing that would be reported again in another form.
func (t *table) settle(items []expired, now tick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var hashes [portion]uint32
	for len(items) > 0 {
		n := min(len(items), portion/2)
		t.aheadOfRemoval(items[:n], &hashes)
		for k, x := range items[:n] {
			if !x.end {
				t.goOn(x.first, now)
				t.goOn(x.second, now)
				continue
			}
			if x.second >= 0 {
				t.file.entries[x.first].over()
				t.file.entries[x.second].over()
				t.remove(x.second, hashes[2*k+1])
			}
			t.remove(x.first, hashes[2*k])
		}
		items = items[n:]
	}
}

// goOn notes that an entry, unless it is -1, was reported and that its flow continues.
func (t *table) goOn(i int, now tick) {
	if i < 0 {
		return
	}
	e := &t.file.entries[i]
	e.change(func(s *slot) { s.sent(now) })
	t.setDue(i, max(1, t.expiry(e.current(), now).at))
}

// harvest is records with the entries they report. It is reused, so that expiry makes no garbage.
type harvest struct {
	limit   int
	items   []expired
	records []flow.Record
	reverse []flow.Reverse
}

func newHarvest(limit int) *harvest { return &harvest{limit: limit} }

// allocate makes space for as many records as there are at most: the records point at their reverse, which therefore
// never moves. An agent that meters nothing needs none.
func (h *harvest) allocate() {
	if h.items == nil {
		h.items, h.records = make([]expired, 0, h.limit), make([]flow.Record, 0, h.limit)
		h.reverse = make([]flow.Reverse, 0, h.limit)
	}
}

func (h *harvest) reset() { h.items, h.records, h.reverse = h.items[:0], h.records[:0], h.reverse[:0] }

func (h *harvest) add(t *table, i, j int, x expiry) {
	h.allocate()
	e := &t.file.entries[i]
	s, start := e.current(), e.start()
	r := flow.Record{Key: e.key, Reason: x.reason, Start: start, Delta: s.delta(start), Total: s.total(start)}
	if j >= 0 {
		e = &t.file.entries[j]
		s, start = e.current(), e.start()
		h.reverse = append(h.reverse, flow.Reverse{Start: start, Delta: s.delta(start), Total: s.total(start)})
		r.Reverse = &h.reverse[len(h.reverse)-1]
	}
	h.items = append(h.items, expired{first: i, second: j, end: x.end})
	h.records = append(h.records, r)
}
