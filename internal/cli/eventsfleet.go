package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/spec/printable"
)

// fleetEvents is one "heddle events" over all hosts.
type fleetEvents struct {
	*follower
	c     *cobra.Command
	t     *target
	begun time.Time
	come  chan hostEvent

	mu    sync.Mutex
	hosts map[string]*followed
	width int // of the column of hosts
}

// hostEvent is an event of a host.
type hostEvent struct {
	host string
	event.Event
}

// followed is how far the events of one host are followed.
type followed struct {
	started time.Time // of its agent; zero where nothing was heard of it
	seq     uint64
}

// run prints what is past, in order, and then what comes.
func (e *fleetEvents) run() error {
	ctx := e.c.Context()
	e.hosts, e.come, e.begun = map[string]*followed{}, make(chan hostEvent), time.Now()
	away, err := e.past()
	if err != nil {
		return err
	}
	if e.once {
		return away.report(e.d)
	}
	_ = away.report(e.d) // its events are followed when it is back
	fleet, err := e.t.fleet()
	if err != nil {
		return err
	}
	follow := newStreams(e.d, fleet, "its events", e.follow)
	for _, h := range away.hosts {
		follow.knowsAway(h.Name)
	}
	var g sync.WaitGroup
	defer g.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.Go(func() { cancel(follow.run(ctx)) })
	return ended(ctx, e.print(ctx))
}

// at is how far a host's events are followed.
func (e *fleetEvents) at(host string) *followed {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.hosts[host]
	if f == nil {
		f = &followed{}
		e.hosts[host], e.width = f, max(e.width, utf8.RuneCountInString(host))
	}
	return f
}

// past prints the last events of all hosts.
func (e *fleetEvents) past() (*absent, error) {
	list, away, err := askHosts(e.c, e.t, func(t *target) (kept []event.Event, err error) {
		client, err := t.client()
		if err != nil {
			return nil, err
		}
		one := &follower{d: e.d, client: client, port: e.port}
		if err := one.knowsPort(t.bound(e.c)); err != nil {
			return nil, err
		}
		last := e.last
		if len(e.kinds) > 0 || e.port != "" {
			last = -1
		}
		at := e.at(t.host)
		ctx, cancel := context.WithTimeout(t.bound(e.c), callTimeout)
		defer cancel()
		return kept, client.Events(ctx, api.Follow{Last: last, NoFollow: true}, func(b api.Events) error {
			kept = append(kept, e.fresh(at, b)...)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var all []hostEvent
	for _, s := range list {
		for _, v := range s.answer {
			all = append(all, hostEvent{s.host, v})
		}
	}
	byTime(all)
	if n := len(all) - e.last; e.last >= 0 && n > 0 {
		all = all[n:]
	}
	return away, e.write(all)
}

// fresh are the events of a batch that are wanted and were not seen yet.
func (e *fleetEvents) fresh(at *followed, b api.Events) (list []event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !b.Started.Equal(at.started) {
		at.started, at.seq = b.Started, 0
	}
	for _, v := range b.Events {
		if v.Seq > at.seq {
			at.seq = v.Seq
			if e.wanted(v) {
				list = append(list, v)
			}
		}
	}
	return list
}

func byTime(list []hostEvent) {
	slices.SortStableFunc(list, func(a, b hostEvent) int { return a.Time.Compare(b.Time) })
}

// write prints events.
func (e *fleetEvents) write(list []hostEvent) error {
	for _, v := range list {
		if !e.out.text() {
			if err := e.out.write(e.d.Stdout, hosted[event.Event]{v.host, v.Event}); err != nil {
				return err
			}
			continue
		}
		e.mu.Lock()
		width := e.width
		e.mu.Unlock()
		if err := e.words(v.Event, fmt.Sprintf("%-*s  ", width, printable.Text(v.host))); err != nil {
			return err
		}
	}
	return nil
}

// print prints what comes, each event after those of other hosts that happened before and come a little later.
func (e *fleetEvents) print(ctx context.Context) error {
	g := &gathering[hostEvent]{put: func(v hostEvent) error { return e.write([]hostEvent{v}) },
		at: func(v hostEvent) time.Time { return v.Time }}
	for {
		select {
		case v := <-e.come:
			if err := g.take(v); err != nil {
				return err
			}
		case <-ctx.Done():
			return g.flush()
		}
	}
}

// follow follows one host until it is away.
func (e *fleetEvents) follow(ctx context.Context, client api.Service, host string, heard func()) error {
	at := e.at(host)
	q, since, err := e.resume(ctx, client, at)
	if err != nil {
		return err
	}
	heard()
	return client.Events(ctx, q, func(b api.Events) error {
		e.mu.Lock()
		gap := b.Missed > 0 && at.seq > 0 && b.Started.Equal(at.started)
		e.mu.Unlock()
		if gap {
			e.d.warn("host " + host + ": " + printable.Count(b.Missed,
				"event came faster than it could be kept and is missing here",
				"events came faster than they could be kept and are missing here"))
		}
		for _, v := range e.fresh(at, b) {
			if v.Time.Before(since) {
				continue
			}
			select {
			case e.come <- hostEvent{host, v}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
}

// resume is what to ask a host for: what came after the event that was seen last. Of a host that is new here, and of
// one whose agent has begun anew, that is all it keeps, of the former only from the time on when this command began.
func (e *fleetEvents) resume(ctx context.Context, client api.Service, at *followed) (api.Follow, time.Time, error) {
	var started time.Time
	short, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := client.Events(short, api.Follow{Last: 1, NoFollow: true}, func(b api.Events) error {
		started = b.Started
		return nil
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		return api.Follow{}, time.Time{}, err
	case at.started.IsZero():
		return api.Follow{Last: -1}, e.begun, nil
	case started.Equal(at.started):
		return api.Follow{After: at.seq, Last: -1}, time.Time{}, nil
	}
	return api.Follow{Last: -1}, time.Time{}, nil
}
