package meter

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"heddle/internal/flow"
)

// Flow is a flow that has an entry at present.
type Flow struct {
	Switch string
	Point  flow.Point // where it is observed
	Key    flow.Key
	Start  int64       // ms since 1970; identifies the flow together with the key
	Total  flow.Counts // since Start, until the last drain
	// PacketRate, and BitRate of whole frames, per second: for a Sampler's flows since its previous sample, else
	// the mean since Start.
	PacketRate, BitRate float64
}

// Flows calls f with every flow that has an entry, switch by switch, until it returns false. Flows that begin or end
// meanwhile may be left out. Any goroutine may call it; f must not call the Meter.
func (m *Meter) Flows(f func(*Flow) bool) {
	m.each(func(k *switchFlows, points flow.Points, i int, e *entry) bool {
		fl := k.flow(points, e)
		if d := float64(max(fl.Total.Last-fl.Start, 1000)) / 1000; d > 0 {
			fl.PacketRate, fl.BitRate = float64(fl.Total.Packets)/d, float64(fl.Total.FrameBytes)*8/d
		}
		return f(&fl)
	})
}

func (k *switchFlows) flow(points flow.Points, e *entry) Flow {
	start := e.start()
	return Flow{Switch: k.name, Point: points[e.key.Point], Key: e.key, Start: start, Total: e.current().total(start)}
}

// each calls f with every entry in use. The tables are locked for a moment at a time.
func (m *Meter) each(f func(k *switchFlows, points flow.Points, i int, e *entry) bool) {
	m.mu.Lock()
	points := m.points
	var all []*switchFlows
	for _, k := range m.switches {
		all = append(all, k)
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b *switchFlows) int { return cmp.Compare(a.name, b.name) })
	for _, k := range all {
		for from, more := 0, true; more; from += chunkEntries {
			var goOn bool
			more, goOn = k.table.each(from, func(i int, e *entry) bool { return f(k, points, i, e) })
			if !goOn {
				return
			}
		}
	}
}

// each calls f with the entries in use of one chunk; more says that there are further chunks.
func (t *table) each(from int, f func(int, *entry) bool) (more, goOn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from >= len(t.due.s) {
		return false, true
	}
	if t.chunks[from/chunkEntries].live > 0 {
		for i := from; i < from+chunkEntries; i++ {
			if t.due.s[i] != 0 && !f(i, &t.file.entries[i]) {
				return false, false
			}
		}
	}
	return true, true
}

// flows is how many entries are in use.
func (t *table) flows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Order is what flows are ordered by, largest first.
type Order uint8

// The orders.
const (
	ByBits Order = iota
	ByPackets
)

// Sampler computes the rates of flows between two of its samples. While it exists it takes 32 bytes per flow.
type Sampler struct {
	m  *Meter
	mu sync.Mutex
	at time.Duration
	// before is the state of each entry at the previous sample.
	before map[string][]sample
}

type sample struct {
	start               int64
	point               uint16
	packets, frameBytes uint64
}

// NewSampler makes a sampler. Its first sample gives means since the flows began.
func (m *Meter) NewSampler() *Sampler { return &Sampler{m: m, before: map[string][]sample{}} }

// Top returns the n flows with the highest rates since the previous sample among those that keep accepts (nil accepts
// all), and how many it accepted.
func (s *Sampler) Top(now Instant, n int, by Order, keep func(*Flow) bool) (top []Flow, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := (now.Up - s.at).Seconds()
	first := s.at == 0 || elapsed <= 0
	s.at = now.Up
	rate := func(f *Flow) float64 {
		if by == ByPackets {
			return f.PacketRate
		}
		return f.BitRate
	}
	order := func(a, b Flow) int { return cmp.Compare(rate(&b), rate(&a)) }
	s.m.each(func(k *switchFlows, points flow.Points, i int, e *entry) bool {
		f := k.flow(points, e)
		d := elapsed
		old := s.swap(k.name, i, sample{start: f.Start, point: f.Key.Point, packets: f.Total.Packets,
			frameBytes: f.Total.FrameBytes})
		if first {
			old, d = sample{}, float64(max(f.Total.Last-f.Start, 1000))/1000
		}
		f.PacketRate = float64(f.Total.Packets-old.packets) / d
		f.BitRate = float64(f.Total.FrameBytes-old.frameBytes) * 8 / d
		if keep != nil && !keep(&f) {
			return true
		}
		accepted++
		if top = append(top, f); len(top) >= 2*n+64 {
			slices.SortFunc(top, order)
			top = top[:n]
		}
		return true
	})
	slices.SortFunc(top, order)
	return top[:min(n, len(top))], accepted
}

// swap stores the state of an entry and returns the previous one, if it was of the same flow.
func (s *Sampler) swap(name string, i int, now sample) sample {
	all := s.before[name]
	for len(all) <= i {
		all = append(all, sample{})
	}
	old := all[i]
	all[i], s.before[name] = now, all
	if old.start != now.start || old.point != now.point || old.packets > now.packets {
		return sample{}
	}
	return old
}

// Drained is when the source was drained last, by Instant.Up; 0 before the first time. Any goroutine may call it.
func (m *Meter) Drained() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rounds.drained
}

// Statistics are the statistics of every switch whose flows are stored, by name. Any goroutine may call it.
func (m *Meter) Statistics() map[string]Statistics {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]Statistics{}
	for name, k := range m.switches {
		all[name] = k.statistics()
	}
	return all
}

func (k *switchFlows) statistics() Statistics {
	t := k.table
	t.mu.Lock()
	defer t.mu.Unlock()
	st := k.stats
	st.Flows, st.MaxFlows = t.live, t.set.MaxFlows
	for _, c := range t.chunks {
		if c.reserved {
			st.FileBytes += chunkEntries * entrySize
		}
	}
	return st
}

// Unknown is what the source counted for points that it did not name; it is in no record.
func (m *Meter) Unknown() Sum {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unknown
}
