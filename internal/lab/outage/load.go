package outage

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"heddle/internal/api"
	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
	"heddle/internal/observe/event"
)

const (
	sampleEvery = 50 * time.Millisecond
	// rampTime is how long a stream may take to reach its speed.
	rampTime = 500 * time.Millisecond
	// loadTime is how long the streams may take to fill an uplink for a whole window, with what else the machine does.
	loadTime = 5 * time.Minute
	// queueTime is the longest queue in front of the slow link, as a time.
	queueTime = 20 * time.Millisecond
)

// loaded is the result of the row of load-based teaming, one value per round.
type loaded struct {
	window              time.Duration
	took                []float64 // seconds from the beginning of the load until a port has moved
	before, after, gain []float64 // of both streams together, bits per second
}

// slow limits what a switch sends to the core to the assumed speed of an uplink.
func (s *scene) slow(node string) error {
	return s.nodes[node].Do(func() error {
		l, err := netlink.LinkByName("up")
		if err != nil {
			return err
		}
		const bytesPerSecond = uint64(uplinkSpeed / 8)
		q := &netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
				Parent: netlink.HANDLE_ROOT},
			Rate:   bytesPerSecond,
			Limit:  uint32(float64(bytesPerSecond) * queueTime.Seconds()),
			Buffer: netlink.Xmittime(bytesPerSecond, 128<<10),
		}
		if err := netlink.QdiscReplace(q); err != nil {
			return fmt.Errorf("slow down %s (queueing discipline tbf): %w", node, err)
		}
		return nil
	})
}

// loadRound begins with two senders on one uplink. It ends when one of them has moved and the throughput of both has
// been measured.
func (s *scene) loadRound(ctx context.Context, l *loaded, e teamingEffort) error {
	if err := s.policy(ctx, "originating-port"); err != nil {
		return err
	}
	var pair []string
	err := s.await(ctx, "two senders use one uplink", func(st *api.State) bool {
		first := map[string]string{}
		for _, vm := range senders() {
			uplink := by(st, vm)
			if other, ok := first[uplink]; ok && uplink != "" {
				pair = []string{other, vm}
				return true
			}
			first[uplink] = vm
		}
		return false
	})
	if err != nil {
		return err
	}
	if err := s.policy(ctx, "load-based"); err != nil {
		return err
	}
	if err := s.skipEvents(ctx); err != nil {
		return err
	}
	return s.load(ctx, l, e, pair)
}

// policy activates that policy of the balanced ports.
func (s *scene) policy(ctx context.Context, policy string) error {
	_, err := s.agent.Apply(ctx, api.Apply{File: "teaming.yaml", Content: teamingConfig(policy)})
	return err
}

// load makes both send streams to the outside until one has moved, and for a while after.
func (s *scene) load(ctx context.Context, l *loaded, e teamingEffort, pair []string) error {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	g, gctx := errgroup.WithContext(sending)
	for _, vm := range pair {
		sink, err := traffic.Listen(traffic.Endpoint{NS: s.nodes[outside]},
			traffic.SinkOptions{Kind: traffic.KindStream, At: netip.AddrPortFrom(address(outside), 0)})
		if err != nil {
			return err
		}
		g.Go(func() error {
			_, err := traffic.Send(gctx, traffic.Endpoint{NS: s.nodes[vm]}, traffic.Load{Kind: traffic.KindStream},
				sink.Addr())
			_, sinkErr := sink.Finish()
			return errors.Join(err, sinkErr)
		})
	}
	began := time.Now()
	g.Go(func() error {
		defer stop()
		return s.watchLoad(gctx, l, e, began)
	})
	return g.Wait()
}

// watchLoad measures what arrives, before and after a port has moved.
func (s *scene) watchLoad(ctx context.Context, l *loaded, e teamingEffort, began time.Time) error {
	samples := make(chan error, 1)
	var meter meter
	sampling, enough := context.WithCancel(ctx)
	defer enough()
	go func() { samples <- s.sample(sampling, &meter) }()
	patience, cancel := context.WithTimeout(ctx, 3*e.window+loadTime)
	defer cancel()
	_, err := s.told(patience, func(x event.Event) bool {
		return x.Kind == event.Failover && x.Cause == event.LoadBalanced
	})
	moved := time.Now()
	if err == nil {
		select {
		case <-time.After(rampTime + e.after):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	enough()
	if err := errors.Join(err, <-samples); err != nil {
		return err
	}
	before, after := meter.rate(began.Add(rampTime), moved), meter.rate(moved.Add(rampTime),
		moved.Add(rampTime+e.after))
	l.took = append(l.took, moved.Sub(began).Seconds())
	l.before, l.after, l.gain = append(l.before, before), append(l.after, after), append(l.gain, after/before)
	return nil
}

// meter is how much had arrived at some times.
type meter struct {
	at    []time.Time
	bytes []uint64
}

// sample reads what has arrived outside, over and over until the context ends.
func (s *scene) sample(ctx context.Context, m *meter) error {
	return s.nodes[outside].Do(func() error {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			m.at, m.bytes = append(m.at, time.Now()), append(m.bytes, l.Attrs().Statistics.RxBytes)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// rate is what arrived between two times, bits per second; 0 when fewer than two samples are from between.
func (m *meter) rate(from, to time.Time) float64 {
	first, last := -1, -1
	for i, at := range m.at {
		if at.Before(from) || at.After(to) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first == last {
		return 0
	}
	return 8 * float64(m.bytes[last]-m.bytes[first]) / m.at[last].Sub(m.at[first]).Seconds()
}

// report adds the row and its budgets.
func (l *loaded) report(r *report.Report) {
	r.Rows = append(r.Rows, teamingRow(loadRow, "two streams on one uplink", map[string]any{
		"moved_s": spread(l.took), "before_bps": spread(l.before), "after_bps": spread(l.after), "gain": spread(l.gain),
	}))
	r.Budgets = append(r.Budgets,
		report.Hold(loadRow+": a port has moved", report.Summarise(l.took).Median, report.Seconds, report.AtMost,
			LoadWindows*l.window.Seconds()+1),
		report.Hold(loadRow+": throughput after ÷ before", report.Summarise(l.gain).Median, report.Ratio,
			report.AtLeast, LoadGain))
	r.Notes = append(r.Notes, fmt.Sprintf(
		"Load-based: two guests fill one uplink of %s, the other is idle; the window is %v. Before and after: what "+
			"both streams bring to their receiver.",
		report.BitsPerSecond.Format(uplinkSpeed), l.window))
}
