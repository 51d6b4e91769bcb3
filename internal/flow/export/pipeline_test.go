package export

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow"
	"heddle/internal/flow/meter"
)

// source delivers each of its batches once.
type source struct{ batches []flow.Batch }

func (s *source) Drain(add func(flow.Batch) error) error {
	for ; len(s.batches) > 0; s.batches = s.batches[1:] {
		if err := add(s.batches[0]); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) Points() flow.Points          { return points() }
func (s *source) Losses() ([]flow.Loss, error) { return nil, nil }

func millionBatches(number uint64) (all []flow.Batch) {
	r := record(0)
	for i := 0; i < 1<<20; i += 1024 {
		b := flow.Batch{Number: number + uint64(i/1024)}
		for j := i; j < i+1024; j++ {
			k := r.Key
			binary.BigEndian.PutUint32(k.Src[:], uint32(j)*2654435761)
			b.Keys, b.Counts = append(b.Keys, k), append(b.Counts, r.Delta)
		}
		all = append(all, b)
	}
	return all
}

// The path of a flow through the agent: moving it into a table of a million, making its record, encoding and sending
// it. The result is the time for each, without that of the kernel's tables.
func BenchmarkAgent(b *testing.B) {
	for _, shape := range []Shape{Standard, VDS} {
		b.Run(fmt.Sprint(shape), func(b *testing.B) {
			conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			x, err := New(begin, Config{Rate: 1e9,
				Collectors: []Collector{{Address: "127.0.0.1", Port: conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(),
					Shape: shape}}})
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close(begin)
			src := &source{}
			m, err := meter.New(meter.Options{Dir: b.TempDir(), Source: src, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			set := meter.DefaultSettings()
			if err := m.Configure(begin, map[string]meter.Switch{"lab": {Settings: set, Exporter: x}}); err != nil {
				b.Fatal(err)
			}
			now, number := begin, uint64(1)
			var used time.Duration
			b.ResetTimer()
			for n := 0; n < b.N; n += 1 << 20 {
				b.StopTimer()
				src.batches = millionBatches(number)
				number += 2000
				from := cpuTime(b)
				b.StartTimer()
				// All flows are there; a minute later the records of all are due.
				for range 3 {
					now.Wall, now.Up = now.Wall.Add(10*time.Second), now.Up+10*time.Second
					if _, err := m.Step(now); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				used += cpuTime(b) - from
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(float64(used)/float64((b.N+1<<20-1)>>20<<20), "cpu-ns/record")
			if st := x.Status()[0]; int(st.Records) < b.N {
				b.Fatalf("%d records were sent: %+v", st.Records, st)
			}
			if err := m.Stop(context.Background(), func() (meter.Instant, error) { return now, nil }); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// cpuTime is the CPU time of the process, so that others on the machine do not count.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
