package migration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
)

// move moves the port there, or back, under numbered packets each way, as "heddle port move" does at a controller.
func (g *ground) move(ctx context.Context, m *reassigned, there bool) error {
	to := m.row.to
	if !there {
		to = home
	}
	if err := g.settled(ctx); err != nil {
		return err
	}
	out, in, err := g.streams(ctx, func() error {
		if err := pause(ctx, lead/2); err != nil {
			return err
		}
		began := time.Now()
		if m.row.to != (place{}) {
			if _, err := g.fleet.Reassign(ctx, api.ReassignPort{Port: port, Switch: to.sw,
				PortGroup: to.group}); err != nil {
				return err
			}
		}
		m.returned = append(m.returned, time.Since(began).Seconds())
		return pause(ctx, lead)
	})
	if err != nil {
		return err
	}
	heard := g.ear.told()
	if n, err := g.ear.missed(); err != nil || n > 0 {
		return errors.Join(fmt.Errorf("%d frames were not heard: this measures nothing", n), err)
	}
	if m.row.leaves { // what is outside is in the first segment alone
		m.gapOut = append(m.gapOut, quiet(heard).Seconds())
		m.heard += countHeard(heard, fromGuest)
		m.out.Duplicated, m.out.Reordered = m.out.Duplicated+out.Duplicated, m.out.Reordered+out.Reordered
	} else {
		m.gapOut, m.gapIn = append(m.gapOut, out.LongestGap), append(m.gapIn, in.LongestGap)
		m.out, m.in = plus(m.out, out), plus(m.in, in)
	}
	return g.checked(ctx, m, there && m.row.leaves)
}

func fromGuest(h heard) bool { return h.numbered && h.guests && !h.out }

// quiet is the longest time between two of the guest's numbered packets.
func quiet(list []heard) (longest time.Duration) {
	var last time.Time
	for _, h := range list {
		if !fromGuest(h) {
			continue
		}
		if !last.IsZero() {
			longest = max(longest, h.at.Sub(last))
		}
		last = h.at
	}
	return longest
}

// checked sends a few more packets: all of them come, or none where the guest is in another segment.
func (g *ground) checked(ctx context.Context, m *reassigned, apart bool) error {
	sink, err := traffic.Listen(traffic.Endpoint{NS: g.outside}, traffic.SinkOptions{Kind: traffic.KindUDP,
		At: addrPort(outsideIP, 0)})
	if err != nil {
		return err
	}
	sent, err := traffic.Send(ctx, traffic.Endpoint{NS: g.guest}, traffic.Load{Kind: traffic.KindUDP, Rate: 1000,
		Duration: 50 * time.Millisecond}, sink.Addr())
	res, errSink := sink.Finish()
	g.ear.told()
	if err := errors.Join(err, errSink); err != nil {
		return err
	}
	var want, got uint64
	if !apart {
		want = sent.Sent.Packets
	}
	if res.Packets != nil {
		got = res.Packets.Received
	}
	m.wrong += max(want, got) - min(want, got)
	return nil
}

// plus adds counts.
func plus(a, b traffic.Received) traffic.Received {
	a.Sent, a.Received, a.Lost, a.Overflowed = a.Sent+b.Sent, a.Received+b.Received, a.Lost+b.Lost,
		a.Overflowed+b.Overflowed
	a.Duplicated, a.Reordered = a.Duplicated+b.Duplicated, a.Reordered+b.Reordered
	return a
}

// settled waits until the host has announced what the move before changed.
func (g *ground) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		st, err := g.lab.Agent("esx1").State(ctx)
		if err == nil && st.Agent.Announcing == 0 {
			return nil
		}
		if pause(ctx, lookEvery) != nil {
			return errors.Join(errors.New("the host goes on announcing"), err)
		}
	}
}

// streams sends numbered packets each way while do runs.
func (g *ground) streams(ctx context.Context, do func() error) (out, in traffic.Received, err error) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan error, 2)
	var sinks [2]*traffic.Sink
	ends := []struct {
		from, to *netns.NS
		at       string
	}{{g.guest, g.outside, outsideIP}, {g.outside, g.guest, guestIP}}
	for i, e := range ends {
		sinks[i], err = traffic.Listen(traffic.Endpoint{NS: e.to}, traffic.SinkOptions{Kind: traffic.KindUDP,
			At: addrPort(e.at, 0), Stamped: true})
		if err != nil {
			return out, in, err
		}
		go func() {
			_, err := traffic.Send(sending, traffic.Endpoint{NS: e.from}, traffic.Load{Kind: traffic.KindUDP,
				Rate: g.effort.rate}, sinks[i].Addr())
			sent <- err
		}()
	}
	err = do()
	stop()
	errs := []error{err, <-sent, <-sent}
	for i, into := range []*traffic.Received{&out, &in} {
		res, err := sinks[i].Finish()
		if errs = append(errs, err); res.Packets != nil {
			*into = *res.Packets
		}
	}
	return out, in, errors.Join(errs...)
}
