package loops

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/plan"
)

// world is a machine in simulated time with paths for probes.
type world struct {
	t       *testing.T
	m       *Machine
	now     time.Time
	ways    []Way // existing paths
	deaf    int   // probes that are swallowed before one comes back
	sent    int
	changes []string
}

func newWorld(t *testing.T, blocks ...Block) *world {
	return &world{t: t, m: New(blocks), now: time.Unix(1_000_000, 0)}
}

// step does what is due.
func (w *world) step() {
	send, changes := w.m.Due(w.now)
	for _, c := range changes {
		word := "+"
		if c.Lifted {
			word = "-"
		}
		w.changes = append(w.changes, word+c.Port.Name)
	}
	for _, s := range send {
		w.sent++
		for _, way := range w.ways {
			if !slices.Contains(s.Segments, way.Out.Segment) {
				continue
			}
			if w.deaf > 0 {
				w.deaf--
				continue
			}
			w.m.Came(way, s.Round, w.now.Add(time.Millisecond))
		}
	}
}

// run lets time pass in the steps that the machine asks for.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	w.step()
	for n := 0; ; n++ {
		next := w.m.Next()
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		if next.After(w.now) {
			w.now = next
		}
		w.step()
		if n > 100_000 {
			w.t.Fatal("the machine is never done")
		}
	}
}

func (w *world) sign(port, segment string, kind uint32) {
	e := end(port + ":" + segment)
	w.m.Signed(Sign{e.ID, e.Segment, kind}, w.now)
}

func (w *world) want(changes string) {
	w.t.Helper()
	if got := strings.Join(w.changes, " "); got != changes {
		w.t.Fatalf("changes %q, want %q", got, changes)
	}
}

func TestS110_NothingIsSentWithoutSigns(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:a")
	w.run(24 * time.Hour)
	if w.sent != 0 || !w.m.Next().IsZero() {
		t.Errorf("%d rounds sent, next at %v", w.sent, w.m.Next())
	}
}

func TestS110_ASignIsFollowedByAProbeThatBlocksOnePortOfALoopWithinASecond(t *testing.T) {
	for deaf := range 3 { // a storm swallows some
		w := newWorld(t)
		w.ways, w.deaf = ways("1:a=2:a"), 2*deaf
		w.sign("1", "a", 1)
		w.run(500 * time.Millisecond)
		w.want("+2")
	}
}

func TestS110_WithoutALoopTheSameSignIsAnsweredMoreAndMoreSeldom(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:b") // a link, and no loop
	for range 3600 {         // an hour of a sign each second
		w.sign("1", "a", 1)
		w.run(time.Second)
	}
	w.want("")
	if rounds := w.m.number; rounds < 9 || rounds > 25 {
		t.Errorf("%d rounds within an hour", rounds)
	}
	// Another sign is answered at once even so.
	w.ways = ways("1:a=2:b", "3:a=4:b")
	w.sign("3", "a", 2)
	w.run(500 * time.Millisecond)
	w.want("+4")
}

func TestS110_TheLoopIsFollowedIntoSegmentsThatShowedNoSign(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:b", "3:b=4:c", "5:c=6:a")
	w.sign("1", "a", 1)
	w.run(500 * time.Millisecond)
	w.want("+6")
}

func TestS110_ABlockedPortIsTriedAndComesBackWhenTheLoopIsGone(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:a")
	w.sign("1", "a", 1)
	w.run(time.Second)
	before := w.m.number
	w.run(4 * time.Minute) // tried after 30 s, 60 s, 120 s
	if tries := w.m.number - before; tries != 3 {
		t.Errorf("tried %d times within four minutes", tries)
	}
	w.want("+2")
	w.ways = nil
	w.run(9 * time.Minute)
	w.want("+2 -2")
	if !w.m.Next().IsZero() {
		t.Errorf("something is due at %v", w.m.Next())
	}
	// The loop closes again at once: the port waits longer.
	w.ways = ways("1:a=2:a")
	w.sign("1", "a", 1)
	w.run(time.Second)
	w.want("+2 -2 +2")
	if p := w.m.Blocks()[0].Pause; p <= FirstRetry {
		t.Errorf("tried again after %v", p)
	}
}

func TestS110_ACommandHasThePortTriedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:a")
	w.sign("1", "a", 1)
	w.run(time.Second)
	port := end("2:a").ID
	if !w.m.Retry(port, w.now) {
		t.Fatal("refused")
	}
	w.run(time.Second)
	w.want("+2")
	w.ways = nil
	w.m.Retry(port, w.now)
	w.run(time.Second)
	w.want("+2 -2")
	if w.m.Retry(port, w.now) {
		t.Error("a port in service is tried")
	}
}

func TestS110_ABlockOutlivesARestart(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:a")
	w.sign("1", "a", 1)
	w.run(time.Second)
	after := newWorld(t, w.m.Blocks()...)
	after.ways, after.now = w.ways, w.now
	if _, blocked := after.m.Blocked(end("2:a").ID); !blocked {
		t.Fatal("not blocked any more")
	}
	after.run(time.Minute)
	after.want("")
	after.ways = nil
	after.run(10 * time.Minute)
	after.want("-2")
}

func TestS110_WhatDevicesShowIsKnownWithoutAProbe(t *testing.T) {
	w := newWorld(t)
	w.m.See(ways("1:a=2:b", "3:a=4:b"), w.now)
	w.run(time.Hour)
	w.want("+4")
	if w.sent != 0 || w.m.Retry(end("4:b").ID, w.now) {
		t.Error("it is probed")
	}
	w.m.See(ways("1:a=2:b"), w.now)
	w.run(time.Second)
	w.want("+4 -4")
}

func TestS110_ALoopThatOnlyOneKindOfEvidenceClosesTogether(t *testing.T) {
	w := newWorld(t)
	w.m.See(ways("1:a=2:b"), w.now)
	w.ways = ways("3:a=4:b") // a cable that cannot be seen
	w.sign("4", "b", 3)
	w.run(time.Second)
	w.want("+4")
}

func TestS110_APortThatIsGoneOrFreedIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=2:a")
	w.sign("1", "a", 1)
	w.run(time.Second)
	w.m.Free(end("2:a").ID, w.now)
	w.run(time.Second)
	w.want("+2 -2")
	w.sign("1", "a", 2)
	w.run(time.Second)
	w.m.Keep(func(plan.PortID) bool { return false })
	w.ways = nil
	if len(w.m.Blocks()) > 0 || !w.m.Next().IsZero() {
		t.Error("it is still blocked")
	}
}

// A probe that is late, or that was recorded and replayed in a later round, proves nothing.
func TestS110_AnOldProbeProvesNothing(t *testing.T) {
	w := newWorld(t)
	w.sign("1", "a", 1)
	w.run(0)
	old := w.m.number
	w.run(time.Second)
	w.sign("1", "a", 2)
	w.run(0)
	w.m.Came(ways("1:a>2:a")[0], old, w.now)
	w.run(time.Second)
	w.m.Came(ways("1:a>2:a")[0], old+1, w.now) // no round is running
	w.run(time.Second)
	w.want("")
}

// Guests that show every possible sign cost a bounded number of rounds and a bounded amount of memory.
func TestS110_SignsOfManyGuestsCostABoundedNumberOfProbes(t *testing.T) {
	w := newWorld(t)
	for i := range 20_000 {
		w.m.Signed(Sign{plan.PortID{Switch: "a", Name: fmt.Sprint(i)}, Segment{Switch: "a", VLAN: uint16(i % 4000)},
			uint32(i)}, w.now)
		for range 20 {
			w.m.Came(Way{End{Number: uint32(i)}, End{Number: uint32(i + 7), ID: plan.PortID{Name: fmt.Sprint(i)}}},
				w.m.number, w.now)
		}
	}
	before := w.sent
	w.run(10 * time.Second)
	if rounds := w.sent - before; rounds > 3*10*3 {
		t.Errorf("%d sends in ten seconds", rounds)
	}
	if len(w.m.signs) > mostSigns || len(w.m.waiting) > mostWaiting || len(w.m.ways) > mostWays {
		t.Errorf("%d signs, %d segments, %d ways", len(w.m.signs), len(w.m.waiting), len(w.m.ways))
	}
}
