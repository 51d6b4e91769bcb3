package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkClaims claims and releases ports of 8 port groups, by 64 callers at once, with fsync and with the usual time
// to collect writes. It reports how much etcd's database grows with each change.
func BenchmarkClaims(b *testing.B) {
	s, err := Open(b.Context(), Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for g := range 8 {
		group := fmt.Sprint("dvs/g", g)
		change := Change{Key: Key{KindPortGroup, group}, Doc: []byte(`{}`)}
		if _, err := s.Write(b.Context(), []Change{change}); err != nil {
			b.Fatal(err)
		}
		if err := s.Resize(b.Context(), group, 3200, nil); err != nil {
			b.Fatal(err)
		}
	}
	before, err := s.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	start := s.Revision()
	var callers, slowest atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		me := callers.Add(1)
		for i := 0; p.Next(); i++ {
			r := ClaimRequest{PortGroup: fmt.Sprint("dvs/g", me%8), Binding: Binding{Host: fmt.Sprint("host", me),
				VM: fmt.Sprintf("6ba7b810-9dad-11d1-80b4-%012d", me), Adapter: fmt.Sprint("net", i),
				MAC: fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", me, i>>16, i>>8&255, i&255)}}
			began := time.Now()
			if _, err := s.Claim(b.Context(), r); err != nil {
				b.Error(err)
				return
			}
			for took := int64(time.Since(began)); ; {
				was := slowest.Load()
				if took <= was || slowest.CompareAndSwap(was, took) {
					break
				}
			}
		}
	})
	b.StopTimer()
	after, err := s.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.Members[0].Health.Size-before.Members[0].Health.Size)/float64(b.N), "B-on-disk/claim")
	b.ReportMetric(float64(b.N)/float64(s.Revision()-start), "claims/transaction")
	b.ReportMetric(float64(slowest.Load())/1e6, "ms-slowest")
}

// BenchmarkStart opens a store that has the bindings of 2,500 hosts with 100 ports each.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(b.Context(), Options{Dir: dir, Fast: true})
	if err != nil {
		b.Fatal(err)
	}
	const chunks = 2500 * 100 / chunkPorts
	for at := 0; at < chunks; {
		var batch []Change
		for ; at < chunks && len(batch) < 64; at++ {
			c, err := decodeChunk(chunkKey("dvs/web", int64(at)).Name, []byte(`{}`))
			if err != nil {
				b.Fatal(err)
			}
			c.add(chunkPorts)
			for id := range c.free {
				p := &Port{ID: id, Doc: c.free[id], Binding: &Binding{Host: fmt.Sprint("host", at/3), Adapter: "net0",
					VM: fmt.Sprintf("6ba7b810-9dad-11d1-80b4-%012d", at), MAC: "02:00:00:00:00:01"}}
				if err := c.set(p); err != nil {
					b.Fatal(err)
				}
			}
			batch = append(batch, Change{Key: chunkKey("dvs/web", int64(at)), Doc: c.encode()})
		}
		if _, err := s.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
	for b.Loop() {
		s, err := Open(b.Context(), Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if got := len(s.List(KindPorts)); got != chunks {
			b.Fatalf("%d chunks", got)
		}
		s.Close()
	}
}
