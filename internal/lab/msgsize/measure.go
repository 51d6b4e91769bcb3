package msgsize

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/lab/traffic"
)

// Measured is the result of the experiment.
type Measured struct {
	effort  effort
	samples map[cell][]sample
	// passed is what the firewalls together let through, in packets as the kernel counts them: with offloads these
	// have up to 64 KiB.
	passed uint64
}

// sample is one round of a cell.
type sample struct {
	bitsPerSecond float64
	// perSegment is the mean payload of a segment in bytes.
	perSegment  float64
	retransmits uint64
	// cpu is seconds of the two ends' threads per 10⁹ bytes; forwarding on the way runs in the sender's thread.
	cpu float64
}

// pair is the two ends of a setting. As with VMs, the scheduler chooses their CPUs.
func (r *rig) pair(s setting) (p traffic.Pair, err error) {
	n := r.index[s.guests]
	server, address := near, insideAddress(n, nearHost)
	if s.path == firewall {
		server, address = far, outsideAddress(n, farHost)
	}
	p.Addr = netip.MustParseAddr(address)
	if p.Client.NS, err = r.namespace(s.guests, client); err != nil {
		return p, err
	}
	p.Server.NS, err = r.namespace(s.guests, server)
	return p, err
}

// measure makes the rounds. Each begins with another cell, so that no cell always follows the same one.
func (r *rig) measure(ctx context.Context, progress func(string)) (*Measured, error) {
	m := &Measured{effort: r.effort, samples: map[cell][]sample{}}
	all := r.cells()
	carried := map[guests]uint64{} // payload through the firewalls
	for round := range r.rounds {
		from := round * len(all) / r.rounds / 2 * 2 // the two paths stay together
		for i := range all {
			c := all[(from+i)%len(all)]
			progress(fmt.Sprintf("round %d of %d, %d of %d: %d bytes, %s", round+1, r.rounds, i+1, len(all), c.size,
				c.setting))
			s, bytes, err := r.one(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%d bytes, %s: %w", c.size, c.setting, err)
			}
			m.samples[c] = append(m.samples[c], s)
			if c.path == firewall {
				carried[c.guests] += bytes
			}
		}
	}
	for _, g := range r.sets() {
		if err := m.account(r, g, carried[g]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// gather is how many bytes wake the receiver. An adapter that combines interrupts spares the machine a wake-up of
// another virtual CPU for every small segment; here the wake-ups would be most of what is measured.
const gather = 16 << 10

// errStarved says that an interval measured nothing, because the machine was busy with something else.
var errStarved = errors.New("nothing was carried")

// tries is how often a cell is measured until an interval measures something.
const tries = 3

// one measures a cell once; an interval that was starved is measured again.
func (r *rig) one(ctx context.Context, c cell) (s sample, carried uint64, err error) {
	return again(func() (sample, uint64, error) { return r.interval(ctx, c) }, r.duration)
}

// again calls measure until an interval has measured something.
func again(measure func() (sample, uint64, error), duration time.Duration) (s sample, carried uint64, err error) {
	for range tries {
		if s, carried, err = measure(); !errors.Is(err, errStarved) {
			return s, carried, err
		}
	}
	return s, 0, fmt.Errorf("%w in any of %d intervals of %v", err, tries, duration)
}

// interval measures a cell for one interval.
func (r *rig) interval(ctx context.Context, c cell) (s sample, carried uint64, err error) {
	p, err := r.pair(c.setting)
	if err != nil {
		return s, 0, err
	}
	res, err := r.ends.Measure(ctx, p, traffic.Load{Kind: traffic.KindStream, Size: c.size, Nagle: true, Gather: gather,
		Warmup: r.warmup, Duration: r.duration})
	if err != nil {
		return s, 0, err
	}
	if res.Stream.Bytes == 0 || res.Stream.Sent == 0 || res.Stream.Segments == 0 || res.Sink.Bytes == 0 {
		return s, 0, errStarved
	}
	s = sample{
		bitsPerSecond: res.Stream.BitsPerSecond, perSegment: float64(res.Stream.Sent) / float64(res.Stream.Segments),
		retransmits: res.Stream.Retransmits,
		cpu: 1e9 * (res.Stream.CPUSeconds/float64(res.Stream.Bytes) +
			res.Sink.CPUSeconds/float64(res.Sink.Bytes)),
	}
	return s, res.Stream.Bytes, nil
}

// account makes sure that what was measured through a firewall did pass its rules.
func (m *Measured) account(r *rig, g guests, carried uint64) error {
	fw, err := r.namespace(g, filter)
	if err != nil {
		return err
	}
	now, err := counters(fw)
	if err != nil {
		return err
	}
	if passed := now["established"].Bytes; passed < carried {
		return fmt.Errorf("the firewall with %s let %d bytes pass, and %d are said to have gone through it", g, passed,
			carried)
	}
	m.passed += now["established"].Packets
	return nil
}

// of reads one number from each round of a cell; empty when it was not measured.
func (m *Measured) of(c cell, read func(sample) float64) []float64 {
	var all []float64
	for _, s := range m.samples[c] {
		all = append(all, read(s))
	}
	return all
}

func (m *Measured) rates(c cell) []float64 {
	return m.of(c, func(s sample) float64 { return s.bitsPerSecond })
}
