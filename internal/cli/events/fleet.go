package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe/event"
	"heddle/internal/spec/printable"
)

// fleetEvents is one "heddle events" over all hosts.
type fleetEvents struct {
	*follower
	c     *cobra.Command
	t     *cli.Target
	begun time.Time
	come  chan hostEvent
	// cursor is the file of --resume; nil for none.
	cursor *eventCursor

	mu    sync.Mutex
	hosts map[string]*followed
	width int // of the column of hosts
}

// hostEvent is an event of a host.
type hostEvent struct {
	host string
	// started is when the host's agent started, which counts its events.
	started time.Time
	// hidden: it is not wanted, and only says how far the host's events have come.
	hidden bool
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
		return errors.Join(e.cursor.save(), away.Report(e.d))
	}
	_ = away.Report(e.d) // its events are followed when it is back
	fleet, err := e.t.Fleet()
	if err != nil {
		return err
	}
	follow := cli.NewStreams(e.d, fleet, "its events are followed", e.follow)
	follow.Only = e.ofHost
	for _, h := range away.Hosts {
		follow.KnowsAway(h.Name)
	}
	var g sync.WaitGroup
	defer g.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.Go(func() { cancel(follow.Run(ctx)) })
	return cli.Ended(ctx, e.print(ctx))
}

// at is how far a host's events are followed.
func (e *fleetEvents) at(host string) *followed {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.hosts[host]
	if f == nil {
		f = &followed{}
		if e.cursor != nil {
			p := e.cursor.of(host)
			f.started, f.seq = p.Started, p.Seq
		}
		e.hosts[host], e.width = f, max(e.width, utf8.RuneCountInString(host))
	}
	return f
}

// past prints the last events of all hosts, or those since the last run.
func (e *fleetEvents) past() (*cli.Absent, error) {
	list, away, err := cli.AskHosts(e.c, e.t, func(t *cli.Target) (kept []hostEvent, err error) {
		if !e.ofHost(t.Host) {
			return nil, nil
		}
		client, err := t.Client()
		if err != nil {
			return nil, err
		}
		one := &follower{d: e.d, client: client, eventFilter: eventFilter{port: e.port}}
		if err := one.knowsPort(t.Bound(e.c)); err != nil {
			return nil, err
		}
		at := e.at(t.Host)
		defer func(before followed) {
			if err != nil { // what came of it is not printed, and is asked for again
				e.mu.Lock()
				*at = before
				e.mu.Unlock()
			}
		}(*at)
		last := e.last
		if at.seq > 0 || e.some() {
			last = -1
		}
		ctx, cancel := context.WithTimeout(t.Bound(e.c), cli.CallTimeout)
		defer cancel()
		return kept, client.Events(ctx, api.Follow{Last: last, NoFollow: true}, func(b api.Events) error {
			kept = append(kept, e.fresh(ctx, client, t.Host, at, b)...)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	away.Only(e.ofHost)
	var all []hostEvent
	shown := 0
	for _, s := range list {
		all = append(all, s.Answer...)
	}
	byTime(all)
	// Of what is not new since an earlier run only the last is printed.
	for i, v := range slices.Backward(all) {
		if e.last >= 0 && !v.hidden && !e.resumed(v.host) {
			shown++
			all[i].hidden = shown > e.last
		}
	}
	return away, e.write(all)
}

// resumed reports whether an earlier run printed events of a host.
func (e *fleetEvents) resumed(host string) bool { return e.cursor != nil && e.cursor.of(host).Seq > 0 }

// fresh are the events of a batch that were not seen yet. Where some are missing before them, it says so.
func (e *fleetEvents) fresh(ctx context.Context, client api.Service, host string, at *followed,
	b api.Events) (list []hostEvent) {
	if e.portGroup != "" {
		e.groups.learn(ctx, client, host, b.Events)
	}
	e.mu.Lock()
	anew := at.seq > 0 && !b.Started.Equal(at.started)
	if !b.Started.Equal(at.started) {
		at.started, at.seq = b.Started, 0
	}
	missed := uint64(0)
	for _, v := range b.Events {
		if v.Seq <= at.seq {
			continue
		}
		if at.seq > 0 {
			missed += v.Seq - at.seq - 1
		}
		at.seq = v.Seq
		list = append(list, hostEvent{host, b.Started, !e.wanted(v, host), v})
	}
	e.mu.Unlock()
	if anew {
		e.d.Warn("host " + printable.Text(host) + ": its agent has begun anew; what the one before told at last may " +
			"be missing here")
	}
	if missed > 0 {
		e.d.Warn("host " + printable.Text(host) + ": " + printable.Count(missed,
			"event is kept no more and is missing here", "events are kept no more and are missing here"))
	}
	return list
}

func byTime(list []hostEvent) {
	slices.SortStableFunc(list, func(a, b hostEvent) int { return a.Time.Compare(b.Time) })
}

// write prints events.
func (e *fleetEvents) write(list []hostEvent) error {
	for _, v := range list {
		if err := e.one(v); err != nil {
			return err
		}
		if e.cursor != nil {
			e.cursor.put(v.host, lastPrinted{v.started, v.Seq})
		}
	}
	return nil
}

func (e *fleetEvents) one(v hostEvent) error {
	switch {
	case v.hidden:
		return nil
	case !e.out.Text():
		return e.out.Write(e.d.Stdout, cli.Hosted[event.Event]{Host: v.host, Of: v.Event})
	}
	e.mu.Lock()
	width := e.width
	e.mu.Unlock()
	return e.words(v.Event, fmt.Sprintf("%-*s  ", width, printable.Text(v.host)))
}

// print prints what comes, each event after those of other hosts that happened before and come a little later.
func (e *fleetEvents) print(ctx context.Context) (err error) {
	save := time.NewTicker(time.Second)
	defer save.Stop()
	defer func() { err = errors.Join(err, e.cursor.save()) }()
	g := &cli.Gathering[hostEvent]{Put: func(v hostEvent) error { return e.write([]hostEvent{v}) },
		At: func(v hostEvent) time.Time { return v.Time }}
	for {
		select {
		case v := <-e.come:
			if err := g.Take(v); err != nil {
				return err
			}
		case <-save.C:
			if err := e.cursor.save(); err != nil {
				return err
			}
		case <-ctx.Done():
			return g.Flush()
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
		for _, v := range e.fresh(ctx, client, host, at, b) {
			if v.Time.Before(since) {
				continue
			}
			select {
			case e.come <- v:
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
	short, cancel := context.WithTimeout(ctx, cli.CallTimeout)
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
