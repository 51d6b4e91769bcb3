package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/traffic"
)

// around is how long the stream runs before and after a change.
const around = 150 * time.Millisecond

// restTime limits how long the announcements of a change may take.
const restTime = time.Minute

// errStarved says that a round measured nothing, because the machine was busy with something else all the while.
var errStarved = errors.New("the watcher saw nothing of the stream before it left: this measures nothing")

// Measured is the result of one row, one value per round.
type Measured struct {
	Row row
	// InForce is the time from reading the command's input until the change was active, Returned until the command
	// returned; seconds.
	InForce, Returned []float64
	// Gap is the longest silence of the stream, in seconds.
	Gap []float64
	// LastInOld is when the last frame reached the old segment, in seconds after the change; only if the stream
	// leaves it.
	LastInOld []float64
	// Sums over all rounds: packets, and what happened to them; frames that reached the old segment too late; link
	// changes.
	Sent, Lost, Duplicated, Reordered, Leaked uint64
	Flaps                                     int
	// Starved is for how many changes the watcher saw nothing of the stream.
	Starved int
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
			for _, there := range []bool{true, false} {
				if err := all[i].take(r.round(ctx, &all[i], there), r.rounds); err != nil {
					return nil, fmt.Errorf("%s: %w", w.name, err)
				}
			}
		}
	}
	return all, nil
}

// take counts a starved round, and ends the experiment if most of the row's would be starved: there and back are two
// per round.
func (m *Measured) take(err error, rounds int) error {
	if !errors.Is(err, errStarved) {
		return err
	}
	if m.Starved++; m.Starved > rounds {
		return fmt.Errorf("%d of %d changes: %w", m.Starved, 2*rounds, err)
	}
	return nil
}

// round makes one change under the stream.
func (r *rig) round(ctx context.Context, m *Measured, there bool) (err error) {
	change, old := m.Row.back, newVLAN
	if there {
		change, old = m.Row.there, oldVLAN
	}
	seen, err := r.watchers[old].seen()
	if err != nil {
		return err
	}
	links := make([]*flaps, 0, 2)
	for _, vm := range []string{sender, receiver} {
		f, err := watchLink(r.ns[vm])
		if err != nil {
			return err
		}
		links = append(links, f)
	}
	if err := r.awaitRest(ctx); err != nil {
		return err
	}
	var out *api.Applied
	var took time.Duration
	p, err := r.stream(ctx, r.rate, func() error {
		if err := pause(ctx, around); err != nil {
			return err
		}
		began := time.Now()
		var err error
		if out, err = change(ctx, r); err != nil {
			return err
		}
		took = time.Since(began)
		return pause(ctx, around)
	})
	for _, f := range links {
		m.Flaps += f.stop()
	}
	if err != nil {
		return err
	}
	m.add(p, took)
	if out.ActiveAt == nil {
		if !m.Row.quiet {
			return errors.New("the change was active at no instant: nothing was changed")
		}
		return nil
	}
	m.InForce = append(m.InForce, out.ActiveAfterSeconds)
	if !m.Row.leaves {
		return nil
	}
	arrivals, err := r.watchers[old].since(seen)
	if err != nil {
		return err
	}
	return m.leaks(arrivals, out.ActiveAt.Before)
}

// awaitRest waits until the agent has announced what the previous round changed: a thousand ports take seconds, and
// each of those broadcasts comes back by the other uplink for all of them, which would be measured with the next
// change.
func (r *rig) awaitRest(ctx context.Context) error {
	for deadline := time.Now().Add(restTime); ; {
		state, err := r.agent.State(ctx)
		if err != nil {
			return err
		}
		if state.Agent.Announcing == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the agent still has %d frames to announce after %v", state.Agent.Announcing, restTime)
		}
		if err := pause(ctx, around); err != nil {
			return err
		}
	}
}

func (m *Measured) add(p traffic.Received, took time.Duration) {
	m.Returned = append(m.Returned, took.Seconds())
	m.Gap = append(m.Gap, p.LongestGap)
	m.Sent += p.Sent
	m.Lost += p.Lost
	m.Duplicated += p.Duplicated
	m.Reordered += p.Reordered
}

// leaks counts the frames that reached the old segment later than is allowed after the change, in nanoseconds of
// CLOCK_MONOTONIC.
func (m *Measured) leaks(arrivals []int64, changed int64) error {
	if len(arrivals) == 0 || arrivals[0] > changed {
		return errStarved
	}
	for _, at := range arrivals {
		if at > changed+int64(leakAfter) {
			m.Leaked++
		}
	}
	m.LastInOld = append(m.LastInOld, float64(arrivals[len(arrivals)-1]-changed)/1e9)
	return nil
}

// stream sends numbered packets while do runs, and returns what happened to them.
func (r *rig) stream(ctx context.Context, rate float64, do func() error) (traffic.Received, error) {
	sink, err := traffic.Listen(traffic.Endpoint{NS: r.ns[receiver]}, traffic.SinkOptions{
		Kind: traffic.KindUDP, At: netip.AddrPortFrom(netip.MustParseAddr(receiverAddress), 0)})
	if err != nil {
		return traffic.Received{}, err
	}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan error, 1)
	go func() {
		_, err := traffic.Send(sending, traffic.Endpoint{NS: r.ns[sender]},
			traffic.Load{Kind: traffic.KindUDP, Rate: rate}, sink.Addr())
		sent <- err
	}()
	err = do()
	stop()
	err = errors.Join(err, <-sent)
	res, errSink := sink.Finish()
	if err := errors.Join(err, errSink, ctx.Err()); err != nil {
		return traffic.Received{}, err
	}
	return *res.Packets, nil
}
