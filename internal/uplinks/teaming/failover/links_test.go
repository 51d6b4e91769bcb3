package failover

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"heddle/internal/plan"
)

var u1 = plan.PortID{Switch: "lab", Name: "uplink1"}

// clock is simulated time.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) time.Time { c.now = c.now.Add(d); return c.now }

func newClock() *clock { return &clock{time.Unix(1000, 0)} }

func TestS43_AnUplinkThatCameBackIsUsedAfterTheUpDelay(t *testing.T) {
	var l Links
	c := newClock()
	see := func(up bool) { l.Observe(u1, up, 0, 100*time.Millisecond, c.now) }
	see(true)
	if why := l.Out(u1, c.now); !why.None() {
		t.Fatalf("out at the first sight: %s", why)
	}
	c.pass(time.Second)
	see(false)
	if why := l.Out(u1, c.now); !why.None() {
		t.Errorf("an uplink without link is out for %q too", why)
	}
	see(true)
	if l.Out(u1, c.now).None() {
		t.Error("used at once after it came back")
	}
	if at, ok := l.Next(); !ok || !at.Equal(c.now.Add(100*time.Millisecond)) {
		t.Errorf("next is %v, %v", at, ok)
	}
	c.pass(99 * time.Millisecond)
	see(false) // the delay begins again
	see(true)
	c.pass(99 * time.Millisecond)
	see(true)
	if l.Out(u1, c.now).None() {
		t.Error("used though it dropped in between")
	}
	c.pass(time.Millisecond)
	see(true)
	if why := l.Out(u1, c.now); !why.None() {
		t.Errorf("still out after the delay: %s", why)
	}
	if at, ok := l.Next(); ok {
		t.Errorf("something is still to come at %v", at)
	}
}

func TestS43_AnotherUpDelayDoesNotTakeAnUplinkOut(t *testing.T) {
	var l Links
	c := newClock()
	l.Observe(u1, false, 0, 0, c.now)
	l.Observe(u1, true, 0, 0, c.now)
	c.pass(time.Second)
	l.Observe(u1, true, 0, 30*time.Minute, c.now)
	if why := l.Out(u1, c.now); !why.None() {
		t.Errorf("out: %s", why)
	}
}

func TestS43_ADropThatNobodySawCountsAsOne(t *testing.T) {
	var l Links
	c := newClock()
	l.Observe(u1, true, 7, time.Second, c.now)
	l.Observe(u1, true, 7, time.Second, c.pass(time.Minute))
	if why := l.Out(u1, c.now); !why.None() {
		t.Fatalf("out without a drop: %s", why)
	}
	l.Observe(u1, true, 8, time.Second, c.pass(time.Minute))
	if l.Out(u1, c.now).None() {
		t.Error("used right after a drop")
	}
	l.Observe(u1, true, 8, time.Second, c.pass(time.Second))
	if why := l.Out(u1, c.now); !why.None() {
		t.Errorf("still out: %s", why)
	}
}

func TestD23_AnUplinkThatFlapsStaysOutUntilItIsCalm(t *testing.T) {
	var l Links
	c := newClock()
	see := func(up bool) { l.Observe(u1, up, 0, 0, c.now) }
	see(true)
	for i := range flapLimit + 1 {
		if why := l.Out(u1, c.now); !why.None() {
			t.Fatalf("out after %d link-downs: %s", i, why)
		}
		see(false)
		c.pass(500 * time.Millisecond)
		see(true)
	}
	if l.Out(u1, c.now).None() {
		t.Fatal("used after 61 link-downs in half a minute")
	}
	c.pass(flapCalm - time.Millisecond)
	see(true)
	if l.Out(u1, c.now).None() {
		t.Error("used before it was up for a minute")
	}
	c.pass(time.Millisecond)
	see(true)
	if why := l.Out(u1, c.now); !why.None() {
		t.Errorf("still out after a minute: %s", why)
	}
	see(false)
	see(true)
	if why := l.Out(u1, c.now); !why.None() {
		t.Errorf("one link-down later it counts as flapping again: %s", why)
	}
	c.pass(time.Minute)
	for range 200 { // one link-down a second is no flapping
		see(false)
		see(true)
		c.pass(time.Second)
		if why := l.Out(u1, c.now); !why.None() {
			t.Fatalf("out for a link-down a second: %s", why)
		}
	}
	l.Keep(func(plan.PortID) bool { return false })
	see(false)
	see(true)
	if len(l.by[u1].recent) != 0 {
		t.Error("what was forgotten is still known")
	}
}

// Whatever happens, an uplink that is used has been up, without a break, for its delay; and one that has been up for
// long enough is used.
func TestS43_UpDelayProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Links
		c := newClock()
		delay := time.Duration(rapid.IntRange(0, 3000).Draw(t, "delay ms")) * time.Millisecond
		l.Observe(u1, true, 0, delay, c.now)
		l.Observe(u1, false, 0, delay, c.now)
		up := false
		var since time.Time
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			c.pass(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "changes") {
				if up = !up; up {
					since = c.now
				}
			}
			l.Observe(u1, up, 0, delay, c.now)
			out, lasted := !l.Out(u1, c.now).None(), c.now.Sub(since)
			if up && !out && lasted < delay {
				t.Fatalf("used after %v of %v", lasted, delay)
			}
			if up && out && lasted >= max(delay, flapCalm) {
				t.Fatalf("out after %v of %v", lasted, delay)
			}
			at, pending := l.Next()
			if pending != out || pending && !at.After(c.now) {
				t.Fatalf("out %v, next %v %v", out, at, pending)
			}
		}
	})
}
