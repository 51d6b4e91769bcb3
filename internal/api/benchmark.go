package api

import (
	"context"
	"errors"
	"io"
	"time"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/plan"
)

// BenchmarkService is a host's part in a benchmark of the network between hosts. Controllers call it.
type BenchmarkService interface {
	// RunBenchmark sends and counts frames, and returns when all were sent. The host counts on until EndBenchmark, and
	// for a minute at most.
	RunBenchmark(context.Context, HostBenchmark) error
	// EndBenchmark ends the host's part, and returns what it counted.
	EndBenchmark(context.Context, EndBenchmark) (*BenchmarkCounts, error)
}

// BenchmarkBusy begins the refusal of a host where another benchmark runs.
const BenchmarkBusy = "another benchmark runs"

// HostBenchmark is a host's part.
type HostBenchmark struct {
	// Run is the benchmark's number, not 0; By is who began it.
	Run uint32 `json:"run"`
	By  string `json:"by"`
	// Duration is how long each flow is sent, 1 s to 1 min.
	Duration time.Duration `json:"duration"`
	// Send are the flows that leave this host, Receive those that come to it.
	Send    []BenchmarkFlow `json:"send"`
	Receive []BenchmarkFlow `json:"receive"`
}

// BenchmarkFlow is what one uplink sends to an uplink of another host.
type BenchmarkFlow struct {
	Number uint32 `json:"number"`
	Switch string `json:"switch"`
	// Uplink is this host's, PeerHost the id of the other host, PeerUplink its uplink.
	Uplink     string `json:"uplink"`
	PeerHost   string `json:"peerHost"`
	PeerUplink string `json:"peerUplink"`
	// VLAN, 0 for untagged frames.
	VLAN uint32 `json:"vlan"`
	// MAC of the other uplink's device.
	MAC plan.MAC `json:"mac"`
	// MTU is the length of each packet, in bytes of layer 3.
	MTU uint32 `json:"mtu"`
	// Rate is the most that is sent, in bits per second.
	Rate uint64 `json:"rate"`
}

// EndBenchmark ends a benchmark.
type EndBenchmark struct {
	Run uint32 `json:"run"`
}

// BenchmarkCounts are those of one host.
type BenchmarkCounts struct {
	Sent     []BenchmarkSent     `json:"sent"`
	Received []BenchmarkReceived `json:"received"`
}

// BenchmarkSent is what came of a flow that the host sent.
type BenchmarkSent struct {
	Number uint32 `json:"number"`
	// Frames that were sent, and for how long.
	Frames uint64        `json:"frames"`
	Lasted time.Duration `json:"lasted"`
	// Pings that were sent, those that were answered, and all answers: more are duplicates.
	Pings    uint64 `json:"pings"`
	Answered uint64 `json:"answered"`
	Replies  uint64 `json:"replies"`
	// P50 and P99 of the round-trip times; 0 without an answer.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
}

// BenchmarkReceived is what arrived of a flow.
type BenchmarkReceived struct {
	Number uint32 `json:"number"`
	// Frames that arrived, each once, and Duplicates of them.
	Frames     uint64 `json:"frames"`
	Duplicates uint64 `json:"duplicates"`
}

// RunBenchmark sends and counts frames.
func (k clusterCalls) RunBenchmark(ctx context.Context, q HostBenchmark) error {
	_, err := ask[none](ctx, k.client, k.bench.RunBenchmark, q)
	return err
}

// EndBenchmark ends the host's part, and returns what it counted.
func (k clusterCalls) EndBenchmark(ctx context.Context, q EndBenchmark) (*BenchmarkCounts, error) {
	return ask[*BenchmarkCounts](ctx, k.client, k.bench.EndBenchmark, q)
}

// RunBenchmark sends and counts frames.
func (a clusterAdapter) RunBenchmark(ctx context.Context, m *agentv1.RunBenchmarkRequest) (
	*agentv1.RunBenchmarkResponse, error) {
	return answer[agentv1.RunBenchmarkResponse](ctx, a.adapter, m, done(a.service.RunBenchmark))
}

// EndBenchmark ends the host's part, and returns what it counted.
func (a clusterAdapter) EndBenchmark(ctx context.Context, m *agentv1.EndBenchmarkRequest) (
	*agentv1.EndBenchmarkResponse, error) {
	return answer[agentv1.EndBenchmarkResponse](ctx, a.adapter, m, a.service.EndBenchmark)
}

// BenchmarkOptions say which hosts send how much.
type BenchmarkOptions struct {
	// Hosts by name; empty for all that match the labels.
	Hosts []string `json:"hosts"`
	// Labels that the hosts have; empty for all.
	Labels map[string]string `json:"labels"`
	// Rate is how much each uplink sends and receives at most, in bits per second; 0 for 10 Mbit/s.
	Rate uint64 `json:"rate"`
	// Duration is how long all hosts send, 1 s to 1 min; 0 for 5 s.
	Duration time.Duration `json:"duration"`
}

// NetworkBenchmark is what came of a benchmark.
type NetworkBenchmark struct {
	// Stopped says why it ended early; "" where it did not. What was counted until then is there.
	Stopped string `json:"stopped"`
	// Hosts that took part, Without those that did not.
	Hosts   []string           `json:"hosts"`
	Without []BenchmarkLeftOut `json:"without"`
	// Rate is what each uplink sent and received at most, in bits per second.
	Rate     uint64          `json:"rate"`
	Duration time.Duration   `json:"duration"`
	Pairs    []BenchmarkPair `json:"pairs"`
	// Findings say which pairs have faults, and what these share that the others do not.
	Findings []string `json:"findings"`
}

// BenchmarkLeftOut is a host that took no part.
type BenchmarkLeftOut struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// BenchmarkPair is what was measured from an uplink of one host to one of another, while all others sent too.
type BenchmarkPair struct {
	From       string `json:"from"`
	FromUplink string `json:"fromUplink"`
	To         string `json:"to"`
	ToUplink   string `json:"toUplink"`
	Switch     string `json:"switch"`
	// VLAN, 0 for untagged frames.
	VLAN uint32 `json:"vlan"`
	// Rate is the most that was to be sent, Offered what was sent, Throughput what arrived, in bits per second of layer
	// 3.
	Rate       uint64 `json:"rate"`
	Offered    uint64 `json:"offered"`
	Throughput uint64 `json:"throughput"`
	// Sent are frames, Lost those that did not arrive, Duplicates those that arrived again.
	Sent       uint64 `json:"sent"`
	Lost       uint64 `json:"lost"`
	Duplicates uint64 `json:"duplicates"`
	// Pings that were sent meanwhile, those without an answer, and all answers.
	Pings     uint64 `json:"pings"`
	PingsLost uint64 `json:"pingsLost"`
	Replies   uint64 `json:"replies"`
	// P50 and P99 of their round-trip times; 0 without an answer.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	// Faults are no-answer, slow, lossy, late and duplicates.
	Faults []string `json:"faults"`
}

// Benchmark has hosts send to one another at once, and calls progress with what is being done, for people. It ends on
// all hosts when ctx ends.
func (h healthCalls) Benchmark(ctx context.Context, q BenchmarkOptions, progress func(string)) (*NetworkBenchmark,
	error) {
	m := &controllerv1.RunBenchmarkRequest{}
	if err := h.fleet.codec.Put(q, m); err != nil {
		return nil, NewError(Invalid, err.Error())
	}
	s, err := h.rpc.RunBenchmark(ctx, m)
	if err != nil {
		return nil, h.fleet.explain(ctx, err)
	}
	defer s.Close()
	for {
		r, err := s.Receive()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case ctx.Err() != nil:
			return nil, NewError(Internal, "the benchmark was ended")
		case err != nil:
			return nil, h.fleet.explain(ctx, err)
		case r.GetResult() == nil:
			progress(r.GetProgress())
			continue
		}
		out := &NetworkBenchmark{}
		return out, h.fleet.codec.Get(r.GetResult(), out)
	}
}
