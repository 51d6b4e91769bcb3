package metering

import (
	"context"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
)

// overdue is how much longer than its interval to wait for a view when nothing is drained from the kernel.
const overdue = 3 * time.Second

// Top calls emit after every interval with the flows that have the highest rates.
func (r *Runner) Top(ctx context.Context, q api.FlowTopQuery, emit func(api.FlowTop) error) error {
	return r.top(ctx, q, nil, emit)
}

// top is Top, with the each of a topView.
func (r *Runner) top(ctx context.Context, q api.FlowTopQuery, each func(flow.Points) func(*meter.Flow),
	emit func(api.FlowTop) error) error {
	only, err := newMatcher(q.FlowFilter)
	if err != nil {
		return err
	}
	by, ok := map[string]meter.Order{"bits": meter.ByBits, "packets": meter.ByPackets}[q.Sort]
	switch {
	case !ok:
		return invalid("sort %q: it is bits or packets", q.Sort)
	case q.Limit < 1 || q.Limit > api.MaxFlowTop:
		return invalid("limit %d: it is 1–%d", q.Limit, api.MaxFlowTop)
	case q.Interval < r.o.Every:
		return invalid("interval %v: it is %v or more", q.Interval, r.o.Every)
	}
	v := &topView{r: r, q: q, by: by, only: only, each: each}
	tick := time.NewTicker(max(r.o.Every/20, time.Millisecond))
	defer tick.Stop()
	for {
		if out, err := v.look(time.Now()); err != nil {
			return err
		} else if out != nil {
			if err := emit(*out); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-r.done:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// topView makes views of the flows with the highest rates.
type topView struct {
	r    *Runner
	q    api.FlowTopQuery
	by   meter.Order
	only *matcher

	// each returns, at each sample, a function to call with the flows that had a packet; nil for none
	each func(points flow.Points) func(*meter.Flow)

	sampler *meter.Sampler // nil before the first sample, which has no rates
	at      time.Duration  // when the counts in the last sample were drained
	last    time.Time      // when the last sample, or the last view without one, was made; zero before the first
}

// look makes the next view; nil while it is not due. Counts come in steps, when they are drained from the kernel, so a
// view is made after such a step: a view between two steps, at times of its own, would show nothing at first, and twice
// as much later.
func (v *topView) look(now time.Time) (*api.FlowTop, error) {
	m, metered := v.r.opened()
	note, err := v.r.asked(v.only, pointsOf(m))
	if err != nil && v.last.IsZero() { // it is no error if a port is removed later
		return nil, err
	}
	out := &api.FlowTop{Time: now, Flows: []api.FlowRate{}, Metered: metered, Note: note,
		SamplingRate: v.r.samplingRate(v.only)}
	if v.last.IsZero() {
		v.last = now
	}
	// Until the first drain has ended, a part of its counts may be in the table already: such a sample would be no
	// valid starting point.
	if v.sampler == nil && m != nil && m.Drained() > 0 {
		v.sampler, v.last = m.NewSampler(), now
		v.sample(m, &api.FlowTop{})
		return nil, nil
	}
	if !v.due(m, metered, now.Sub(v.last)) {
		return nil, nil
	}
	v.last = now
	if v.sampler != nil && m.Drained() > v.at {
		v.sample(m, out)
	}
	return out, nil
}

// due reports whether the next view is due; waited is the time since the previous one.
func (v *topView) due(m *meter.Meter, metered bool, waited time.Duration) bool {
	if m == nil || !metered {
		return waited >= v.q.Interval
	}
	return m.Drained()-v.at >= v.q.Interval-m.Round()/2 || waited >= v.q.Interval+overdue
}

// sample takes a sample of everything drained so far.
func (v *topView) sample(m *meter.Meter, out *api.FlowTop) {
	v.at = m.Drained()
	points := m.Points()
	sum := v.r.once(v.only, points)
	each := func(*meter.Flow) {}
	if v.each != nil {
		each = v.each(points)
	}
	var top []meter.Flow
	top, out.Matching = v.sampler.Top(meter.Instant{Up: v.at}, v.q.Limit, v.by, func(f *meter.Flow) bool {
		if !v.only.match(&f.Point, &f.Key) {
			return false
		}
		if f.PacketRate > 0 {
			out.Active++
			sum.add(f)
			each(f)
		}
		return true
	})
	out.Sum = sum.sum
	for _, f := range top {
		if f.PacketRate > 0 {
			out.Flows = append(out.Flows, api.FlowRate{Flow: v.r.words.flow(f.Point, points, &f.Key, &f.Total),
				Rates: api.FlowRates{Packets: f.PacketRate, Bits: f.BitRate}})
		}
	}
}
