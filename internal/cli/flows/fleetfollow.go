package flows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/top"
	"heddle/internal/spec/printable"
)

// rounds collects what several hosts send each interval, and puts all of it together once an interval.
type rounds[T any] struct {
	every time.Duration
	// sum: all that came counts, such as records; otherwise the newest of each host, such as rates.
	sum bool

	mu    sync.Mutex
	got   map[string][]arrived[T]
	first chan struct{} // closed when something has come
}

type arrived[T any] struct {
	at time.Time
	v  T
}

// settleRound is how long hosts have at least, after the first one's answer, to be asked and to answer. lookAgain is
// how often it is looked whether one is still awaited.
const (
	settleRound = 300 * time.Millisecond
	lookAgain   = 20 * time.Millisecond
)

func newRounds[T any](every time.Duration, sum bool) *rounds[T] {
	return &rounds[T]{every: every, sum: sum, got: map[string][]arrived[T]{}, first: make(chan struct{})}
}

// take takes in what a host has sent.
func (r *rounds[T]) take(host string, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.first:
	default:
		close(r.first)
	}
	if !r.sum {
		r.got[host] = nil
	}
	r.got[host] = append(r.got[host], arrived[T]{time.Now(), v})
}

// next is what counts now, by host. Rates of a host that has sent none for more than two intervals are over.
func (r *rounds[T]) next() (list []cli.Said[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for host, all := range r.got {
		for _, a := range all {
			if r.sum || time.Since(a.at) <= 2*r.every+settleRound {
				list = append(list, cli.Said[T]{Host: host, Answer: a.v})
			}
		}
	}
	if r.sum {
		clear(r.got)
	}
	slices.SortStableFunc(list, func(a, b cli.Said[T]) int { return strings.Compare(a.Host, b.Host) })
	return list
}

// run calls f once an interval until ctx ends or f fails. It begins when all hosts have answered: each measures at
// times of its own, so that their first answers come up to an interval apart. Two intervals after the first answer it
// begins without those that awaited still names.
func (r *rounds[T]) run(ctx context.Context, awaited func() []string, f func([]cli.Said[T]) error) error {
	select {
	case <-r.first:
	case <-ctx.Done():
		return nil
	}
	began := time.Now()
	cli.SleepFor(ctx, settleRound)
	for ctx.Err() == nil && len(awaited()) > 0 && time.Since(began) < 2*r.every {
		cli.SleepFor(ctx, lookAgain)
	}
	for tick := time.NewTicker(r.every); ; {
		if ctx.Err() != nil {
			tick.Stop()
			return nil
		}
		if err := f(r.next()); err != nil {
			tick.Stop()
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// followRounds follows what all hosts send each interval, and calls f with all of it once an interval.
func followRounds[T any](ctx context.Context, d cli.Deps, t *cli.Target, what string, r *rounds[T],
	follow func(ctx context.Context, client api.Service, emit func(T) error) error,
	f func(list []cli.Said[T], away []string) error) error {
	fleet, err := t.Fleet()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	hosts := cli.NewStreams(d, fleet, what, func(ctx context.Context, client api.Service, host string,
		heard func()) error {
		return follow(ctx, client, func(v T) error {
			r.take(host, v)
			heard() // last: who has been heard is no longer awaited, and its answer must be there
			return ctx.Err()
		})
	})
	var g sync.WaitGroup
	g.Go(func() { cancel(hosts.Run(ctx)) })
	err = cli.Ended(ctx, r.run(ctx, hosts.Awaited, func(list []cli.Said[T]) error {
		away := append(hosts.Away(), hosts.Awaited()...)
		slices.Sort(away)
		return f(list, slices.Compact(away))
	}))
	cancel(nil)
	g.Wait()
	return err
}

// watchFlowsOfHosts prints the records of all hosts as they come.
func watchFlowsOfHosts(c *cobra.Command, d cli.Deps, t *cli.Target, out *cli.Stream, only api.FlowFilter) error {
	fleet, err := t.Fleet()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	var mu sync.Mutex // of the output, and of notes
	notes := map[string]api.FlowNote{}
	width := 0
	print := func(host string, b *api.FlowRecords) error {
		mu.Lock()
		defer mu.Unlock()
		width = max(width, len([]rune(host)))
		if b.Missed > 0 {
			d.Warn("host " + host + ": " + missedRecords(b.Missed))
		}
		if !b.Note.None() && !b.Note.Same(notes[host]) {
			fmt.Fprintf(d.Stderr, "%s: %s\n", printable.Text(host), printable.Text(b.Note.Text))
		}
		if len(b.Records) == 0 {
			notes[host] = b.Note
		}
		for i := range b.Records {
			if err := writeRecord(d, out, host, width, &b.Records[i]); err != nil {
				return err
			}
		}
		return nil
	}
	hosts := cli.NewStreams(d, fleet, "its records are followed", func(ctx context.Context, client api.Service,
		host string,
		heard func()) error {
		return client.FlowRecords(ctx, only, func(b api.FlowRecords) error {
			heard()
			err := print(host, &b)
			if err != nil {
				cancel(err) // such as a closed pipe: nobody reads any more
			}
			return err
		})
	})
	return cli.Ended(ctx, hosts.Run(ctx))
}

func writeRecord(d cli.Deps, out *cli.Stream, host string, width int, r *api.FlowRecord) error {
	if !out.Text() {
		return out.Write(d.Stdout, cli.Hosted[*api.FlowRecord]{Host: host, Of: r})
	}
	if _, err := fmt.Fprintf(d.Stdout, "%-*s  ", width, printable.Text(host)); err != nil {
		return err
	}
	return flowRecordLine(d, r)
}

// sumsFor is the query by which hosts are asked for sums that are put together: with as many rows as there can be.
func sumsFor(q api.FlowSumQuery) api.FlowSumQuery {
	q.Limit = api.MaxFlowTop
	return q
}

func answersOf[T any](list []cli.Said[T]) (out []T) {
	for _, s := range list {
		out = append(out, s.Answer)
	}
	return out
}

// watchSumsOfHosts prints, after every interval, the sums of the records that were made in it on all hosts.
func watchSumsOfHosts(c *cobra.Command, d cli.Deps, t *cli.Target, out *cli.Stream, q api.FlowSumQuery) error {
	if err := checkSums(&q); err != nil {
		return err
	}
	r := newRounds[api.FlowSums](q.Interval, true)
	return followRounds(c.Context(), d, t, "its records are followed", r,
		func(ctx context.Context, client api.Service, emit func(api.FlowSums) error) error {
			return client.FlowSums(ctx, sumsFor(q), emit)
		}, func(list []cli.Said[api.FlowSums], _ []string) error {
			return writeSums(d, out, q, mergeSums(q, q.Limit, answersOf(list)))
		})
}

// followTops follows the flows of all hosts with the highest rates.
func (v *flowTop) followTops(ctx context.Context, sort string, emit func(top.HostsFlows) error) error {
	q := v.q
	q.Sort = sort
	return followRounds(ctx, v.d, v.t, "its flows are followed", newRounds[api.FlowTop](q.Interval, false),
		func(ctx context.Context, client api.Service, emit func(api.FlowTop) error) error {
			return client.FlowTop(ctx, q, emit)
		}, func(list []cli.Said[api.FlowTop], away []string) error {
			out := top.HostsFlows{Away: away}
			out.FlowTop, out.Hosts = mergeTops(sort, q.Limit, list)
			return emit(out)
		})
}

// followSums follows the sums of all hosts' traffic.
func (v *flowTop) followSums(ctx context.Context, q api.FlowSumQuery, emit func(top.HostsSums) error) error {
	return followRounds(ctx, v.d, v.t, "its flows are followed", newRounds[api.FlowSums](q.Interval, false),
		func(ctx context.Context, client api.Service, emit func(api.FlowSums) error) error {
			return client.FlowSums(ctx, sumsFor(q), emit)
		}, func(list []cli.Said[api.FlowSums], away []string) error {
			return emit(top.HostsSums{FlowSums: *mergeSums(q, q.Limit, answersOf(list)), Away: away})
		})
}
