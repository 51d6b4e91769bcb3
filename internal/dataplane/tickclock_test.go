package dataplane

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The kernel's clock is read once and then from time to time; in between it advances with the host's.
func TestTheKernelsClockIsNotAskedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, takes := 0, 2*askWithin
		c := &tickClock{hz: 250, read: func() (clocks, error) {
			asked++
			time.Sleep(takes)
			return clocks{Ticks: 1 << 40}, nil
		}}
		is := func(what string, want uint64, times int) {
			t.Helper()
			if ticks, _, err := c.now(); err != nil || ticks != want || asked != times {
				t.Errorf("%s: %d ticks, want %d, asked %d times, %v", what, ticks, want, asked, err)
			}
		}
		is("the reading takes too long, and is not used again", 1<<40, 1)
		takes = 0
		for range 100 {
			is("at once", 1<<40, 2)
		}
		time.Sleep(10 * time.Second)
		is("10 s later", 1<<40+2500, 2)
		time.Sleep(askEvery)
		is("much later", 1<<40, 3)
	})
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
