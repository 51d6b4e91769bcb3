package together_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/controller/together"
)

// way is how long a message takes on a network: short as a rule, long now and then.
func way(rng *rand.Rand) int64 {
	d := 50_000 + rng.Int64N(100_000)
	if rng.IntN(4) == 0 {
		d += rng.Int64N(int64(400 * time.Millisecond))
	}
	return d
}

// What is known of a clock is never wrong by more than is said: not with clocks that are hours apart and drift, on a
// network whose ways there and back take different times.
func TestS101_AClockIsKnownAsWellAsIsSaid(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 200 {
		ahead, drift := rng.Int64N(int64(20*time.Hour))-int64(10*time.Hour), rng.Float64()*160e-6-80e-6
		theirs := func(now int64) int64 { return now + ahead + int64(drift*float64(now)) }
		var c together.Clock
		var worst int64
		now := int64(time.Hour)
		for n := range 60 {
			s := together.Sample{Sent: now}
			came := now + way(rng)
			went := came + rng.Int64N(50_000)
			s.Came, s.Went, s.Received = theirs(came), theirs(went), went+way(rng)
			c.Add(s)
			now = s.Received + rng.Int64N(int64(20*time.Second))
			got, bound, known := c.Ahead(now)
			if off := abs(got - (theirs(now) - now)); !known || off > bound {
				t.Fatalf("after %d answers the clock is known within %s, and it is %s off", n+1, time.Duration(bound),
					time.Duration(off))
			}
			if n > 20 {
				worst = max(worst, bound)
			}
		}
		if worst > int64(20*time.Millisecond) {
			t.Errorf("the clock is known within %s at most", time.Duration(worst))
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// A machine that was suspended has another clock then; what was known before does not count.
func TestS101_AClockThatStoodStillIsLearnedAnew(t *testing.T) {
	var c together.Clock
	ask := func(now, ahead int64) {
		c.Add(together.Sample{Sent: now, Came: now + 100 + ahead, Went: now + 100 + ahead, Received: now + 200})
	}
	for i := range int64(8) {
		ask(i*1000, 5_000_000)
	}
	ask(9000, -70_000_000)
	if got, bound, known := c.Ahead(9300); !known || abs(got+70_000_000) > bound || c.Samples() != 1 {
		t.Errorf("it is known as %d within %d, by %d answers", got, bound, c.Samples())
	}
}

func TestS101_AnAnswerThatCantBeIsLeftOut(t *testing.T) {
	for name, s := range map[string]together.Sample{
		"it came before it was asked for":       {Sent: 100, Came: 1, Went: 2, Received: 50},
		"the host answered before it was asked": {Sent: 1, Came: 20, Went: 10, Received: 50},
		"the host took longer than there was":   {Sent: 1, Came: 1, Went: 1000, Received: 50},
	} {
		t.Run(name, func(t *testing.T) {
			var c together.Clock
			c.Add(s)
			if _, _, known := c.Ahead(100); known {
				t.Error("it is believed")
			}
		})
	}
}
