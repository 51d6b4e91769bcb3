package meter

import (
	"encoding/binary"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow"
)

// perSecond is how many flows begin in a second of the churn benchmarks: short ones, as those of a host that answers
// connections.
const perSecond = 35_000

// churning replaces the kernel while short flows come all the time.
type churning struct {
	*kernel
	begun  uint32 // flows
	batch  flow.Batch
	now    time.Time
	biflow bool
	fresh  int // how many flows begin before the next drain
	number uint64
}

// inDrain is how many flows come in a part of a batch.
const inDrain = 2048

func newChurning(biflow bool) *churning {
	return &churning{kernel: newKernel(), biflow: biflow, batch: flow.Batch{Keys: make([]flow.Key, inDrain),
		Counts: make([]flow.Counts, inDrain)}}
}

// refill makes the next part of a batch: each flow began and ended within the round.
func (s *churning) refill(n int) flow.Batch {
	b := s.batch
	b.Keys, b.Counts, b.Number = b.Keys[:n], b.Counts[:n], s.number
	ms := s.now.UnixMilli() - 100
	for i := range b.Keys {
		k := key(uint16(s.begun))
		binary.BigEndian.PutUint32(k.Src[:], s.begun*2654435761)
		if s.biflow && i%2 == 1 {
			k, _ = opposite(&b.Keys[i-1])
		} else {
			s.begun++
		}
		b.Keys[i] = k
		b.Counts[i] = flow.Counts{Packets: 5, Bytes: 300, FrameBytes: 370, First: ms, Last: ms, In: 1, Out: 2,
			TCPFlags: 0x13, MinTTL: 64, MaxTTL: 64}
	}
	return b
}

func (s *churning) Drain(add func(flow.Batch) error) error {
	s.number++
	for s.fresh > 0 {
		n := min(s.fresh, inDrain)
		s.fresh -= n
		if err := add(s.refill(n)); err != nil {
			return err
		}
	}
	return nil
}

// last begins that many flows that last.
func (s *churning) last(b *testing.B, m *Meter, now Instant, flows int) {
	if _, err := m.Step(now); err != nil {
		b.Fatal(err)
	}
	s.number++
	long := manyKeys(flows)
	long.Number = s.number
	for i := range long.Keys {
		long.Keys[i].DstPort++
	}
	if err := m.fold(long, now); err != nil {
		b.Fatal(err)
	}
}

// taker is an exporter that takes whatever it gets.
type taker struct{ records int }

func (t *taker) Budget(Instant) int                                { return slice }
func (t *taker) Export(_ Instant, _ flow.Points, rs []flow.Record) { t.records += len(rs) }
func (t *taker) Tick(_ Instant, state func() State)                { state() }

// memoryDir is a directory whose files are in memory, as an agent's run directory is.
func memoryDir(b *testing.B) string {
	dir, err := os.MkdirTemp("/dev/shm", "meter-")
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Short flows begin, end, are reported 2 s later and freed, all the time: the time for each. Other work on the host has
// emptied the caches between two rounds.
func BenchmarkChurn(b *testing.B) { benchmarkChurn(b, false, 0) }

// The same with both directions in one record: the time for each direction.
func BenchmarkChurnBiflow(b *testing.B) { benchmarkChurn(b, true, 0) }

// The same beside a million flows that last.
func BenchmarkChurnBesideAMillion(b *testing.B) { benchmarkChurn(b, false, million) }

// threadTime is the CPU time of this thread.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

func benchmarkChurn(b *testing.B, biflow bool, lasting int) {
	s, x := newChurning(biflow), &taker{}
	m, err := New(Options{Dir: memoryDir(b), Origin: "boot", Source: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.release)
	now := Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}
	set := Settings{MaxFlows: 2 << 20, Biflow: biflow}
	if lasting > 0 {
		set.IdleTimeout, set.ActiveTimeout = time.Hour, time.Hour
	}
	if err := m.Configure(now, map[string]Switch{"lab": {Settings: set, Exporter: x}}); err != nil {
		b.Fatal(err)
	}
	if lasting > 0 {
		s.last(b, m, now, lasting)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other := make([]uint64, 1<<20)
	due, spent, steady := now.Up+time.Second, time.Duration(0), now.Up+5*time.Second
	for begun, measured := 0, false; begun < b.N || !measured; {
		for i := 0; i < len(other); i += 8 {
			other[i]++
		}
		pass := due - now.Up
		now.Up, now.Wall = now.Up+pass, now.Wall.Add(pass)
		n := int(perSecond * pass / time.Second)
		s.fresh, s.now = n, now.Wall
		if !measured && now.Up > steady { // as many flows end as begin
			measured, spent, begun = true, 0, 0
		}
		begun += n
		start := threadTime(b)
		wait, err := m.Step(now)
		if err != nil {
			b.Fatal(err)
		}
		spent += threadTime(b) - start
		due = now.Up + wait
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/flow")
	b.ReportMetric(0, "ns/op")
	if x.records == 0 {
		b.Fatal("no flow has ended")
	}
}
