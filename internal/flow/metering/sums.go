package metering

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
)

// mostGroups limits how many groups are kept apart; beyond that, the smaller half is added to the rest.
const mostGroups = 1 << 16

// sums adds flows up by group, counting each packet once.
type sums struct {
	by     string
	words  words
	names  services
	once   *once
	groups map[group]*sumRow
	order  func(a, b *sumRow) int
	out    api.FlowSums
	rates  bool
	most   int
}

// group is what the flows of one row have in common. end and other are the ends of a conversation: end is the client.
type group struct {
	name       string
	sw         string
	segment    segment
	end, other end
}

// end is one end of a flow.
type end struct {
	addr netip.Addr
	mac  [6]byte // for an end without an address
	port uint16
}

// sumRow is a row.
type sumRow struct {
	of    group
	flows int
	all   amount
	back  api.FlowCounts
}

func (s *sumRow) add(a amount, back bool) {
	s.flows++
	s.all.FlowCounts = plus(s.all.FlowCounts, a.FlowCounts)
	s.all.rates = api.FlowRates{Packets: s.all.rates.Packets + a.rates.Packets, Bits: s.all.rates.Bits + a.rates.Bits}
	if back {
		s.back = plus(s.back, a.FlowCounts)
	}
}

func plus(a, b api.FlowCounts) api.FlowCounts {
	return api.FlowCounts{Packets: a.Packets + b.Packets, Bytes: a.Bytes + b.Bytes, FrameBytes: a.FrameBytes +
		b.FrameBytes}
}

// sumOrder is the order of rows.
func sumOrder(q *api.FlowSumQuery) (func(a, b *sumRow) int, error) {
	sorts := api.FlowSumSorts()
	if q.Of == api.SumsOfRates {
		sorts = api.FlowTopSorts()
	}
	if !slices.Contains(sorts, q.Sort) {
		return nil, invalid("sort %q: it is one of %v", q.Sort, sorts)
	}
	by := map[string]func(a, b *sumRow) int{
		"bytes":   func(a, b *sumRow) int { return cmp.Compare(b.all.Bytes, a.all.Bytes) },
		"packets": func(a, b *sumRow) int { return cmp.Compare(b.all.Packets, a.all.Packets) },
		"flows":   func(a, b *sumRow) int { return cmp.Compare(b.flows, a.flows) },
		"bits":    func(a, b *sumRow) int { return cmp.Compare(b.all.rates.Bits, a.all.rates.Bits) },
	}[q.Sort]
	if q.Of == api.SumsOfRates && q.Sort == "packets" {
		by = func(a, b *sumRow) int { return cmp.Compare(b.all.rates.Packets, a.all.rates.Packets) }
	}
	return by, nil
}

// newSums checks a query, and makes the sums for it.
func (r *Runner) newSums(q *api.FlowSumQuery) (*sums, error) {
	order, err := sumOrder(q)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(api.FlowSumKeys(), q.By):
		return nil, invalid("by %q: it is one of %v", q.By, api.FlowSumKeys())
	case q.Limit < 1 || q.Limit > api.MaxFlowTop:
		return nil, invalid("limit %d: it is 1–%d", q.Limit, api.MaxFlowTop)
	case q.Of != api.SumsOfFlows && q.Interval < r.o.Every:
		return nil, invalid("interval %v: it is %v or more", q.Interval, r.o.Every)
	}
	return &sums{by: q.By, words: r.words, names: readServices(), order: order, rates: q.Of == api.SumsOfRates,
		most: mostGroups}, nil
}

// begin forgets what was added.
func (s *sums) begin(o *once) {
	s.once, s.groups, s.out = o, map[group]*sumRow{}, api.FlowSums{By: s.by}
}

// add adds a flow that the filter selects.
func (s *sums) add(f *meter.Flow) {
	part, here := s.once.part(f)
	if !here {
		return
	}
	if s.rates { // of the interval alone
		part.FlowCounts = api.FlowCounts{}
	}
	t := sumRow{all: amount{s.out.Total.FlowCounts, s.out.Total.Rates}, flows: s.out.Total.Flows}
	t.add(part, false)
	s.out.Total.FlowCounts, s.out.Total.Rates, s.out.Total.Flows = t.all.FlowCounts, t.all.rates, t.flows
	for _, in := range s.groupsOf(f) {
		s.count(in.of, part, in.back)
	}
	if len(s.groups) > s.most {
		s.out.Crowded = true
		s.keep(s.most / 2)
	}
}

func (s *sums) count(of group, part amount, back bool) {
	row := s.groups[of]
	if row == nil {
		row = &sumRow{of: of}
		s.groups[of] = row
	}
	row.add(part, back)
}

// sorted are the rows in the requested order; equal rows are in the order of their names.
func (s *sums) sorted() []*sumRow {
	rows := make([]*sumRow, 0, len(s.groups))
	for _, row := range s.groups {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *sumRow) int {
		return cmp.Or(s.order(a, b), cmp.Compare(a.of.name, b.of.name), a.of.end.compare(b.of.end),
			a.of.other.compare(b.of.other), a.of.segment.compare(b.of.segment))
	})
	return rows
}

// keep leaves the first n groups; the others are added to the rest.
func (s *sums) keep(n int) (first []*sumRow) {
	rows := s.sorted()
	n = min(n, len(rows))
	rest := &s.out.Rest
	for _, row := range rows[n:] {
		delete(s.groups, row.of)
		rest.Groups++
		rest.Flows += row.flows
		rest.FlowCounts, rest.Back = plus(rest.FlowCounts, row.all.FlowCounts), plus(rest.Back, row.back)
		rest.Rates.Packets, rest.Rates.Bits = rest.Rates.Packets+row.all.rates.Packets, rest.Rates.Bits+
			row.all.rates.Bits
	}
	return rows[:n]
}

// end is the result, with the first n rows.
func (s *sums) end(n int) api.FlowSums {
	out := &s.out
	out.Rows = []api.FlowSum{}
	for _, row := range s.keep(n) {
		out.Rows = append(out.Rows, s.row(row))
	}
	share := func(r *api.FlowSum) {
		switch all := &out.Total; {
		case s.rates && all.Rates.Bits > 0:
			r.Share = r.Rates.Bits / all.Rates.Bits
		case !s.rates && all.FrameBytes > 0:
			r.Share = float64(r.FrameBytes) / float64(all.FrameBytes)
		}
	}
	for i := range out.Rows {
		share(&out.Rows[i])
	}
	share(&out.Rest)
	share(&out.Total)
	out.Rest.Name, out.Total.Name, out.Time = "others", "total", time.Now()
	if !s.rates {
		out.Rest.Rates, out.Total.Rates = api.FlowRates{}, api.FlowRates{}
		for i := range out.Rows {
			out.Rows[i].Rates = api.FlowRates{}
		}
	}
	return *out
}

// Sums calls emit with sums: once, or after every interval.
func (r *Runner) Sums(ctx context.Context, q api.FlowSumQuery, emit func(api.FlowSums) error) error {
	only, err := newMatcher(q.FlowFilter)
	if err != nil {
		return err
	}
	s, err := r.newSums(&q)
	if err != nil {
		return err
	}
	switch q.Of {
	case api.SumsOfFlows:
		return r.sumFlows(s, only, q.Limit, emit)
	case api.SumsOfRates:
		return r.sumRates(ctx, s, &q, emit)
	case api.SumsOfRecords:
		return r.sumRecords(ctx, s, only, &q, emit)
	}
	return invalid("of %q: it is %s, %s or %s", q.Of, api.SumsOfFlows, api.SumsOfRates, api.SumsOfRecords)
}

func (r *Runner) sumFlows(s *sums, only *matcher, limit int, emit func(api.FlowSums) error) error {
	m, metered := r.opened()
	points := pointsOf(m)
	note, err := r.asked(only, points)
	if err != nil {
		return err
	}
	s.begin(r.once(only, points))
	if m != nil {
		m.Flows(func(f *meter.Flow) bool {
			if only.match(&f.Point, &f.Key) {
				s.add(f)
			}
			return true
		})
	}
	out := s.end(limit)
	out.Metered, out.Note, out.SamplingRate = metered, note, r.samplingRate(only)
	return emit(out)
}

// sumRates adds up the traffic between two samples, like Top.
func (r *Runner) sumRates(ctx context.Context, s *sums, q *api.FlowSumQuery, emit func(api.FlowSums) error) error {
	only, err := newMatcher(q.FlowFilter)
	if err != nil {
		return err
	}
	s.begin(r.once(only, nil))
	each := func(points flow.Points) func(*meter.Flow) {
		s.begin(r.once(only, points))
		return s.add
	}
	top := api.FlowTopQuery{FlowFilter: q.FlowFilter, Sort: q.Sort, Limit: 1, Interval: q.Interval}
	return r.top(ctx, top, each, func(t api.FlowTop) error {
		out := s.end(q.Limit)
		out.Metered, out.Note, out.SamplingRate, out.Time = t.Metered, t.Note, t.SamplingRate, t.Time
		s.begin(s.once) // a view without a sample has nothing
		return emit(out)
	})
}

// sumRecords adds up the records made in an interval: what was counted since the previous records.
func (r *Runner) sumRecords(ctx context.Context, s *sums, only *matcher, q *api.FlowSumQuery,
	emit func(api.FlowSums) error) error {
	m, err := r.awaitMeter(ctx)
	if m == nil {
		return err
	}
	told := m.Subscribe(watched)
	defer told.Close()
	note, err := r.asked(only, m.Points())
	if err != nil {
		return err
	}
	s.begin(r.once(only, m.Points()))
	due := time.NewTicker(q.Interval)
	defer due.Stop()
	var lost uint64
	for {
		select {
		case t := <-told.Records():
			s.records(t, only)
		case <-due.C:
			_, metered := r.opened()
			if now, err := r.asked(only, m.Points()); err == nil { // a port that has gone meanwhile is no error
				note = now
			}
			out := s.end(q.Limit)
			out.Metered, out.Note, out.SamplingRate = metered, note, r.samplingRate(only)
			if n := told.Lost(); n > lost {
				out.Missed, lost = n-lost, n
			}
			s.begin(r.once(only, m.Points()))
			if err := emit(out); err != nil {
				return err
			}
		case <-r.done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// records adds records, each direction of a biflow as its own flow.
func (s *sums) records(t meter.Told, only *matcher) {
	s.once.points = t.Points
	for i := range t.Records {
		rec := &t.Records[i]
		at := t.Points[rec.Key.Point]
		if !only.match(&at, &rec.Key) {
			continue
		}
		f := meter.Flow{Switch: t.Switch, Point: at, Key: rec.Key, Start: rec.Start, Total: rec.Delta}
		s.add(&f)
		if rec.Reverse != nil {
			f.Key, f.Total = reverse(rec.Key), rec.Reverse.Delta
			s.add(&f)
		}
	}
}

// reverse is the key of the other direction at the same point.
func reverse(k flow.Key) flow.Key {
	k.Direction ^= 1
	k.Src, k.Dst, k.SrcMAC, k.DstMAC = k.Dst, k.Src, k.DstMAC, k.SrcMAC
	if hasPorts(&k) {
		k.SrcPort, k.DstPort = k.DstPort, k.SrcPort
	}
	return k
}
