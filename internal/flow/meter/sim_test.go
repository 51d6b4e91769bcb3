package meter

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/plan"
)

// kernel replaces the kernel's tables: counts come out in batches, and come again until they were confirmed.
type kernel struct {
	counting map[flow.Key]flow.Counts
	order    []flow.Key
	out      []flow.Batch // drained and not confirmed
	number   uint64
	size     int // of a batch
	points   flow.Points
	losses   []flow.Loss
	// dies is called before a batch is confirmed and after it.
	dies func() bool
}

var errDied = errors.New("killed")

func newKernel() *kernel {
	k := &kernel{counting: map[flow.Key]flow.Counts{}, size: 3, dies: func() bool { return false },
		points: flow.Points{}}
	for slot, name := range map[uint16]string{1: "vm1", 2: "vm2", 3: "vm3"} {
		k.points[slot] = flow.Point{ID: plan.PortID{Switch: "lab", Name: name}, Number: uint32(slot) + 10,
			PortGroup: "web"}
	}
	k.points[9] = flow.Point{ID: plan.PortID{Switch: "lab", Name: "uplink1"}, Number: 2, Uplink: true}
	return k
}

func (k *kernel) count(key flow.Key, c flow.Counts) {
	old, ok := k.counting[key]
	if !ok {
		k.order = append(k.order, key)
	}
	old.Add(c)
	k.counting[key] = old
}

func (k *kernel) Drain(add func(flow.Batch) error) error {
	if err := k.deliver(add); err != nil {
		return err
	}
	for i := 0; i < len(k.order); i += k.size {
		k.number++
		b := flow.Batch{Number: k.number}
		for _, key := range k.order[i:min(i+k.size, len(k.order))] {
			b.Keys, b.Counts = append(b.Keys, key), append(b.Counts, k.counting[key])
		}
		k.out = append(k.out, b)
	}
	clear(k.counting)
	k.order = nil
	return k.deliver(add)
}

func (k *kernel) deliver(add func(flow.Batch) error) error {
	for len(k.out) > 0 {
		// In two parts, as the contract allows.
		b := k.out[0]
		cut := rand.IntN(len(b.Keys) + 1)
		for _, part := range []flow.Batch{{Number: b.Number, Keys: b.Keys[:cut], Counts: b.Counts[:cut]},
			{Number: b.Number, Keys: b.Keys[cut:], Counts: b.Counts[cut:]}} {
			if err := add(part); err != nil {
				return err
			}
			if k.dies() {
				return errDied
			}
		}
		k.out = k.out[1:]
		if k.dies() {
			return errDied
		}
	}
	return nil
}

func (k *kernel) Points() flow.Points          { return k.points }
func (k *kernel) Losses() ([]flow.Loss, error) { return k.losses, nil }

// sink is an exporter that stores all it gets.
type sink struct {
	budget  int // per step; 0 = no limit
	left    int
	records []flow.Record
	at      []Instant
	state   State
	dies    func() bool
}

func (s *sink) Budget(Instant) int {
	if s.budget == 0 {
		return 1 << 20
	}
	return s.left
}

func (s *sink) Export(now Instant, _ flow.Points, records []flow.Record) {
	s.left -= len(records)
	for _, r := range records {
		if r.Reverse != nil {
			reverse := *r.Reverse
			r.Reverse = &reverse
		}
		s.records, s.at = append(s.records, r), append(s.at, now)
	}
	if s.dies != nil && s.dies() {
		panic(errDied)
	}
}

func (s *sink) Tick(_ Instant, state func() State) { s.state = state() }

// world is a host whose clock the test advances.
type world struct {
	t      *testing.T
	dir    string
	now    Instant
	kernel *kernel
	sink   *sink
	set    Settings
	m      *Meter
}

func newWorld(t *testing.T, set Settings) *world {
	w := &world{t: t, dir: t.TempDir(), kernel: newKernel(), sink: &sink{}, set: set,
		now: Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}}
	w.start()
	t.Cleanup(func() { w.m.release() })
	return w
}

func (w *world) start() {
	w.t.Helper()
	m, err := New(Options{Dir: w.dir, Origin: "boot", Source: w.kernel, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.m = m
	if err := m.Configure(w.now, map[string]Switch{"lab": {Settings: w.set, Exporter: w.sink}}); err != nil {
		w.t.Fatal(err)
	}
}

// kill ends the agent like a kill between two calls, and starts its successor.
func (w *world) kill() {
	w.m.release()
	w.start()
}

func (w *world) pass(d time.Duration) { w.now.Wall, w.now.Up = w.now.Wall.Add(d), w.now.Up+d }

func (w *world) step() {
	w.t.Helper()
	w.sink.left = w.sink.budget
	if _, err := w.m.Step(w.now); err != nil {
		w.t.Fatal(err)
	}
}

// run lets time pass in steps of a second.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= time.Second {
		w.pass(min(d, time.Second))
		w.step()
	}
}

// send counts packets that pass now.
func (w *world) send(k flow.Key, packets uint64) {
	ms := w.now.Wall.UnixMilli()
	w.kernel.count(k, flow.Counts{Packets: packets, Bytes: packets * 100, FrameBytes: packets * 114, First: ms,
		Last: ms, In: 1, Out: 2,
		TCPFlags: 0x10, MinTTL: 64, MaxTTL: 64})
}

// key is a TCP flow that goes out to vm2.
func key(port uint16) flow.Key {
	return flow.Key{Point: 2, VLAN: 100, EtherType: flow.IPv4, Direction: flow.Egress, Protocol: 6,
		SrcMAC: plan.MAC{2, 0, 0, 0, 1, 1},
		DstMAC: plan.MAC{2, 0, 0, 0, 1, 2}, Src: [16]byte{10, 0, 0, 1}, Dst: [16]byte{10, 0, 0, 2}, SrcPort: port,
		DstPort: 80}
}

// take returns the records since the last call.
func (w *world) take() []flow.Record {
	r := w.sink.records
	w.sink.records, w.sink.at = nil, nil
	return r
}
