package announce

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heddle/internal/plan"
)

func port(n int) plan.PortID {
	return plan.PortID{Switch: "lab", Name: fmt.Sprintf("vm%d", n)}
}

func on(device uint32, k Kind) Announcement { return Announcement{Kind: k, Device: device} }

// drain runs the queue to its end and returns what was sent when, in ms from the start.
func drain(t interface{ Fatalf(string, ...any) }, q *Queue, now time.Time) (sent []Announcement, at []int) {
	start := now
	for range 100000 {
		for _, a := range q.Due(now) {
			sent, at = append(sent, a), append(at, int(now.Sub(start).Milliseconds()))
		}
		next, ok := q.Next()
		if !ok {
			return sent, at
		}
		if !next.After(now) {
			t.Fatalf("at %v more is due at %v", now.Sub(start), next.Sub(start))
		}
		now = next
	}
	t.Fatalf("the queue never ends")
	return nil, nil
}

func TestS49_APortsMACIsAnnouncedFiveTimesWithinASecond(t *testing.T) {
	var q Queue
	now := time.Unix(1000, 0)
	q.Replace(port(1), now, on(7, OwnMAC), on(9, Query))
	q.Add(port(1), now, on(7, LearnedMAC))
	sent, at := drain(t, &q, now)
	if got, want := fmt.Sprint(at), "[0 0 0 50 200 450 450 1000 1000]"; got != want {
		t.Errorf("sent at %v ms, want %v", got, want)
	}
	if sent[0].Kind != OwnMAC || sent[1].Kind != LearnedMAC || sent[2].Kind != Query {
		t.Errorf("first %v", sent[:3])
	}
}

func TestS49_TheNewestUplinkWins(t *testing.T) {
	var q Queue
	now := time.Unix(1000, 0)
	q.Replace(port(1), now, on(7, OwnMAC))
	q.Replace(port(2), now, on(7, OwnMAC))
	if n := len(q.Due(now)); n != 2 {
		t.Fatalf("%d sent at once", n)
	}
	now = now.Add(10 * time.Millisecond)
	q.Replace(port(1), now, on(8, OwnMAC))
	q.Replace(port(2), now) // the port is down: no frames any more
	sent, _ := drain(t, &q, now)
	if len(sent) != 5 {
		t.Errorf("%d sent after the change, want 5", len(sent))
	}
	for _, a := range sent {
		if a.Device != 8 {
			t.Errorf("announced on device %d", a.Device)
		}
	}
}

func TestS49_AThousandPortsAreAnnouncedOnceBeforeAnyIsAgain(t *testing.T) {
	var q Queue
	now := time.Unix(1000, 0)
	for n := range 1000 {
		q.Replace(port(n), now, on(uint32(n), OwnMAC))
	}
	sent, at := drain(t, &q, now)
	seen := map[uint32]bool{}
	for _, a := range sent[:1000] {
		seen[a.Device] = true
	}
	if len(sent) != 5000 || len(seen) != 1000 {
		t.Errorf("%d sent, %d ports within the first thousand", len(sent), len(seen))
	}
	if at[999] > 800 {
		t.Errorf("the last port's first announcement came after %d ms", at[999])
	}
}

// Whatever is queued: at most PerTick frames in any tick, none before its time or on a device that was replaced, none
// beyond the capacity, and all counts add up.
func TestQueueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		now := time.Unix(1000, 0)
		var sentAt []time.Time
		where := map[uint32]plan.PortID{}
		current := map[plan.PortID]map[uint32]bool{}
		device := uint32(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			for _, a := range q.Due(now) {
				if p := where[a.Device]; !current[p][a.Device] {
					t.Fatalf("%v announced on device %d, which was replaced", p, a.Device)
				}
				sentAt = append(sentAt, now)
			}
			if q.waiting > most {
				t.Fatalf("%d wait", q.waiting)
			}
			p := port(rapid.IntRange(0, 5).Draw(t, "port"))
			var list []Announcement
			for range rapid.IntRange(0, 40).Draw(t, "frames") {
				device++
				where[device] = p
				list = append(list, on(device, Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))))
			}
			if current[p] == nil || rapid.Bool().Draw(t, "replace") {
				current[p] = map[uint32]bool{}
				q.Replace(p, now, list...)
			} else {
				q.Add(p, now, list...)
			}
			for _, a := range list {
				current[p][a.Device] = true
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
		}
		for i := range sentAt {
			if j := i + 2*PerTick; j < len(sentAt) && sentAt[j].Sub(sentAt[i]) < Tick {
				t.Fatalf("more than %d frames within %v", 2*PerTick, sentAt[j].Sub(sentAt[i]))
			}
		}
		drain(t, &q, now)
		if q.waiting != 0 {
			t.Fatalf("%d wait in an empty queue", q.waiting)
		}
	})
}

func TestQueueCountsWhatHasNoRoom(t *testing.T) {
	var q Queue
	now := time.Unix(1000, 0)
	for range most/2 + 3 {
		q.Add(port(1), now, on(1, Query))
	}
	if q.Dropped() != 6 {
		t.Errorf("%d dropped, want 6", q.Dropped())
	}
}
