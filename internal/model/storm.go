package model

import (
	"fmt"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// frameCost is one frame in a bucket: spending is counted in billionths of a frame, so that each nanosecond refills
// exactly the rate.
const frameCost = int64(time.Second)

// bucket is what a port has spent of one rate of its storm control, at the time of the last frame that passed.
type bucket struct {
	spent int64 // billionths of a frame
	at    time.Duration
}

// Spent is what a port has spent of its storm control at an instant, for one kind of frame: abi.ClassBroadcast,
// abi.ClassMulticast, or abi.ClassUnicast for unknown destinations.
type Spent struct {
	Port  plan.PortID
	Class int
	// Billionths of a frame.
	Billionths int64
	At         time.Duration
}

// stormControl decides whether a port's frame with many possible receivers is within the port's rate (frame-rules §4,
// D27). A frame above the rate does not change what was spent.
func stormControl(r *run) abi.Reason {
	if r.from == nil || (r.target != unknown && r.target != group) {
		return abi.ReasonNone
	}
	rate := r.stormRate()
	if rate.V == 0 {
		return abi.ReasonNone
	}
	b := &r.from.tally.buckets[r.head.class]
	spent := b.left(r.now, int64(rate.V)) + frameCost
	if spent > depth(rate.V, r.from.Policy.StormControl.Burst.V)*frameCost {
		if r.target == unknown && len(r.sw.uplinks) > 0 { // outside is unknown: the frame may leave
			r.keptFromPorts = true
			return abi.ReasonNone
		}
		return abi.ReasonStormControl
	}
	*b = bucket{spent: spent, at: r.now}
	return abi.ReasonNone
}

// stormRate is the rate that applies to the frame.
func (r *run) stormRate() plan.Value[int] {
	s := &r.from.Policy.StormControl
	return [...]plan.Value[int]{unicast: s.UnknownUnicast, multicast: s.Multicast, broadcast: s.Broadcast}[r.head.class]
}

// left is how much of the budget is still used at an instant, at the given rate in frames per second.
func (b *bucket) left(now time.Duration, rate int64) int64 {
	passed := int64(now - b.at)
	if passed >= b.spent/rate+1 {
		return 0
	}
	return max(0, b.spent-passed*rate)
}

// depth is how many frames may pass at once.
func depth(rate int, burst time.Duration) int64 {
	return max(1, int64(rate)*int64(burst)/int64(time.Second))
}

func (w why) stormWords() string {
	kind := [...]string{unicast: "frames for unknown destinations", multicast: "multicast frames",
		broadcast: "broadcast frames"}[w.head.class]
	rate := w.stormRate()
	return fmt.Sprintf("port %s has used up its storm control: %d %s per second, as set by the %s", w.from.ID, rate.V,
		kind, words(rate.From))
}
