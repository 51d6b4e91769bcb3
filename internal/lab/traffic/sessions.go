package traffic

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// readyTime is the longest time until all sessions of one end can send.
const readyTime = 20 * time.Millisecond

// session is the end of the i-th of several sessions: each has one of the CPUs, in turn. A single session may use all.
func (e Endpoint) session(i, of int) Endpoint {
	if of > 1 && len(e.CPUs) > 1 {
		e.CPUs = []int{e.CPUs[i%len(e.CPUs)]}
	}
	return e
}

// SendEach runs a session to each of the addresses, all in the same interval, and returns their combined result:
// counts, rates and CPU time are sums, latencies are those of all transactions. The first error ends all.
func SendEach(ctx context.Context, e Endpoint, load Load, to []netip.AddrPort) (Result, error) {
	load.Sessions = len(to)
	if _, err := load.withDefaults(); err != nil {
		return Result{}, err
	}
	if len(to) == 1 {
		return Send(ctx, e, load, to[0])
	}
	if load.Begin.IsZero() {
		load.Begin = time.Now().Add(readyTime + load.Warmup)
	}
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	results, errs := make([]Result, len(to)), make([]error, len(to))
	var wg sync.WaitGroup
	for i, addr := range to {
		wg.Go(func() {
			if results[i], errs[i] = Send(all, e.session(i, len(to)), load, addr); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil && load.Duration > 0 {
		return Result{}, err
	}
	if i := slices.IndexFunc(errs, func(err error) bool {
		return err != nil && !errors.Is(err, context.Canceled)
	}); i >= 0 {
		return Result{}, errs[i]
	}
	return merge(results), nil
}

// merge adds up the results of sessions of one kind.
func merge(results []Result) Result {
	sum := Result{Kind: results[0].Kind}
	if sum.Kind == KindStream {
		sum.Stream = &Stream{}
		for _, r := range results {
			s := r.Stream
			sum.Stream.Seconds = max(sum.Stream.Seconds, s.Seconds)
			sum.Stream.Bytes += s.Bytes
			sum.Stream.BitsPerSecond += s.BitsPerSecond
			sum.Stream.Retransmits += s.Retransmits
			sum.Stream.Segments += s.Segments
			sum.Stream.Sent += s.Sent
			sum.Stream.CPUSeconds += s.CPUSeconds
		}
		return sum
	}
	sum.Transactions = &Transactions{times: &histogram{}}
	for _, r := range results {
		t := r.Transactions
		sum.Transactions.Seconds = max(sum.Transactions.Seconds, t.Seconds)
		sum.Transactions.Count += t.Count
		sum.Transactions.PerSecond += t.PerSecond
		sum.Transactions.CPUSeconds += t.CPUSeconds
		sum.Transactions.times.join(t.times)
	}
	sum.Transactions.Latency = sum.Transactions.times.latency()
	return sum
}

// Sinks are those of one end, one for each session.
type Sinks []*Sink

// ListenEach opens a sink for each session, at least one, at free ports. They serve until Finish.
func ListenEach(e Endpoint, opts SinkOptions, sessions int) (Sinks, error) {
	var sinks Sinks
	for i := range max(sessions, 1) {
		s, err := Listen(e.session(i, sessions), opts)
		if err != nil {
			_, finishErr := sinks.Finish()
			return nil, errors.Join(err, finishErr)
		}
		sinks = append(sinks, s)
	}
	return sinks, nil
}

// Addrs are where the sinks listen.
func (s Sinks) Addrs() []netip.AddrPort {
	addrs := make([]netip.AddrPort, 0, len(s))
	for _, sink := range s {
		addrs = append(addrs, sink.Addr())
	}
	return addrs
}

// Finish ends all sinks, like Sink.Finish, and adds up their results.
func (s Sinks) Finish() (SinkResult, error) {
	results, errs := make([]SinkResult, len(s)), make([]error, len(s))
	var wg sync.WaitGroup
	for i, sink := range s {
		wg.Go(func() { results[i], errs[i] = sink.Finish() })
	}
	wg.Wait()
	if len(s) == 1 {
		return results[0], errs[0]
	}
	var sum SinkResult
	for _, r := range results {
		sum.Connections += r.Connections
		sum.Broken += r.Broken
		sum.Bytes += r.Bytes
		sum.CPUSeconds += r.CPUSeconds
	}
	return sum, errors.Join(errs...)
}
