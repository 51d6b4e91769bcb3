package recent

import (
	"testing"
	"time"

	"heddle/internal/plan"
)

var vm1 = plan.PortID{Switch: "lab", Name: "vm1"}

// A port sends 10 frames a minute, and is read every minute for five hours.
func TestCounts_TellOfTheLastHour(t *testing.T) {
	var c Counts
	start := time.Unix(1_000_000, 0)
	if n, during := c.Since(vm1, 7, start); n != 7 || during != 0 {
		t.Errorf("a port of which nothing was noted: %d in %s", n, during)
	}
	for minute := range 300 {
		now := start.Add(time.Duration(minute) * time.Minute)
		total := uint64(10 * minute)
		n, during := c.Since(vm1, total, now)
		if want := uint64(during / time.Minute * 10); minute > 0 && n != want {
			t.Fatalf("minute %d: %d frames in %s, want %d", minute, n, during, want)
		}
		if minute > 70 && (during < Span || during >= Span+step) {
			t.Fatalf("minute %d: it is about %s", minute, during)
		}
		c.Note(now, map[plan.PortID]uint64{vm1: total})
		if kept := len(c.ports[vm1]); kept > 14 {
			t.Fatalf("minute %d: %d readings are kept", minute, kept)
		}
	}
}

func TestCounts_APortWithAnotherSlotBeginsAnew(t *testing.T) {
	var c Counts
	start := time.Unix(1_000_000, 0)
	c.Note(start, map[plan.PortID]uint64{vm1: 500})
	if n, during := c.Since(vm1, 3, start.Add(time.Minute)); n != 3 || during != 0 {
		t.Errorf("before it was read again: %d in %s", n, during)
	}
	c.Note(start.Add(time.Minute), map[plan.PortID]uint64{vm1: 3})
	if n, during := c.Since(vm1, 8, start.Add(3*time.Minute)); n != 8 || during != 2*time.Minute {
		t.Errorf("after that: %d in %s", n, during)
	}
	c.Note(start.Add(4*time.Minute), nil)
	if len(c.ports) != 0 {
		t.Error("a port that is gone is remembered")
	}
}
