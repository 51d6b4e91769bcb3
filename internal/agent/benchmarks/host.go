package benchmarks

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heddle/internal/api"
	"heddle/internal/fabric"
	"heddle/internal/fabric/benchmark"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/linkproto"
)

// Host is the host's part in benchmarks of the network between hosts: one at a time. Its lock is not held while
// frames are sent.
type Host struct {
	log    *slog.Logger
	open   linkproto.Opener
	probes Uplinks // nil for an agent that does not probe
	who    func() (id, name string)

	mu  sync.Mutex
	now *run
}

// Uplinks are those that take part. Line may be called from any goroutine; handed is false while no controller has
// handed keys.
type Uplinks interface {
	Line() (line uplinks.Line, handed bool)
}

// run is the one that runs.
type run struct {
	number uint32
	by     string
	load   *linkproto.Load
	cancel context.CancelFunc
	// limit ends it where nobody does.
	limit *time.Timer
}

// countOn is how long a host counts after it has sent all, where nobody ends its part.
const countOn = time.Minute

// New returns the part of a host that does not probe yet; who is the host in its cluster.
func New(log *slog.Logger, open linkproto.Opener, who func() (id, name string)) *Host {
	return &Host{log: log, open: open, who: who}
}

// Probe makes it the part of a host that probes others. It is called before the API is served.
func (b *Host) Probe(by Uplinks) { b.probes = by }

// RunBenchmark implements api.BenchmarkService.
func (b *Host) RunBenchmark(ctx context.Context, q api.HostBenchmark) error {
	p, err := b.plan(q)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := b.begin(q, p, cancel)
	if err != nil {
		return err
	}
	b.log.Info("a benchmark of the network begins", "by", q.By, "flows out", len(q.Send), "flows in", len(q.Receive),
		"for", q.Duration)
	if err := r.load.Run(ctx); err != nil { // nobody waits for the counts any more, or somebody has ended it
		b.log.Info("a benchmark of the network was ended before its time", "by", q.By)
		b.take(q.Run)
		r.load.End()
		return fmt.Errorf("the benchmark was ended: %w", err)
	}
	return nil
}

// begin opens what a benchmark needs.
func (b *Host) begin(q api.HostBenchmark, p linkproto.LoadPlan, cancel context.CancelFunc) (*run,
	error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("%s, begun by %s: wait until it is over, two minutes at "+
			"most", api.BenchmarkBusy, b.now.by))
	}
	load, err := linkproto.StartLoad(b.open, b.log, p)
	if err != nil {
		return nil, err
	}
	r := &run{number: q.Run, by: q.By, load: load, cancel: cancel}
	r.limit = time.AfterFunc(benchmark.AwakeTime+q.Duration+countOn, func() { _ = b.end(q.Run) })
	b.now = r
	return r, nil
}

// take returns the benchmark of that number, which is no longer the one that runs; nil for another one.
func (b *Host) take(number uint32) *run {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.now
	if r == nil || r.number != number {
		return nil
	}
	b.now = nil
	r.limit.Stop()
	return r
}

// end ends a benchmark, and returns what was counted; nil where it does not run.
func (b *Host) end(number uint32) *api.BenchmarkCounts {
	r := b.take(number)
	if r == nil {
		return nil
	}
	r.cancel()
	sent, received := r.load.End()
	out := &api.BenchmarkCounts{Sent: []api.BenchmarkSent{}, Received: []api.BenchmarkReceived{}}
	for _, s := range sent {
		out.Sent = append(out.Sent, api.BenchmarkSent(s))
	}
	for _, f := range received {
		out.Received = append(out.Received, api.BenchmarkReceived(f))
	}
	return out
}

// EndBenchmark implements api.BenchmarkService.
func (b *Host) EndBenchmark(_ context.Context, q api.EndBenchmark) (*api.BenchmarkCounts, error) {
	if out := b.end(q.Run); out != nil {
		return out, nil
	}
	return nil, api.NewError(api.NotFound, fmt.Sprintf("no benchmark %d runs here", q.Run))
}

// Close ends what runs.
func (b *Host) Close() error {
	b.mu.Lock()
	r := b.now
	b.mu.Unlock()
	if r != nil {
		b.end(r.number)
	}
	return nil
}

// plan checks what a controller asks for: whatever it says, no uplink sends more than its share.
func (b *Host) plan(q api.HostBenchmark) (p linkproto.LoadPlan, err error) {
	if b.probes == nil {
		return p, api.NewError(api.Invalid, "this agent does not probe")
	}
	if q.Run == 0 {
		return p, api.NewError(api.Invalid, "a benchmark has a number above 0")
	}
	if err := benchmark.Check(benchmark.DefaultRate, q.Duration); err != nil {
		return p, api.NewError(api.Invalid, err.Error())
	}
	line, handed := b.probes.Line()
	if !handed {
		return p, api.NewError(api.Invalid, "no controller has handed this host a key for probes yet: ask again in "+
			"some seconds")
	}
	id, _ := b.who()
	p = linkproto.LoadPlan{Run: q.Run, Uplinks: line.Devices, Keys: line.Keys, Lasts: q.Duration}
	sum := map[fabric.End]uint64{}
	for _, f := range q.Send {
		one, err := loadFlow(f, id, true)
		if err != nil {
			return p, err
		}
		if _, ok := line.Devices[one.From]; !ok {
			return p, api.NewError(api.Invalid, fmt.Sprintf("uplink %s of switch %s is down or not there any more",
				f.Uplink, f.Switch))
		}
		limit := benchmark.Limit(benchmark.MostRate, line.Speeds[one.From])
		if sum[one.From] += f.Rate; sum[one.From] > limit {
			return p, api.NewError(api.Invalid, fmt.Sprintf("uplink %s of switch %s was to send more than a part in "+
				"%d of its speed", f.Uplink, f.Switch, benchmark.Share))
		}
		p.Send = append(p.Send, one)
	}
	for _, f := range q.Receive {
		one, err := loadFlow(f, id, false)
		if err != nil {
			return p, err
		}
		p.Receive = append(p.Receive, one)
	}
	return p, nil
}

// loadFlow reads a flow that leaves this host, or comes to it.
func loadFlow(f api.BenchmarkFlow, host string, leaves bool) (one linkproto.LoadFlow, err error) {
	if f.MTU < fabric.Shortest || f.MTU > fabric.Longest || f.VLAN > 4094 || f.Rate > benchmark.MostRate ||
		f.Number == 0 {
		return one, api.NewError(api.Invalid, fmt.Sprintf("flow %d of the benchmark makes no sense: MTU %d, VLAN "+
			"%d, %d bit/s", f.Number, f.MTU, f.VLAN, f.Rate))
	}
	own := fabric.End{Host: host, Switch: f.Switch, Uplink: f.Uplink}
	peer := fabric.End{Host: f.PeerHost, Switch: f.Switch, Uplink: f.PeerUplink}
	if !leaves {
		own, peer = peer, own
	}
	return linkproto.LoadFlow{Number: f.Number, Path: fabric.Path{From: own, To: peer, VLAN: uint16(f.VLAN)},
		MAC: f.MAC, MTU: int(f.MTU), Rate: f.Rate}, nil
}
