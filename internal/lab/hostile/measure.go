package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/traffic"
)

// side is the effect of one neighbour on the victims, and what happened to its frames; one value per round, for its two
// turns together.
type side struct {
	Throughput []float64 // bits per second
	CPU        []float64 // of both victims, seconds per 10⁹ bytes of the stream
	RTT        []float64 // 99th percentile, seconds
	Sent       []float64 // frames per second
	Passed     []float64 // frames per second of which a copy went to ports
	Busy       []float64 // share of its CPU that the neighbour had, 0–1
}

// turn is one turn beside a neighbour, with the units of side.
type turn struct{ throughput, cpu, rtt, sent, passed, busy float64 }

// add adds the two turns of a round: the mean of each value, so that an even drift over the round is the same for both
// sides.
func (s *side) add(a, b turn) {
	mean := func(to *[]float64, x, y float64) { *to = append(*to, (x+y)/2) }
	mean(&s.Throughput, a.throughput, b.throughput)
	mean(&s.CPU, a.cpu, b.cpu)
	mean(&s.RTT, a.rtt, b.rtt)
	mean(&s.Sent, a.sent, b.sent)
	mean(&s.Passed, a.passed, b.passed)
	mean(&s.Busy, a.busy, b.busy)
}

// Measured is the result of one row.
type Measured struct {
	Row           row
	Hostile, Good side
	// loudest is the highest rate of the hostile neighbour so far, frames per second.
	loudest float64
	// Over is by how many frames the frames with many receivers exceeded what storm control allows, at worst.
	Over int
	// Held is how many addresses the neighbour's port had learned at most, Lost how many entries of others
	// disappeared or moved.
	Held, Lost int
}

func (r *rig) measure(ctx context.Context, rows []row, progress func(string)) ([]Measured, error) {
	all := make([]Measured, len(rows))
	for i, w := range rows {
		all[i].Row = w
	}
	// Rows take turns, so that a temporary disturbance of the machine affects all of them.
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

// order is the order of turns in a round, true for the hostile neighbour: the two in the middle are the same
// neighbour's, and this alternates between rounds. So an even drift is the same for both. The hostile one has the very
// first turn, so that the rate for the other is known.
func order(round int) [4]bool {
	if round%2 == 0 {
		return [4]bool{true, false, false, true}
	}
	return [4]bool{false, true, true, false}
}

// round measures two turns of each neighbour.
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
	var good, hostile []turn
	for i, bad := range order(n) {
		side := &good
		if bad {
			side = &hostile
		}
		t, err := r.one(ctx, m, bad, uint64(2*n+i/2))
		if err != nil {
			return err
		}
		*side = append(*side, t)
		after, err := r.table(ctx)
		if err != nil {
			return err
		}
		m.Held, m.Lost = max(m.Held, after.held), max(m.Lost, before.lost(after))
	}
	m.Good.add(good[0], good[1])
	m.Hostile.add(hostile[0], hostile[1])
	return nil
}

// started is how many frames a flood has sent before its neighbours are measured.
const started = 200

// one measures the victims beside a neighbour. The well-behaved neighbour sends, as far as it can, at the highest rate
// that the hostile one reached, and keeps its CPU as busy.
func (r *rig) one(ctx context.Context, m *Measured, hostile bool, seed uint64) (t turn, err error) {
	flood := traffic.Flood{Kind: m.Row.flood, Device: guestDevice, To: r.to, MinSize: m.Row.minSize,
		MaxSize: m.Row.maxSize, Seed: seed, Busy: true}
	if !hostile {
		flood.Kind, flood.Rate = traffic.WellBehaved, m.loudest
	}
	before, err := r.counters(ctx)
	if err != nil {
		return t, err
	}
	began := time.Now()
	f, err := traffic.StartFlood(traffic.Endpoint{NS: r.ns[neighbour], CPUs: r.loud}, flood)
	if err != nil {
		return t, err
	}
	err = errors.Join(r.victimsNotice(ctx, f, &t), f.Stop())
	took := time.Since(began).Seconds()
	if err != nil {
		return t, err
	}
	after, err := r.counters(ctx)
	if err != nil {
		return t, err
	}
	passed := after.passed() - before.passed()
	t.sent, t.passed, t.busy = float64(f.Sent())/took, float64(passed)/took, f.CPU().Seconds()/took
	if hostile {
		m.loudest = max(m.loudest, t.sent)
	}
	if m.Row.bounded && hostile {
		allowed := stormRate*(took+stormBurst.Seconds()+clockLag) + 1
		m.Over = max(m.Over, int(float64(passed)-allowed))
	}
	return t, nil
}

// clockLag is how far the kernel's clock of ticks, which storm control uses, may be behind real time, in seconds: while
// a hypervisor keeps a virtual CPU from running, it stands still, and afterwards continues from the right time.
const clockLag = 0.2

func (r *rig) victimsNotice(ctx context.Context, f *traffic.Flooding, t *turn) error {
	for f.Sent() < started {
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	pair := traffic.Pair{
		Client: traffic.Endpoint{NS: r.ns[client], CPUs: r.victims}, Server: traffic.Endpoint{NS: r.ns[server],
			CPUs: r.victims},
		Addr: netip.MustParseAddr(serverAddress),
	}
	stream, err := r.load(ctx, pair, traffic.Load{Kind: traffic.KindStream, Warmup: r.warmup, Duration: r.each})
	if err != nil {
		return err
	}
	rr, err := r.load(ctx, pair, traffic.Load{Kind: traffic.KindRR, Warmup: r.warmup, Duration: r.each})
	if err != nil {
		return err
	}
	sender, sink := stream.Stream, stream.Sink
	t.throughput, t.rtt = sender.BitsPerSecond, rr.Transactions.Latency.P99
	// The sink counts from its start, but the sender only in the measured interval: each is divided by what it
	// carried itself.
	t.cpu = 1e9 * (sender.CPUSeconds/float64(sender.Bytes) + sink.CPUSeconds/float64(sink.Bytes))
	return nil
}

// counted is the switch's counts for the neighbour.
type counted struct{ delivered, kept uint64 }

// passed is how many frames went to ports. A frame that storm control kept from them left by the uplink, and also
// counts as delivered.
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
