package difftest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// crowded is a tunnel with that many segments, one port in each, and as many MACs of other hosts in each.
func crowded(b *testing.B, segments, macs int) *dataplane.CrossingRecorder {
	b.Helper()
	var text strings.Builder
	text.WriteString("switches:\n- name: s\n  tunnel: {endpoints: [{address: 192.0.2.1}], peers: [{address: " +
		"192.0.2.2}]}\n  portGroups:\n")
	for n := range segments {
		fmt.Fprintf(&text, "  - {name: g%d, overlay: {vni: %d}}\n", n, n+1)
	}
	text.WriteString("ports:\n")
	for n := range segments {
		fmt.Fprintf(&text, "- {name: p%d, switch: s, portGroup: g%d, device: d%d}\n", n, n, n)
	}
	cfg, err := spec.Parse("crowded.yaml", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		b.Fatal(err)
	}
	r, err := dataplane.NewCrossingRecorder()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Close(); err != nil {
			b.Error(err)
		}
	})
	sw := p.Switches[0]
	if err := r.Set(binding.Desired{Plan: p, Facts: plan.Facts{sw.Tunnel.ID: crossingFacts()[0]},
		Reach: map[string]overlay.Reach{"s": overlay.Of(sw)}}, time.Second); err != nil {
		b.Fatal(err)
	}
	var all []overlay.Location
	for n := range segments {
		for m := range macs {
			all = append(all, overlay.Location{Key: overlay.Key{VNI: uint32(n + 1), MAC: remoteMAC(n, m)},
				Endpoint: netip.MustParseAddr("192.0.2.2")})
		}
	}
	if err := r.Locate("s", true, all, nil); err != nil {
		b.Fatal(err)
	}
	return r
}

func remoteMAC(segment, n int) plan.MAC {
	m := plan.MAC{2, 9}
	binary.BigEndian.PutUint32(m[2:], uint32(segment)<<16|uint32(n))
	return m
}

// BenchmarkLeave is what the tunnel's program takes for a frame to a known MAC, of all MACs one after the other at
// random: in few segments with few MACs, and in 500 with 100,000. "again" are 20 frames to each, "once" is one, with
// nothing in the CPU's caches.
func BenchmarkLeave(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("the kernel program needs root")
	}
	for _, size := range []struct{ segments, macs int }{{2, 5}, {500, 200}} {
		b.Run(fmt.Sprintf("segments=%d,macs=%d", size.segments, size.segments*size.macs), func(b *testing.B) {
			r := crowded(b, size.segments, size.macs)
			for name, runs := range map[string]int{"again": 20, "once": 1} {
				b.Run(name, func(b *testing.B) { leaves(b, r, size.segments, size.macs, runs) })
			}
		})
	}
}

func leaves(b *testing.B, r *dataplane.CrossingRecorder, segments, macs, runs int) {
	random := rand.New(rand.NewPCG(1, 1))
	var took, frames float64
	for b.Loop() {
		n := random.IntN(segments)
		mac := remoteMAC(n, random.IntN(macs))
		frame := append(mac[:], 2, 0, 0, 0, 0, 1, 8, 0)
		frame = append(frame, make([]byte, 60)...)
		d, err := r.Cost("s", uint32(n+1), frame, runs)
		if err != nil {
			b.Fatal(err)
		}
		took += float64(d.Nanoseconds())
		frames++
	}
	b.ReportMetric(took/frames, "ns/frame")
}
