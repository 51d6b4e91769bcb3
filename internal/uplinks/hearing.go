package uplinks

import (
	"log/slog"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks/linkproto"
)

// hearing hears by one protocol what the other ends of uplinks say, and publishes what is new.
type hearing[T comparable] struct {
	host     Host
	limit    event.Limiter[plan.PortID]
	listener *linkproto.Listener[T]
	done     chan struct{}
	// wanted reports whether an uplink is listened on.
	wanted func(*plan.Switch, *plan.Uplink) bool
	// tell fills in the event about a report.
	tell func(*event.Event, linkproto.HeardReport[T])
}

// hear starts to listen: start is that of the protocol.
func hear[T comparable](h Host, open linkproto.Opener, start func(linkproto.Opener, *slog.Logger,
	func([]linkproto.HeardReport[T])) *linkproto.Listener[T], wanted func(*plan.Switch, *plan.Uplink) bool,
	tell func(*event.Event, linkproto.HeardReport[T])) *hearing[T] {
	p := &hearing[T]{host: h, limit: h.Limit, done: make(chan struct{}), wanted: wanted, tell: tell}
	p.listener = start(open, h.Log, func(r []linkproto.HeardReport[T]) { h.Post(p.done, func() { p.reported(r) }) })
	return p
}

// Close ends the listening.
func (p *hearing[T]) Close() error {
	close(p.done)
	return p.listener.Close()
}

// Settled updates which uplinks are listened on.
func (p *hearing[T]) Settled(now InForce) {
	want := map[plan.PortID]linkproto.Uplink{}
	for _, sw := range now.Plan.Switches {
		for _, u := range sw.Uplinks {
			if d, ok := now.Devices[u.ID]; ok && p.wanted(sw, u) {
				want[u.ID] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.Facts[u.ID].Up && !u.Blocked}
			}
		}
	}
	p.listener.Own(now.own())
	p.listener.Want(want)
}

// reported publishes what is said first, and what is said no more; it runs in the loop.
func (p *hearing[T]) reported(list []linkproto.HeardReport[T]) {
	for _, r := range list {
		if !p.limit.Allow(r.ID, time.Now()) {
			continue
		}
		e := event.Event{Kind: event.Neighbour, Switch: r.ID.Switch, Uplink: r.ID.Name}
		p.tell(&e, r)
		p.host.Events.Publish(e)
		p.host.Log.Info(e.Text, "switch", r.ID.Switch)
	}
}
