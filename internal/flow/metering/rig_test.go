package metering

import (
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// source is a kernel that counts the frames that the test names.
type source struct {
	mu      sync.Mutex
	number  uint64
	pending map[flow.Key]*flow.Counts
	points  flow.Points
	losses  []flow.Loss
	drains  int
	drain   func() // called before each drain, unless nil
	failing error
}

func newSource() *source {
	port := func(name, group string) flow.Point {
		return flow.Point{ID: plan.PortID{Switch: "lab", Name: name}, PortGroup: group, Number: 1, Uplink: group == ""}
	}
	return &source{pending: map[flow.Key]*flow.Counts{}, points: flow.Points{1: port("vm1", "web"),
		2: port("vm2", "db"), 3: port("u1", "")}}
}

func (s *source) Drain(add func(flow.Batch) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drains++
	if s.drain != nil {
		s.drain()
	}
	if s.failing != nil {
		return s.failing
	}
	s.number++
	b := flow.Batch{Number: s.number}
	for k, c := range s.pending {
		b.Keys, b.Counts = append(b.Keys, k), append(b.Counts, *c)
	}
	if err := add(b); err != nil {
		return err
	}
	s.pending = map[flow.Key]*flow.Counts{}
	return nil
}

func (s *source) Points() flow.Points {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.points)
}

func (s *source) Losses() ([]flow.Loss, error) { return s.losses, nil }

// pass counts frames of a flow.
func (s *source) pass(k flow.Key, packets uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(k, packets)
}

// count is pass for callers that hold the lock.
func (s *source) count(k flow.Key, packets uint64) {
	now := time.Now().UnixMilli()
	c := flow.Counts{Packets: packets, Bytes: 100 * packets, FrameBytes: 114 * packets, First: now, Last: now, In: 1,
		Out: 3}
	if old := s.pending[k]; old != nil {
		old.Add(c)
		return
	}
	s.pending[k] = &c
}

func (s *source) drained() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drains
}

// collectors stores what it gets.
type collectors struct {
	mu       sync.Mutex
	settings []plan.IPFIX
	records  []flow.Record
	closed   bool
	gate     chan struct{} // Export waits for it to be closed; nil for nothing
}

func (c *collectors) Budget(meter.Instant) int               { return 1 << 20 }
func (c *collectors) Tick(meter.Instant, func() meter.State) {}
func (c *collectors) Status() ([]export.Status, error) {
	return []export.Status{{Collector: export.Collector{Address: "192.0.2.9", Port: 4739, Shape: export.Standard},
		State: export.Sending, Lost: export.Loss{Records: 3}}}, nil
}
func (c *collectors) Configure(_ meter.Instant, x plan.IPFIX) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings = append(c.settings, x)
}
func (c *collectors) Export(_ meter.Instant, _ flow.Points, records []flow.Record) {
	if c.gate != nil {
		<-c.gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, records...)
}
func (c *collectors) Close(meter.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// sum is how many packets the records contain, by reason.
func (c *collectors) sum() map[flow.EndReason]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[flow.EndReason]uint64{}
	for _, r := range c.records {
		by[r.Reason] += r.Delta.Packets
	}
	return by
}

// rig is a runner on a source.
type rig struct {
	*Runner
	t    *testing.T
	dir  string
	src  *source
	sent *collectors
	ends func()
	plan *plan.Plan // in force
	left map[plan.PortID]bool
}

const every = 10 * time.Millisecond

func newRig(t *testing.T) *rig {
	g := &rig{t: t, dir: t.TempDir(), src: newSource()}
	g.start()
	return g
}

// start begins a runner, like the next agent.
func (g *rig) start() {
	g.sent = &collectors{}
	r := Start(Options{Log: slog.New(slog.DiscardHandler), Dir: g.dir, Origin: "boot", Source: g.src, Every: every,
		Export: func(now meter.Instant, _ string, x plan.IPFIX) Collectors { g.sent.Configure(now, x); return g.sent }})
	g.Runner, g.ends = r, sync.OnceFunc(func() {
		if err := r.Close(); err != nil {
			g.t.Error(err)
		}
	})
	g.t.Cleanup(g.ends)
}

// settle activates a plan in which the named ports are metered.
func (g *rig) settle(idle time.Duration, names ...string) {
	g.t.Helper()
	on := func(name string) plan.Monitoring {
		m := plan.Monitoring{Observe: plan.Value[spec.Observe]{V: spec.ObserveBoth}}
		for _, n := range names {
			m.IPFIX.V = m.IPFIX.V || n == name
		}
		return m
	}
	sw := &plan.Switch{Name: "lab", IPFIX: plan.IPFIX{ActiveTimeout: time.Minute, IdleTimeout: idle, MaxFlows: 1000,
		Collectors: []plan.Collector{{Address: "192.0.2.9", Port: 4739, Shape: spec.ShapeStandard}}}}
	for _, name := range []string{"vm1", "vm2"} {
		sw.Ports = append(sw.Ports, &plan.Port{ID: plan.PortID{Switch: "lab", Name: name},
			PortGroup: map[string]string{"vm1": "web", "vm2": "db"}[name],
			Policy:    &plan.Effective{Monitoring: on(name)}})
	}
	sw.Uplinks = []*plan.Uplink{{ID: plan.PortID{Switch: "lab", Name: "u1"}, Monitoring: on("u1")}}
	g.plan = &plan.Plan{Switches: []*plan.Switch{sw}}
	g.Settled(g.plan, map[string][]string{"lab": {"web", "db", "empty"}}, g.left)
}

// await waits until f returns true.
func (g *rig) await(what string, f func() bool) {
	g.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// key is flow n at a point.
func key(point uint16, n int) flow.Key {
	return flow.Key{Point: point, EtherType: flow.IPv4, Protocol: 6, Src: [16]byte{192, 0, 2, byte(n)},
		Dst: [16]byte{198, 51, 100, 1}, SrcPort: uint16(1000 + n), DstPort: 443,
		Direction: flow.Direction(n % 2), VLAN: 100}
}
