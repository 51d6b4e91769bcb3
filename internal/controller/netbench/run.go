package netbench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/api"
	"heddle/internal/controller/probes"
	"heddle/internal/fabric"
	"heddle/internal/fabric/benchmark"
	"heddle/internal/platform/rpcerrors"
)

// benchmarkSpare is how much longer than its part a host may take to answer, benchmarkEnd how long it may take to say
// what it counted.
const (
	benchmarkSpare = 15 * time.Second
	benchmarkEnd   = 15 * time.Second
)

// begin has the hosts send until all have, one is gone, or ctx ends, and takes what they counted.
func (r *run) begin(ctx context.Context) {
	r.results = map[uint32]*benchmark.Result{}
	r.sent, r.got = map[uint32]bool{}, map[uint32]bool{}
	parts := map[string]*agentv1.RunBenchmarkRequest{}
	for _, f := range r.flows {
		r.results[f.Number] = &benchmark.Result{Flow: f}
		from, to := r.part(parts, f.From.Host), r.part(parts, f.To.Host)
		from.Send = append(from.Send, flowOf(&f, &f.From, &f.To))
		to.Receive = append(to.Receive, flowOf(&f, &f.To, &f.From))
	}
	running, cancel := context.WithTimeout(ctx, benchmark.AwakeTime+r.lasts+fabric.Wait+benchmarkSpare)
	defer cancel()
	var all sync.WaitGroup
	for i, h := range r.everybody() {
		q := r.part(parts, h.ID)
		all.Go(func() {
			if r.tell(running, h, q, i < len(r.hosts)) {
				cancel()
			}
		})
	}
	all.Wait()
	if running.Err() != nil && ctx.Err() == nil {
		r.stop("a host did not answer in time")
	}
	r.end(context.WithoutCancel(ctx))
}

// part is what a host is to do.
func (r *run) part(all map[string]*agentv1.RunBenchmarkRequest, host string) *agentv1.RunBenchmarkRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if all[host] == nil {
		all[host] = &agentv1.RunBenchmarkRequest{Run: r.number, By: r.by, Duration: durationpb.New(r.lasts)}
	}
	return all[host]
}

func flowOf(f *benchmark.Flow, own, peer *fabric.Member) *agentv1.BenchmarkFlow {
	return &agentv1.BenchmarkFlow{Number: f.Number, Switch: own.Switch, Uplink: own.Uplink, PeerHost: peer.Host,
		PeerUplink: peer.Uplink, Vlan: uint32(f.VLAN), Mac: peer.MAC[:], Mtu: uint32(f.MTU), Rate: f.Rate}
}

// stop keeps the first reason why the benchmark ended early.
func (r *run) stop(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = cmp.Or(r.stopped, why)
}

// everybody are the hosts that take part, and then those beside.
func (r *run) everybody() []probes.Host { return slices.Concat(r.hosts, r.beside) }

// tell has a host do its part, and reports whether that ends the benchmark: what a host that only stands beside lacks
// does not, but that another benchmark runs there.
func (r *run) tell(ctx context.Context, h probes.Host, q *agentv1.RunBenchmarkRequest, partakes bool) (
	ends bool) {
	code, text := rpcerrors.CodeAndText(r.Agent(ctx, h.Name, func(ctx context.Context, c *connect.Client) error {
		_, err := agentv1connect.NewBenchmarkServiceClient(c).RunBenchmark(ctx, q)
		return err
	}))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch text = fmt.Sprintf("host %s: %s", h.Name, text); {
	case code == 0 || ctx.Err() != nil:
		return false
	case code == connect.CodeInvalidArgument && (partakes || strings.Contains(text, api.BenchmarkBusy)):
		r.refused = cmp.Or(r.refused, text)
		return true
	case partakes:
		r.stopped = cmp.Or(r.stopped, text)
		return true
	}
	return false
}

// end ends the part of each host, and takes what they counted.
func (r *run) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, benchmarkEnd)
	defer cancel()
	var all sync.WaitGroup
	for i, h := range r.everybody() {
		all.Go(func() {
			var got *agentv1.EndBenchmarkResponse
			err := r.Agent(ctx, h.Name, func(ctx context.Context, c *connect.Client) (err error) {
				got, err = agentv1connect.NewBenchmarkServiceClient(c).EndBenchmark(ctx,
					&agentv1.EndBenchmarkRequest{Run: r.number})
				return err
			})
			if code, text := rpcerrors.CodeAndText(err); code != 0 && i < len(r.hosts) {
				r.stop(fmt.Sprintf("host %s does not say what it counted: %s", h.Name, text))
				return
			}
			r.take(got.GetCounts())
		})
	}
	all.Wait()
}

// take takes in what a host counted.
func (r *run) take(c *agentv1.BenchmarkCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range c.GetSent() {
		if one := r.results[s.GetNumber()]; one != nil {
			r.sent[s.GetNumber()] = true
			one.Sent, one.Lasted = s.GetFrames(), s.GetLasted().AsDuration()
			one.Pings, one.Answered, one.Replies = s.GetPings(), s.GetAnswered(), s.GetReplies()
			one.P50, one.P99 = s.GetP50().AsDuration(), s.GetP99().AsDuration()
		}
	}
	for _, g := range c.GetReceived() {
		if one := r.results[g.GetNumber()]; one != nil {
			r.got[g.GetNumber()] = true
			one.Frames, one.Duplicates = g.GetFrames(), g.GetDuplicates()
		}
	}
}
