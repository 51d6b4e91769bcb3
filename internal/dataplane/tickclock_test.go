package dataplane

import (
	"errors"
	"testing"
	"time"
)

// The kernel's clock is read once and then from time to time; in between it advances with the host's.
func TestTheKernelsClockIsNotAskedEachTime(t *testing.T) {
	asked := 0
	c := &tickClock{hz: 250, read: func() (clocks, error) { asked++; return clocks{Ticks: 1 << 40}, nil }}
	for range 100 {
		if ticks, _, err := c.now(); err != nil || ticks < 1<<40 {
			t.Fatal(ticks, err)
		}
		if c.at.IsZero() { // the reading took too long: its result is not used again
			asked = 0
		}
	}
	if asked > 1 {
		t.Errorf("asked %d times", asked)
	}
	c.at = time.Now().Add(-10 * time.Second)
	if ticks, _, err := c.now(); err != nil || ticks < 1<<40+2500 || ticks > 1<<40+250*60 {
		t.Errorf("10 s later: %d ticks more, %v", ticks-1<<40, err)
	}
	c.at = time.Now().Add(-askEvery)
	asked = 0
	if ticks, _, err := c.now(); err != nil || ticks != 1<<40 || asked != 1 {
		t.Errorf("%d ticks, asked %d times, %v", ticks, asked, err)
	}
}

func TestTheWallClockOfTicks(t *testing.T) {
	before := time.Now().UnixMilli()
	c := &tickClock{hz: 250, read: func() (clocks, error) { return clocks{Ticks: 5<<32 + 10}, nil }}
	ms, err := c.wall()
	after := time.Now().UnixMilli()
	if err != nil {
		t.Fatal(err)
	}
	if at := ms(10); at < before || at > after {
		t.Errorf("now is %d, not from %d to %d", at, before, after)
	}
	back := uint32(10)
	back -= 250 * 3 // of the lower half, which has wrapped around since
	if d := ms(10) - ms(back); d != 3000 {
		t.Errorf("750 ticks are %d ms", d)
	}
	failed := errors.New("no clock")
	c = &tickClock{hz: 250, read: func() (clocks, error) { return clocks{}, failed }}
	if _, err := c.wall(); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}
