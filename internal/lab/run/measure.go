package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/lab/cputime"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/traffic"
)

// answerTime limits how long the first ping may stay unanswered after everything is up.
const answerTime = time.Minute

// ends are the two namespaces that a row's traffic runs between.
func (r *runner) ends(row *experiment.Row) (traffic.Pair, error) {
	l := r.labs[row.Scenario]
	from, err := l.NS(row.From.Node)
	if err != nil {
		return traffic.Pair{}, err
	}
	to, err := l.NS(row.To.Node)
	if err != nil {
		return traffic.Pair{}, err
	}
	return traffic.Pair{
		Client: traffic.Endpoint{NS: from}, Server: traffic.Endpoint{NS: to}, Addr: row.To.Address,
	}, nil
}

// firstAnswer pings until all requests are answered: then addresses are resolved and every switch on the way has
// learned them.
func (r *runner) firstAnswer(ctx context.Context, row *experiment.Row) error {
	p, err := r.ends(row)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	load := traffic.Load{Kind: traffic.KindEcho, Duration: 250 * time.Millisecond, Rate: 20}
	for {
		res, err := traffic.Send(ctx, p.Client, load, addrPort(p.Addr))
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%s does not answer pings within %v", p.Addr, answerTime)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && res.Echo.Answered == res.Echo.Requests {
			return nil
		}
	}
}

// ping counts replies and uplink copies per ping.
func (r *runner) ping(ctx context.Context, m *Measured) error {
	p, err := r.ends(m.Row)
	if err != nil {
		return err
	}
	before, err := r.uplinkCounts(ctx, m.Row)
	if err != nil {
		return err
	}
	interval := time.Duration(float64(r.effort.pings)/r.effort.pingRate*float64(time.Second)) - time.Millisecond
	res, err := traffic.Send(ctx, p.Client, traffic.Load{
		Kind: traffic.KindEcho, Duration: interval, Rate: r.effort.pingRate,
	}, addrPort(p.Addr))
	if err != nil {
		return err
	}
	after, err := r.uplinkCounts(ctx, m.Row)
	if err != nil {
		return err
	}
	if res.Echo.Answered < res.Echo.Requests {
		return fmt.Errorf("%d of %d pings to %s stayed without answer", res.Echo.Requests-res.Echo.Answered,
			res.Echo.Requests, p.Addr)
	}
	m.RepliesPerPing, m.RTT = res.Echo.RepliesPerPing, res.Echo.RTT.P50
	for _, later := range res.Echo.Duplicates {
		m.Duplicates = append(m.Duplicates, later.P50)
	}
	m.PingUplinkFrames = float64(after.frames-before.frames) / float64(res.Echo.Requests)
	return nil
}

// counts are what uplinks were handed since they came up.
type counts struct{ frames, bytes, droppedIn, droppedOut uint64 }

// uplinkCounts sums the copies handed to the uplinks that the row counts.
func (r *runner) uplinkCounts(ctx context.Context, row *experiment.Row) (counts, error) {
	var sum counts
	perHost := map[string][]api.Stats{}
	for _, u := range row.Counted {
		list, ok := perHost[u.Host]
		if !ok {
			var err error
			if list, err = r.labs[row.Scenario].Agent(u.Host).Stats(ctx); err != nil {
				return sum, err
			}
			perHost[u.Host] = list
		}
		found := false
		for _, s := range list {
			if s.Uplink && s.Switch == u.Switch && s.Name == u.Uplink {
				sum.add(s)
				found = true
			}
		}
		if !found {
			return sum, fmt.Errorf("host %s shows no counters for uplink %s of switch %s", u.Host, u.Uplink, u.Switch)
		}
	}
	return sum, nil
}

func (c *counts) add(s api.Stats) {
	for _, n := range s.Counters {
		switch n.Name {
		case "packetsInDropped":
			c.droppedIn += n.Value
		case "packetsOutDropped":
			c.droppedOut += n.Value - min(stats.Filtered(s.Refused, true), n.Value)
		}
		for _, class := range []string{"Unicast", "Multicast", "Broadcast"} {
			switch n.Name {
			case "packetsOut" + class:
				c.frames += n.Value
			case "bytesOut" + class:
				c.bytes += n.Value
			}
		}
	}
}

// round is one round of throughput: iperf3, then our own stream sender.
func (r *runner) round(ctx context.Context, m *Measured) error {
	p, err := r.ends(m.Row)
	if err != nil {
		return err
	}
	before, err := r.uplinkCounts(ctx, m.Row)
	if err != nil {
		return err
	}
	if err := r.iperfRound(ctx, p, m); err != nil {
		return err
	}
	if err := r.streamRound(ctx, p, m); err != nil {
		return err
	}
	after, err := r.uplinkCounts(ctx, m.Row)
	if err != nil {
		return err
	}
	m.UplinkFrames += after.frames - before.frames
	m.UplinkBytes += float64(after.bytes - before.bytes)
	m.UplinkDroppedIn += after.droppedIn - before.droppedIn
	m.UplinkDroppedOut += after.droppedOut - before.droppedOut
	return nil
}

// loadedPings is how many pings a second run beside our own sender.
const loadedPings = 50

// streamRound is one round of our own sender, with pings beside it.
func (r *runner) streamRound(ctx context.Context, p traffic.Pair, m *Measured) error {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	pinged := make(chan error, 1)
	var pings traffic.Result
	go func() {
		var err error
		pings, err = traffic.Send(beside, p.Client, traffic.Load{Kind: traffic.KindEcho, Rate: loadedPings},
			addrPort(p.Addr))
		pinged <- err
	}()
	err := r.stream(ctx, p, m)
	stop()
	if err := errors.Join(err, <-pinged); err != nil {
		return err
	}
	if pings.Echo.Answered > 0 {
		m.LoadP50 = append(m.LoadP50, pings.Echo.RTT.P50)
		m.LoadP99 = append(m.LoadP99, pings.Echo.RTT.P99)
	}
	return nil
}

// stream is our own sender.
func (r *runner) stream(ctx context.Context, p traffic.Pair, m *Measured) error {
	res, err := traffic.Measure(ctx, p, traffic.Load{Kind: traffic.KindStream, Warmup: r.effort.warmup,
		Duration: r.effort.stream})
	if err != nil {
		return err
	}
	m.Stream = append(m.Stream, res.Stream.BitsPerSecond)
	m.Retransmits += res.Stream.Retransmits
	m.Payload += float64(res.Sink.Bytes)
	return nil
}

// iperfRound is one round of iperf3, with the CPU time of the whole machine during it. Without iperf3 it does nothing.
func (r *runner) iperfRound(ctx context.Context, p traffic.Pair, m *Measured) error {
	busy, err := cputime.Machine()
	if err != nil {
		return err
	}
	res, err := iperf(ctx, p, time.Second)
	if errors.Is(err, errNoIperf) {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := cputime.Machine()
	if err != nil {
		return err
	}
	m.Throughput = append(m.Throughput, res.bitsPerSecond)
	m.CPU = append(m.CPU, (now-busy).Seconds()/(res.bytes/1e9))
	m.Retransmits += res.retransmits
	m.Payload += res.bytes
	return nil
}
