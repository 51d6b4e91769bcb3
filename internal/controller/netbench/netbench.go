package netbench

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/probes"
	"heddle/internal/fabric"
	"heddle/internal/fabric/benchmark"
	"heddle/internal/fabric/wire"
	"heddle/internal/platform/access"
	"heddle/internal/spec/printable"
)

// Options are what a service needs.
type Options struct {
	Log *slog.Logger
	// Hosts are all hosts of the cluster, as a caller sees them.
	Hosts func(ctx context.Context) ([]*controllerv1.Host, error)
	// Agent makes one call at a host's agent, wherever the host is connected.
	Agent func(ctx context.Context, host string, do func(context.Context, *connect.Client) error) error
	// Probes know which hosts can take part.
	Probes *probes.Hub
}

// Service answers people about the physical network. One benchmark runs at a time.
type Service struct {
	Options
	mu sync.Mutex
	by string // who has begun the one that runs; "" while none does
}

// New is a service.
func New(o Options) *Service { return &Service{Options: o} }

// take takes the turn, or returns who has it.
func (s *Service) take(by string) (done func(), other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by != "" {
		return nil, s.by
	}
	s.by = by
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.by = ""
	}, ""
}

// GetNetworkHealth is what is wrong with the physical network.
func (s *Service) GetNetworkHealth(context.Context, *controllerv1.GetNetworkHealthRequest) (
	*controllerv1.GetNetworkHealthResponse, error) {
	found, hosts := s.Probes.Verdict()
	return &controllerv1.GetNetworkHealthResponse{Findings: wire.Findings(found.Findings), Hosts: uint32(hosts),
		Uplinks: uint32(found.Uplinks), Vlans: uint32(found.VLANs), Paths: uint32(found.Paths),
		Passing: uint32(found.Passing), Waiting: uint32(found.Waiting), Lonely: uint32(found.Lonely),
		Tunnels: uint32(found.Tunnels), TunnelsPassing: uint32(found.TunnelsPassing),
		TunnelsWaiting: uint32(found.TunnelsWaiting)}, nil
}

// RunBenchmark has all hosts send to one another at once.
func (s *Service) RunBenchmark(ctx context.Context, q *controllerv1.RunBenchmarkRequest,
	out controllerv1connect.HealthServiceRunBenchmarkServerStream) error {
	rate, lasts := cmp.Or(q.GetRate(), benchmark.DefaultRate), benchmark.DefaultTime
	if q.GetDuration() != nil {
		lasts = q.GetDuration().AsDuration()
	}
	if err := benchmark.Check(rate, lasts); err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	by := access.NameOf(ctx)
	done, other := s.take(by)
	if done == nil {
		return busy(other)
	}
	defer done()
	r := &run{Options: s.Options, number: rand.Uint32() | 1, by: by, rate: rate, lasts: lasts}
	if err := r.choose(ctx, q); err != nil {
		return err
	}
	return r.do(ctx, out.Send)
}

// do runs a benchmark and tells what came of it.
func (r *run) do(ctx context.Context, send func(*controllerv1.RunBenchmarkResponse) error) error {
	if err := send(&controllerv1.RunBenchmarkResponse{Progress: r.title()}); err != nil {
		return err
	}
	r.Log.Info("a benchmark of the network begins", "by", r.by, "hosts", len(r.hosts), "flows", len(r.flows), "rate",
		r.rate, "for", r.lasts)
	r.begin(ctx)
	r.Log.Info("a benchmark of the network is over", "by", r.by, "stopped", r.stopped)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.refused != "":
		return connect.NewError(connect.CodeFailedPrecondition, r.refused)
	}
	return send(&controllerv1.RunBenchmarkResponse{Result: r.result()})
}

func busy(other string) error {
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("another benchmark runs, begun by %s: one "+
		"runs at a time, for two minutes at most", other))
}

// run is one benchmark.
type run struct {
	Options
	number uint32
	by     string
	rate   uint64
	lasts  time.Duration
	// hosts take part; beside are those that do not and could: they are told, so that no other controller begins a
	// benchmark meanwhile.
	hosts, beside []probes.Host
	without       []*controllerv1.BenchmarkLeftOut
	flows         []benchmark.Flow
	apart         [][2]string

	mu      sync.Mutex
	stopped string
	refused string // which host refuses its part, and why
	results map[uint32]*benchmark.Result
	sent    map[uint32]bool
	got     map[uint32]bool
}

func (r *run) title() string {
	return fmt.Sprintf("%s send to one another for %v, %s at most by each uplink", printable.Count(len(r.hosts), "host",
		"hosts"), r.lasts, bits(r.rate))
}

// bits is a rate for people.
func bits(rate uint64) string {
	switch {
	case rate >= 1_000_000_000:
		return fmt.Sprintf("%g Gbit/s", float64(rate)/1e9)
	case rate >= 1_000_000:
		return fmt.Sprintf("%g Mbit/s", float64(rate)/1e6)
	}
	return fmt.Sprintf("%g kbit/s", float64(rate)/1e3)
}

// choose finds the hosts that take part, and what they send.
func (r *run) choose(ctx context.Context, q *controllerv1.RunBenchmarkRequest) error {
	list, err := r.Hosts(ctx)
	if err != nil {
		return err
	}
	missing := slices.Clone(q.GetHosts())
	parties := r.Probes.Parties()
	var members []fabric.Member
	for _, h := range list {
		party, known := parties[h.GetId()]
		one, why := probes.Host{ID: h.GetId(), Name: h.GetName()}, unable(h, party, known)
		if !selects(q, h) {
			if why == "" {
				r.beside = append(r.beside, one)
			}
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == h.GetName() })
		if why != "" {
			r.without = append(r.without, &controllerv1.BenchmarkLeftOut{Host: h.GetName(), Reason: why})
			continue
		}
		r.hosts = append(r.hosts, one)
		members = append(members, party.Members...)
	}
	switch {
	case len(missing) > 0:
		slices.Sort(missing)
		return connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no host %s that matches: see "+
			"heddle host list", strings.Join(missing, ", ")))
	case len(r.hosts) < 2:
		return connect.NewError(connect.CodeFailedPrecondition, "a benchmark takes two hosts at least"+r.whyWithout())
	case len(r.hosts) > benchmark.MostHosts:
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("%d hosts are too many for one benchmark, "+
			"which has %d at most: choose some with --hosts or --label", len(r.hosts), benchmark.MostHosts))
	}
	if r.flows, r.apart = benchmark.Plan(members, r.rate); len(r.flows) == 0 {
		return connect.NewError(connect.CodeFailedPrecondition, "no two of the hosts have a switch and a VLAN in "+
			"common")
	}
	return nil
}

// selects reports whether a host is one of those that were asked for.
func selects(q *controllerv1.RunBenchmarkRequest, h *controllerv1.Host) bool {
	for name, value := range q.GetLabels() {
		if got, ok := h.GetLabels()[name]; !ok || got != value {
			return false
		}
	}
	return len(q.GetHosts()) == 0 || slices.Contains(q.GetHosts(), h.GetName())
}

// unable says why a host can take no part; "" where it can.
func unable(h *controllerv1.Host, p probes.Party, known bool) string {
	switch {
	case h.GetState() == controllerv1.HostState_HOST_STATE_DISCONNECTED || h.GetStale():
		return "it is not connected"
	case known && !slices.Contains(p.Able, fabric.AbleBenchmark):
		return fmt.Sprintf("its agent (version %s) does not know benchmarks: update it", cmp.Or(h.GetAgent(),
			"unknown"))
	case !known || len(p.Members) == 0:
		return "none of its uplinks takes part in the health check: set healthCheck: true at its switch, see " +
			"whether its links are up, and update its agent if it is of an earlier version"
	}
	return ""
}

func (r *run) whyWithout() (text string) {
	for _, w := range r.without {
		text += fmt.Sprintf("\nhost %s: %s", w.GetHost(), w.GetReason())
	}
	return text
}

// result is what came of it.
func (r *run) result() *controllerv1.NetworkBenchmark {
	out := &controllerv1.NetworkBenchmark{Stopped: r.stopped, Without: r.without, Rate: r.rate,
		Duration: durationpb.New(r.lasts)}
	for _, h := range r.hosts {
		out.Hosts = append(out.Hosts, h.Name)
	}
	for _, p := range r.apart {
		out.Findings = append(out.Findings, fmt.Sprintf("%s and %s have no switch and VLAN in common", p[0], p[1]))
	}
	var list []benchmark.Result
	for _, f := range r.flows {
		if r.sent[f.Number] && r.got[f.Number] {
			list = append(list, *r.results[f.Number])
		}
	}
	out.Findings = append(out.Findings, benchmark.Judge(list)...)
	for i := range list {
		out.Pairs = append(out.Pairs, pairOf(&list[i]))
	}
	return out
}

func pairOf(r *benchmark.Result) *controllerv1.BenchmarkPair {
	p := &controllerv1.BenchmarkPair{From: r.From.Name, FromUplink: r.From.Uplink, To: r.To.Name, ToUplink: r.To.Uplink,
		Switch: r.From.Switch, Vlan: uint32(r.VLAN), Rate: r.Rate, Offered: uint64(r.Offered()),
		Throughput: uint64(r.Throughput()), Sent: r.Sent, Lost: r.Lost(), Duplicates: r.Duplicates, Pings: r.Pings,
		PingsLost: r.Pings - min(r.Pings, r.Answered), Replies: r.Replies}
	if r.Answered > 0 {
		p.P50, p.P99 = durationpb.New(r.P50), durationpb.New(r.P99)
	}
	for _, f := range r.Faults {
		p.Faults = append(p.Faults, string(f))
	}
	return p
}
