package event

import (
	"testing"
	"time"
)

func TestLimiter_ABurstAndThenOneAPeriodForEachThingByItself(t *testing.T) {
	l := Limiter[string]{Burst: 3, Every: 10 * time.Second}
	now := time.Unix(1_000_000, 0)
	allowed := func(key string, tries int) (n int) {
		for range tries {
			if l.Allow(key, now) {
				n++
			}
		}
		return n
	}
	if got := allowed("a", 100); got != 3 {
		t.Errorf("at once: %d, want 3", got)
	}
	if got := allowed("b", 1); got != 1 {
		t.Error("another thing is held back too")
	}
	now = now.Add(10 * time.Second)
	if got := allowed("a", 100); got != 1 {
		t.Errorf("a period later: %d, want 1", got)
	}
	now = now.Add(time.Hour)
	if got := allowed("a", 100); got != 3 {
		t.Errorf("after a long silence: %d, want 3", got)
	}
}

func TestLimiter_RemembersABoundedNumberOfThings(t *testing.T) {
	l := Limiter[int]{Burst: 1, Every: time.Second}
	now := time.Unix(1_000_000, 0)
	for i := range 3 * mostKept {
		l.Allow(i, now)
		if len(l.full) > mostKept {
			t.Fatalf("%d things are remembered", len(l.full))
		}
	}
}
