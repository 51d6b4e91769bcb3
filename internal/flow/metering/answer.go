package metering

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// opened is the meter and whether anything is metered; the meter is nil before flows were first metered.
func (r *Runner) opened() (m *meter.Meter, metered bool) {
	for _, w := range r.demands() {
		metered = metered || len(w.metered) > 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meter, metered
}

// Flows are the first of the present flows, in the requested order. Their counts are as old as the last drain: a second
// at most.
func (r *Runner) Flows(q api.FlowQuery) (*api.FlowList, error) {
	only, err := newMatcher(q.FlowFilter)
	if err != nil {
		return nil, err
	}
	order, err := orderOf(q.Sort)
	if err != nil {
		return nil, err
	}
	if q.Limit < 1 || q.Limit > api.MaxFlowList {
		return nil, invalid("limit %d: it is 1–%d", q.Limit, api.MaxFlowList)
	}
	m, metered := r.opened()
	out := &api.FlowList{Flows: []api.Flow{}, Metered: metered, SamplingRate: r.samplingRate(only)}
	if out.Note, err = r.asked(only, pointsOf(m)); err != nil || m == nil {
		return out, err
	}
	first := best[meter.Flow]{n: q.Limit, before: order}
	m.Flows(func(f *meter.Flow) bool {
		out.Kept++
		if only.match(&f.Point, &f.Key) {
			out.Total++
			first.add(*f)
		}
		return true
	})
	points := m.Points()
	for _, f := range first.all() {
		out.Flows = append(out.Flows, r.words.flow(f.Point, points, &f.Key, &f.Total))
	}
	return out, nil
}

// pointsOf are the points whose flows are stored; m may be nil.
func pointsOf(m *meter.Meter) flow.Points {
	if m == nil {
		return nil
	}
	return m.Points()
}

func orderOf(sort string) (func(a, b meter.Flow) int, error) {
	switch sort {
	case "bytes":
		return func(a, b meter.Flow) int { return cmp.Compare(b.Total.Bytes, a.Total.Bytes) }, nil
	case "packets":
		return func(a, b meter.Flow) int { return cmp.Compare(b.Total.Packets, a.Total.Packets) }, nil
	case "last":
		return func(a, b meter.Flow) int { return cmp.Compare(b.Total.Last, a.Total.Last) }, nil
	}
	return nil, invalid("sort %q: it is bytes, packets or last", sort)
}

// best are the first n of what is added, in an order.
type best[T any] struct {
	n      int
	before func(a, b T) int
	list   []T
}

func (b *best[T]) add(v T) {
	if b.list = append(b.list, v); len(b.list) >= 2*b.n+64 {
		b.cut()
	}
}

func (b *best[T]) cut() {
	slices.SortFunc(b.list, b.before)
	b.list = b.list[:min(b.n, len(b.list))]
}

func (b *best[T]) all() []T {
	b.cut()
	return b.list
}

// watched is how many portions of records are buffered for a reader.
const watched = 64

// Records calls emit with the records as they are made. The first call has none: from then on no record is missed.
func (r *Runner) Records(ctx context.Context, f api.FlowFilter, emit func(api.FlowRecords) error) error {
	only, err := newMatcher(f)
	if err != nil {
		return err
	}
	m, err := r.awaitMeter(ctx)
	if m == nil {
		return err
	}
	s := m.Subscribe(watched)
	defer s.Close()
	note, err := r.asked(only, m.Points())
	if err != nil {
		return err
	}
	if err := emit(api.FlowRecords{Records: []api.FlowRecord{}, Note: note}); err != nil {
		return err
	}
	look := time.NewTicker(r.o.Every)
	defer look.Stop()
	var lost uint64
	for {
		select {
		case <-look.C: // a port that has gone meanwhile is no error
			if now, err := r.asked(only, m.Points()); err == nil && !now.Same(note) {
				note = now
				if err := emit(api.FlowRecords{Records: []api.FlowRecord{}, Note: note}); err != nil {
					return err
				}
			}
		case told := <-s.Records():
			out := api.FlowRecords{Records: r.recordsOf(told, only)}
			if n := s.Lost(); n > lost {
				out.Missed, lost = n-lost, n
			}
			if len(out.Records) == 0 && out.Missed == 0 {
				continue
			}
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

func (r *Runner) recordsOf(told meter.Told, only *matcher) []api.FlowRecord {
	list := []api.FlowRecord{}
	for i := range told.Records {
		rec := &told.Records[i]
		at := told.Points[rec.Key.Point]
		if only.match(&at, &rec.Key) {
			list = append(list, r.words.record(told.Points, rec))
		}
	}
	return list
}

// awaitMeter waits for the meter, which is opened right after the agent has started; nil when there will be none.
func (r *Runner) awaitMeter(ctx context.Context) (*meter.Meter, error) {
	tick := time.NewTicker(again / 10)
	defer tick.Stop()
	for {
		r.mu.Lock()
		m, failure := r.meter, r.failure
		r.mu.Unlock()
		if m != nil {
			return m, nil
		}
		if failure != nil {
			return nil, fmt.Errorf("flows are not kept: %w", failure)
		}
		select {
		case <-tick.C:
		case <-r.done:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// Status returns the state of metering and export.
func (r *Runner) Status() (*api.FlowStatus, error) {
	wanted := r.demands()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &api.FlowStatus{Switches: []api.FlowSwitch{}}
	if out.Note, _ = r.asked(&matcher{}, nil); r.meter == nil { // a filter that names nothing cannot be wrong
		return out, nil
	}
	losses, err := r.o.Source.Losses()
	if err != nil {
		return nil, fmt.Errorf("read what could not be recorded: %w", err)
	}
	points, statistics := r.meter.Points(), r.meter.Statistics()
	for name, w := range wanted {
		st, k := statistics[name], r.kept[name]
		s := api.FlowSwitch{Switch: name, Metered: len(w.metered), Flows: st.Flows, MaxFlows: w.settings.MaxFlows,
			TableSize: st.FileBytes, SamplingRate: w.settings.SamplingRate, Records: st.Records,
			Counted: sum(st.Folded), InRecords: sum(st.InRecords), Overflow: sum(st.Overflow),
			Excluded:   sum(st.Excluded),
			Collectors: []api.FlowCollector{}, Losses: lossesOf(name, losses, points)}
		export := r.exports[name]
		if k == nil && export == nil && len(s.Losses) == 0 {
			continue
		}
		if r.failure != nil {
			s.Problem, s.ProblemCode = r.failure.Error(), api.MeteringFailed
		}
		if export != nil {
			all, err := export.Status()
			if err != nil {
				s.Problem, s.ProblemCode = err.Error(), api.ExportFailed
			}
			for i := range all {
				if planned(w.settings, &all[i]) { // while nothing is metered the export does not learn of changes
					s.Collectors = append(s.Collectors, collectorOf(&all[i]))
				}
			}
		}
		out.Switches = append(out.Switches, s)
	}
	slices.SortFunc(out.Switches, func(a, b api.FlowSwitch) int { return cmp.Compare(a.Switch, b.Switch) })
	return out, nil
}

// planned reports whether the plan has that collector.
func planned(x plan.IPFIX, s *export.Status) bool {
	c := s.Collector
	return slices.ContainsFunc(x.Collectors, func(p plan.Collector) bool {
		return p.Address == c.Address && p.Port == c.Port && p.Shape == spec.Shape(c.Shape) &&
			transport(p) == cmp.Or(c.Transport, export.UDP)
	})
}

func collectorOf(c *export.Status) api.FlowCollector {
	return api.FlowCollector{Collector: nameOf(c.Collector),
		Transport: string(cmp.Or(c.Collector.Transport, export.UDP)), Shape: string(c.Collector.Shape),
		State: string(c.State), Since: c.Since, Address: c.Remote, Source: c.Local,
		Messages: c.Messages, Records: c.Records, Lost: c.Lost.Records, LostPackets: c.Lost.Packets,
		LostBytes: c.Lost.Bytes, Unshaped: c.Unshaped,
		Waiting: c.Waiting.Records, Unsure: c.Unsure.Records, UnsurePackets: c.Unsure.Packets,
		UnsureBytes: c.Unsure.Bytes, LastError: c.Why,
		LostSince: c.Counted.Since, LastLost: c.Counted.Latest}
}

func sum(s meter.Sum) api.FlowCounts {
	return api.FlowCounts{Packets: s.Packets, Bytes: s.Bytes, FrameBytes: s.FrameBytes}
}

// lossesOf are the losses at ports of the switch, by name.
func lossesOf(sw string, all []flow.Loss, points flow.Points) []api.FlowLoss {
	list := []api.FlowLoss{}
	for _, l := range all {
		if p := points[l.Point]; p.ID.Switch == sw && l.Packets > 0 {
			list = append(list, api.FlowLoss{Port: p.ID.Name, Uplink: p.Uplink,
				FlowCounts: api.FlowCounts{Packets: l.Packets, Bytes: l.Bytes, FrameBytes: l.FrameBytes}})
		}
	}
	slices.SortFunc(list, func(a, b api.FlowLoss) int { return cmp.Compare(a.Port, b.Port) })
	return list
}
