package traffic

import (
	"math/bits"
	"time"
)

const (
	subBits    = 5 // 32 steps per power of two: a step is at most 3.2 % wide
	subBuckets = 1 << subBits
)

// histogram counts durations in steps that grow with the value, so that a million samples need 15 kB and no sorting.
type histogram struct {
	buckets [(64 - subBits + 1) * subBuckets]uint64
	count   uint64
	largest time.Duration
}

// Latency is the distribution of durations, in seconds; the percentiles are exact to 3 %.
type Latency struct {
	P50 float64 `json:"p50_s"`
	P99 float64 `json:"p99_s"`
	Max float64 `json:"max_s"`
}

func bucketOf(ns uint64) int {
	if ns < subBuckets {
		return int(ns)
	}
	shift := bits.Len64(ns) - subBits - 1
	return (shift+1)<<subBits + int(ns>>shift) - subBuckets
}

// lowerBound is the smallest value of a bucket.
func lowerBound(bucket int) uint64 {
	if bucket < subBuckets {
		return uint64(bucket)
	}
	shift := bucket>>subBits - 1
	return uint64(bucket&(subBuckets-1)+subBuckets) << shift
}

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(uint64(max(d, 0)))]++
	h.count++
	h.largest = max(h.largest, d)
}

// quantile is the value below which the fraction q (0–1) of the durations is.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	var seen uint64
	for i, n := range h.buckets {
		if seen += n; seen > rank {
			return min(time.Duration(lowerBound(i)), h.largest)
		}
	}
	return h.largest
}

func (h *histogram) latency() Latency {
	return Latency{P50: h.quantile(0.5).Seconds(), P99: h.quantile(0.99).Seconds(), Max: h.largest.Seconds()}
}

// join adds the durations of another histogram.
func (h *histogram) join(o *histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.count += o.count
	h.largest = max(h.largest, o.largest)
}
