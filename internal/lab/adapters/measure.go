package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"heddle/internal/lab/traffic"
)

// measure measures every setting once in each round, in turns, so that a disturbance of the machine is not one
// setting's alone.
func (r *rig) measure(ctx context.Context, progress func(string)) (*measured, error) {
	m := &measured{effort: r.effort, samples: map[setting][2][]sample{}, fixed: map[string][]string{},
		silent: map[silence]int{}}
	for round := range r.rounds {
		for _, mtu := range r.mtus {
			for _, on := range []bool{true, false} {
				for _, g := range r.guests {
					s := setting{g.name, on, mtu}
					progress(fmt.Sprintf("round %d of %d: %s", round+1, r.rounds, s))
					if err := r.both(ctx, m, g, s); err != nil {
						return nil, fmt.Errorf("%s: %w", s, err)
					}
				}
			}
		}
	}
	if len(r.guests) > 0 {
		m.kernel = r.guests[0].Release()
	}
	return m, nil
}

// both sets the guest up and measures both directions.
func (r *rig) both(ctx context.Context, m *measured, g *guest, s setting) error {
	fixed, err := g.set(ctx, s)
	if err != nil {
		return err
	}
	if !s.offloads {
		m.fixed[g.name] = fixed
	}
	got := m.samples[s]
	for _, d := range []direction{sends, receives} {
		one, err := r.one(ctx, g, d)
		if errors.Is(err, errStarved) { // an emulated adapter may not work at all with a setting: that is a result
			m.silent[silence{s, d}]++
			continue
		}
		if err != nil {
			return err
		}
		got[d] = append(got[d], one)
	}
	m.samples[s] = got
	return nil
}

// set gives the guest's adapter its MTU and offloads, and waits until the peer is reached again: some drivers reset the
// adapter for a change. fixed are the offloads that stay on.
func (g *guest) set(ctx context.Context, s setting) (fixed []string, err error) {
	out, err := g.do(ctx, "ip link set eth0 mtu %d && %s lab offloads eth0 %s", s.mtu, guestProgram, onOff(s.offloads))
	if err != nil {
		return nil, err
	}
	_, err = g.do(ctx, "until ping -c 1 -W 1 %s >/dev/null; do :; done", peerAddress())
	return strings.Fields(out), err
}

// errStarved says that an interval measured nothing.
var errStarved = errors.New("nothing was carried")

// tries is how often a stream is measured until an interval measures something.
const tries = 3

func (r *rig) one(ctx context.Context, g *guest, d direction) (s sample, err error) {
	for range tries {
		if s, err = r.interval(ctx, g, d); !errors.Is(err, errStarved) {
			return s, err
		}
	}
	return s, err
}

// interval measures one stream.
func (r *rig) interval(ctx context.Context, g *guest, d direction) (s sample, err error) {
	from := g.name
	if d == receives {
		from = peerName
	}
	before, err := r.taken(ctx, from)
	if err != nil {
		return s, err
	}
	stream, err := r.stream(ctx, g, d)
	if err != nil {
		return s, err
	}
	after, err := r.taken(ctx, from)
	if err != nil {
		return s, err
	}
	if stream.Bytes == 0 || after.frames == before.frames {
		return s, errStarved
	}
	return sample{bitsPerSecond: stream.BitsPerSecond,
		perFrame: float64(after.bytes-before.bytes) / float64(after.frames-before.frames)}, nil
}

func (r *rig) stream(ctx context.Context, g *guest, d direction) (*traffic.Stream, error) {
	if d == receives {
		res, err := traffic.Send(ctx, traffic.Endpoint{NS: r.peer}, traffic.Load{Kind: traffic.KindStream,
			Warmup: r.warmup, Duration: r.duration}, netip.AddrPortFrom(g.addr, sinkPort))
		return res.Stream, err
	}
	out, err := g.do(ctx, "%s traffic stream --to %s --warmup %v --duration %v", guestProgram,
		netip.AddrPortFrom(peerAddress(), sinkPort), r.warmup, r.duration)
	if err != nil {
		return nil, err
	}
	var res traffic.Result
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.Stream == nil {
		return nil, fmt.Errorf("the sender printed %q: %w", out, err)
	}
	return res.Stream, nil
}

// taken is how many unicast frames and bytes the switch has taken from a port.
type taken struct{ frames, bytes uint64 }

func (r *rig) taken(ctx context.Context, port string) (n taken, err error) {
	all, err := r.lab.Agent(host).Stats(ctx)
	if err != nil {
		return n, err
	}
	for i := range all {
		if all[i].Name != port {
			continue
		}
		for _, c := range all[i].Counters {
			switch c.Name {
			case "packetsInUnicast":
				n.frames = c.Value
			case "bytesInUnicast":
				n.bytes = c.Value
			}
		}
		return n, nil
	}
	return n, fmt.Errorf("there are no counters of port %s", port)
}
