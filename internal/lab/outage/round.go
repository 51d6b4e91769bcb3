package outage

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/api"
	"heddle/internal/lab/traffic"
	"heddle/internal/observe/event"
)

// The packets of a round.
const (
	rate     = 1000.0 // a second, in each direction
	warmup   = 100 * time.Millisecond
	lead     = 250 * time.Millisecond // from the start until something happens, with the warm-up
	duration = 900 * time.Millisecond // of the counted part

	answerTime = 3 * time.Minute
)

// round makes the outage once while packets are counted, and repairs it.
func (s *scene) round(ctx context.Context, m *measured) (err error) {
	if m.row.event == linkUp {
		if err := s.happen(linkDown); err != nil {
			return err
		}
		if err := s.usesAll(ctx, "uplink2"); err != nil {
			return err
		}
	}
	if err := s.answers(ctx, m.row.vm); err != nil {
		return err
	}
	if err := s.skipEvents(ctx); err != nil {
		return err
	}
	if err := s.count(ctx, m, duration); err != nil {
		return err
	}
	if m.row.event == nothing {
		return nil
	}
	moved, err := s.failover(ctx)
	if err != nil {
		return err
	}
	m.ports = max(m.ports, moved.Ports)
	if m.row.event != linkUp { // a return begins at the end of the up-delay, not with a notification
		m.took = append(m.took, moved.TookSeconds)
	}
	for _, fix := range []func() error{func() error { return s.set(host, "eno1", true) }, func() error {
		return s.set(far, "down", true)
	}} {
		if err := fix(); err != nil {
			return err
		}
	}
	return s.usesAll(ctx, "uplink1")
}

// happen makes the event.
func (s *scene) happen(e outageEvent) error {
	switch e {
	case linkDown:
		return s.set(far, "down", false)
	case adminDown:
		return s.set(host, "eno1", false)
	case linkUp:
		return s.set(far, "down", true)
	case networkGone:
		return s.set(far, "up", false)
	}
	return nil
}

// usesAll waits until every port uses that uplink.
func (s *scene) usesAll(ctx context.Context, uplink string) error {
	return s.await(ctx, "every port uses "+uplink, func(st *api.State) bool {
		for _, p := range st.Ports {
			if len(p.Uplinks) != 1 || p.Uplinks[0] != uplink {
				return false
			}
		}
		return true
	})
}

// answers pings from the guest until all requests are answered: then every switch on the way has learned where it is.
func (s *scene) answers(ctx context.Context, vm string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 100 * time.Millisecond, Rate: 50}
	for {
		res, err := traffic.Send(ctx, traffic.Endpoint{NS: s.nodes[vm]}, load, netip.AddrPortFrom(address(outside), 0))
		if err == nil && res.Echo.Answered == res.Echo.Requests {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%s is not answered", vm), err, ctx.Err())
		}
	}
}

// count sends packets for that long in the row's directions and makes the event happen in between.
func (s *scene) count(ctx context.Context, m *measured, length time.Duration) error {
	load := traffic.Load{Kind: traffic.KindUDP, Warmup: warmup, Duration: length, Rate: rate}
	guest, other := traffic.Endpoint{NS: s.nodes[m.row.vm]}, traffic.Endpoint{NS: s.nodes[outside]}
	var out, in traffic.Result
	g, gctx := errgroup.WithContext(ctx)
	if m.row.out {
		g.Go(func() (err error) {
			out, err = traffic.Measure(gctx, traffic.Pair{Client: guest, Server: other, Addr: address(outside)}, load)
			return err
		})
	}
	if m.row.in {
		g.Go(func() (err error) {
			in, err = traffic.Measure(gctx, traffic.Pair{Client: other, Server: guest, Addr: address(m.row.vm)}, load)
			return err
		})
	}
	g.Go(func() error {
		select {
		case <-time.After(lead):
			m.happened = time.Now()
			return s.happen(m.row.event)
		case <-gctx.Done():
			return gctx.Err()
		}
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if m.row.out {
		m.add(&m.out, out)
	}
	if m.row.in {
		m.add(&m.in, in)
	}
	return nil
}

// add adds one direction's result. If even the end mark did not arrive, the interruption lasted until then.
func (m *measured) add(d *direction, r traffic.Result) {
	p := r.Sink.Packets
	lost, gap := float64(r.Sent.Packets-min(p.Received, r.Sent.Packets)), p.LongestGap
	if !p.Complete {
		gap = max(gap, lost/rate)
	}
	d.gap, d.lost = append(d.gap, gap), append(d.lost, lost)
	d.when = append(d.when, m.lane(p, gap))
	m.duplicated += p.Duplicated
	m.reordered += p.Reordered
	m.sent += r.Sent.Packets
}

// errSeen ends reading events.
var errSeen = errors.New("seen")

// skipEvents skips the existing events.
func (s *scene) skipEvents(ctx context.Context) error {
	return s.agent.Events(ctx, api.Follow{After: s.seen, Last: -1, NoFollow: true}, func(b api.Events) error {
		s.note(b)
		return nil
	})
}

func (s *scene) note(b api.Events) {
	for _, e := range b.Events {
		s.seen = max(s.seen, e.Seq)
	}
}

// failover is the next failover that concerns every port.
func (s *scene) failover(ctx context.Context) (event.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	e, err := s.told(ctx, func(e event.Event) bool { return e.Kind == event.Failover && e.Ports == s.ports })
	if err != nil {
		return e, errors.Join(fmt.Errorf("the agent reported no failover of %d ports within %v", s.ports, answerTime),
			err)
	}
	return e, nil
}

// told is the next event for which is returns true.
func (s *scene) told(ctx context.Context, is func(event.Event) bool) (found event.Event, err error) {
	err = s.agent.Events(ctx, api.Follow{After: s.seen, Last: -1}, func(b api.Events) error {
		s.note(b)
		for _, e := range b.Events {
			if is(e) {
				found = e
				return errSeen
			}
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return found, nil
	}
	return found, errors.Join(errors.New("the agent did not report it"), err)
}
