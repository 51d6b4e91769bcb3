package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/api"
	"heddle/internal/traffic"
)

// side is what the victims noticed of one neighbour, and what became of its frames; one value a round.
type side struct {
	Throughput []float64 // bits per second
	RTT        []float64 // 99th percentile, seconds
	Sent       []float64 // frames per second
	Passed     []float64 // frames per second of which a copy went to ports
}

// Measured is what one row came to.
type Measured struct {
	Row           row
	Hostile, Good side
	// Over is how many frames more went to many than storm control allows, at worst.
	Over int
	// Held is how many addresses the neighbour's port had learned at most, Lost how many entries of others went or moved.
	Held, Lost int
}

func (r *rig) measure(ctx context.Context, rows []row, progress func(string)) ([]Measured, error) {
	all := make([]Measured, len(rows))
	for i, w := range rows {
		all[i].Row = w
	}
	// Rows take turns, so that what disturbs the machine for a while disturbs all of them.
	for n := range r.rounds {
		for i, w := range rows {
			progress(fmt.Sprintf("round %d of %d: %s", n+1, r.rounds, w.name))
			if err := r.round(ctx, &all[i], n); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return all, nil
}

// round measures with both neighbours. The well-behaved one is as loud as the hostile one was; which of the two is first changes
// from round to round, and before the first round the hostile one's loudness is found out.
func (r *rig) round(ctx context.Context, m *Measured, n int) error {
	if err := r.settle(ctx, m.Row.limited); err != nil {
		return err
	}
	if err := r.speak(ctx); err != nil {
		return err
	}
	before, err := r.table(ctx)
	if err != nil {
		return err
	}
	loudness := 0.0
	if n%2 == 1 {
		loudness = m.Hostile.Sent[n-1]
		if err := r.one(ctx, m, &m.Good, traffic.WellBehaved, loudness); err != nil {
			return err
		}
	}
	if err := r.one(ctx, m, &m.Hostile, m.Row.flood, 0); err != nil {
		return err
	}
	after, err := r.table(ctx)
	if err != nil {
		return err
	}
	m.Held, m.Lost = max(m.Held, after.held), max(m.Lost, before.lost(after))
	if n%2 == 0 {
		return r.one(ctx, m, &m.Good, traffic.WellBehaved, m.Hostile.Sent[n])
	}
	return nil
}

// started is how many frames a flood has sent before its neighbours are measured.
const started = 200

// one measures the victims beside a neighbour.
func (r *rig) one(ctx context.Context, m *Measured, s *side, kind traffic.FloodKind, rate float64) (err error) {
	before, err := r.counters(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	f, err := traffic.StartFlood(traffic.Endpoint{NS: r.ns[neighbour], CPUs: r.loud}, traffic.Flood{
		Kind: kind, Device: guestDevice, To: r.to, MinSize: m.Row.minSize, MaxSize: m.Row.maxSize, Rate: rate, Seed: uint64(len(s.Sent))})
	if err != nil {
		return err
	}
	err = errors.Join(r.victimsNotice(ctx, f, s), f.Stop())
	took := time.Since(began).Seconds()
	if err != nil {
		return err
	}
	after, err := r.counters(ctx)
	if err != nil {
		return err
	}
	passed := after.passed() - before.passed()
	s.Sent, s.Passed = append(s.Sent, float64(f.Sent())/took), append(s.Passed, float64(passed)/took)
	if m.Row.bounded && kind != traffic.WellBehaved {
		allowed := stormRate*(took+stormBurst.Seconds()+clockLag) + 1
		m.Over = max(m.Over, int(float64(passed)-allowed))
	}
	return nil
}

// clockLag is how far the kernel's clock of ticks, by which storm control goes, may be behind real time, in seconds: while a
// hypervisor keeps a virtual CPU from running, it stands still, and goes on from the right time afterwards.
const clockLag = 0.2

func (r *rig) victimsNotice(ctx context.Context, f *traffic.Flooding, s *side) error {
	for f.Sent() < started {
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	pair := traffic.Pair{
		Client: traffic.Endpoint{NS: r.ns[client], CPUs: r.victims}, Server: traffic.Endpoint{NS: r.ns[server], CPUs: r.victims},
		Addr: netip.MustParseAddr(serverAddress),
	}
	stream, err := traffic.Measure(ctx, pair, traffic.Load{Kind: traffic.KindStream, Warmup: r.warmup, Duration: r.each})
	if err != nil {
		return err
	}
	rr, err := traffic.Measure(ctx, pair, traffic.Load{Kind: traffic.KindRR, Warmup: r.warmup, Duration: r.each})
	if err != nil {
		return err
	}
	s.Throughput = append(s.Throughput, stream.Stream.BitsPerSecond)
	s.RTT = append(s.RTT, rr.Transactions.Latency.P99)
	return nil
}

// counted is what the switch has counted of the neighbour.
type counted struct{ delivered, kept uint64 }

// passed is how many frames went to ports. A frame that storm control kept from them left by the uplink, and is delivered too.
func (c counted) passed() uint64 { return c.delivered - c.kept }

func (r *rig) counters(ctx context.Context) (c counted, err error) {
	all, err := r.agent.Stats(ctx)
	if err != nil {
		return c, err
	}
	for _, s := range all {
		if s.Name == neighbour {
			c = counted{delivered: extra(s, "delivered"), kept: extra(s, "unknownNotFlooded")}
		}
	}
	return c, nil
}

func extra(s api.Stats, name string) uint64 {
	for _, c := range s.Extra {
		if c.Name == name {
			return c.Value
		}
	}
	return 0
}
