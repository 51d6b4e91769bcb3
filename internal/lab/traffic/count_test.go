package traffic

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// arrive feeds numbers a millisecond apart and closes the run with its end mark.
func arrive(sent uint64, numbers ...uint64) Received {
	c, now := &counter{}, time.Unix(0, 0)
	for _, n := range numbers {
		now = now.Add(time.Millisecond)
		c.add(n, now)
	}
	c.finish(sent, now.Add(time.Millisecond))
	return c.total()
}

func TestCounter(t *testing.T) {
	ms := time.Millisecond.Seconds()
	tests := []struct {
		name string
		got  Received
		want Received
	}{
		{"in order", arrive(3, 0, 1, 2), Received{Sent: 3, Received: 3}},
		{"lost in the middle", arrive(6, 0, 3, 5), Received{Sent: 6, Received: 3, Lost: 3, LongestLoss: 2}},
		{"lost at the start", arrive(4, 3), Received{Sent: 4, Received: 1, Lost: 3, LongestLoss: 3}},
		{"lost at the end", arrive(9, 0, 2, 3), Received{Sent: 9, Received: 3, Lost: 6, LongestLoss: 5}},
		{"all lost", arrive(5), Received{Sent: 5, Lost: 5, LongestLoss: 5}},
		{"repeated", arrive(3, 0, 1, 1, 1, 2), Received{Sent: 3, Received: 3, Duplicated: 2}},
		{"late", arrive(4, 0, 2, 1, 3), Received{Sent: 4, Received: 4, Reordered: 1}},
		{"late and repeated", arrive(3, 2, 0, 0), Received{Sent: 3, Received: 2, Lost: 1, LongestLoss: 1, Duplicated: 1,
			Reordered: 1}},
		{"beyond the window", arrive(3*window, 0, 2*window+5, 1, 2*window+4),
			Received{Sent: 3 * window, Received: 3, Lost: 3*window - 3, LongestLoss: 2*window + 3, Reordered: 1,
				TooLate: 1}},
	}
	for _, tt := range tests {
		tt.want.Complete = true
		if tt.want.Received > 0 {
			tt.want.LongestGap, tt.want.FirstAt, tt.want.LongestGapAt = ms, 1e6, 1e6
		}
		if tt.got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, tt.got, tt.want)
		}
	}
}

func TestCounterWithoutEndMark(t *testing.T) {
	c := &counter{}
	at := time.Unix(0, 0)
	c.warm(at)
	c.add(0, at.Add(20*time.Millisecond))
	c.add(2, at.Add(25*time.Millisecond))
	want := Received{Sent: 3, Received: 2, Lost: 1, LongestLoss: 1, LongestGap: 0.02,
		FirstAt: 20_000_000}
	if got := c.total(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestCounterAgainstSets compares the counter with the obvious way to count, which keeps everything.
func TestCounterAgainstSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.Uint64Range(1, 200).Draw(t, "sent")
		numbers := rapid.SliceOf(rapid.Uint64Range(0, sent-1)).Draw(t, "numbers")
		want := Received{Sent: sent, Complete: true}
		seen := map[uint64]bool{}
		var highest uint64
		for _, n := range numbers {
			switch {
			case seen[n]:
				want.Duplicated++
			case n < highest:
				want.Reordered++
			}
			seen[n], highest = true, max(highest, n)
		}
		want.Received, want.Lost = uint64(len(seen)), sent-uint64(len(seen))
		var run uint64
		for n := range sent {
			if run++; seen[n] {
				run = 0
			}
			want.LongestLoss = max(want.LongestLoss, run)
		}
		got := arrive(sent, numbers...)
		got.LongestGap, got.FirstAt, got.LongestGapAt = 0, 0, 0
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestHistogram(t *testing.T) {
	for _, ns := range []uint64{0, 1, 31, 32, 33, 63, 64, 1000, 123456, 1<<40 + 12345, 1<<62 + 1} {
		low := lowerBound(bucketOf(ns))
		if low > ns || float64(ns-low) > float64(ns)/subBuckets {
			t.Errorf("%d falls into a bucket from %d", ns, low)
		}
		if low > 0 && bucketOf(low-1) >= bucketOf(low) {
			t.Errorf("bucket of %d is not above that of %d", low, low-1)
		}
	}
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	l := h.latency()
	if l.P50 < 485e-6 || l.P50 > 501e-6 || l.P99 < 960e-6 || l.P99 > 991e-6 || l.Max != 1e-3 {
		t.Errorf("latency of 1…1000 µs: %+v", l)
	}
	if (&histogram{}).latency() != (Latency{}) {
		t.Error("latency of nothing is not zero")
	}
}

func TestEchoSummaryLeavesOutTheLastRequest(t *testing.T) {
	tests := []struct {
		replies []uint64
		perPing float64
	}{{nil, 0}, {[]uint64{3}, 3}, {[]uint64{4, 4, 4, 1}, 4}, {[]uint64{1, 0, 2}, 0.5}}
	for _, tt := range tests {
		var pings []pinged
		var sum uint64
		for _, r := range tt.replies {
			pings = append(pings, pinged{replies: r})
			sum += r
		}
		if e := summarise(pings); e.RepliesPerPing != tt.perPing || e.Replies != sum ||
			e.Requests != uint64(len(pings)) {
			t.Errorf("%v: %+v, want %g per ping", tt.replies, e, tt.perPing)
		}
	}
}

func TestChecksum(t *testing.T) {
	// The example of RFC 1071, section 3, and an odd length.
	if got := Checksum([]byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7}); got != ^uint16(0xddf2) {
		t.Errorf("checksum %#04x", got)
	}
	if got := Checksum([]byte{0xff}); got != ^uint16(0xff00) {
		t.Errorf("checksum of one byte %#04x", got)
	}
}

func TestCounter_SaysWhenTheLongestGapBegan(t *testing.T) {
	c := &counter{}
	at := func(ms int64) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	c.warm(at(0))
	for n, ms := range []int64{5, 10, 60, 65, 95} { // 50 ms of silence from 10 on
		c.add(uint64(n), at(ms))
	}
	c.finish(5, at(100))
	if got := c.total(); got.LongestGap != 0.05 || got.LongestGapAt != at(10).UnixNano() ||
		got.FirstAt != at(5).UnixNano() {
		t.Errorf("%+v", got)
	}
}
