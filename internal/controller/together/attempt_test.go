package together_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/controller/together"
)

// world is hosts, the connection of each, and a controller that decides; the network loses and repeats messages, hosts
// and the controller die. What a host does with a message is what package agent/cluster does.
type world struct {
	rng   *rand.Rand
	hosts []*simulated
	now   int64
	// decided is the decision that is written; nil while there is none.
	decided *together.Decision
}

// simulated is a host.
type simulated struct {
	name  string
	ahead int64 // of its clock
	// conn counts its connections: a message by an older one never comes.
	conn           int
	up             bool
	has            int // version
	can            bool
	ready          bool
	waits          int64 // for an instant of its clock; 0 for none
	flipped        int64 // when it changed, by the world's clock; 0 while it has not
	heldAtDecision bool  // it was ready, and its connection held from then to the instant
}

const before, after = 1, 2

// decide takes one attempt through to its end, with whatever goes wrong, and returns whether it was decided.
func (w *world) decide(exceptAway bool) (refusedBy []string, decided bool) {
	var here, away []string
	conns := map[string]int{}
	for _, h := range w.hosts {
		if h.up {
			here = append(here, h.name)
			conns[h.name] = h.conn
		} else {
			away = append(away, h.name)
		}
	}
	a := together.New(here, away, exceptAway)
	for step := 0; step < 40 && a.Verdict(false) == together.Open; step++ {
		h := w.hosts[w.rng.IntN(len(w.hosts))]
		switch w.rng.IntN(12) {
		case 0: // the connection ends, and may come back
			if h.up && w.rng.IntN(3) == 0 {
				a.Lost(h.name)
				h.conn++
				h.up, h.ready = w.rng.IntN(2) == 0, false
			}
		case 1: // what the host can changes
			h.can = h.can != (w.rng.IntN(4) == 0)
		default: // it answers, once or twice; an answer may get lost with its connection
			if !h.up || conns[h.name] != h.conn {
				continue
			}
			for range 1 + w.rng.IntN(2) {
				if h.ready = h.can; h.can {
					a.Answered(h.name, nil)
				} else {
					a.Answered(h.name, []string{"it can't"})
				}
			}
		}
	}
	if a.Verdict(true) != together.Decide {
		return a.Lines(time.Second), false
	}
	if w.rng.IntN(8) == 0 { // the controller dies, or has no majority: nothing is written
		return []string{"the controller is gone"}, false
	}
	ready := a.Ready()
	d := together.Decision{At: map[string]int64{"first": w.now + int64(time.Second)}, Hosts: len(ready)}
	w.decided = &d
	for _, h := range w.hosts {
		h.heldAtDecision = slices.Contains(ready, h.name) && h.up && conns[h.name] == h.conn
	}
	return nil, true
}

// spread tells the hosts of the decision, by their connections, until all have it. Those that are not there have it
// when they are back.
func (w *world) spread() {
	at := w.decided.Instant("first", w.now, time.Now())
	for left := true; left; {
		left = false
		for _, h := range w.hosts {
			if h.waits != 0 && h.waits-h.ahead <= w.now && h.has == before {
				h.has, h.flipped = after, w.now
			}
			if h.has == after {
				continue
			}
			left = true
			switch {
			case w.rng.IntN(20) == 0 && w.now < at: // it dies, with what it had in memory
				h.conn++
				h.up, h.ready, h.waits, h.heldAtDecision = false, false, 0, false
			case !h.up && w.rng.IntN(10) == 0:
				h.up = true
			case h.up && h.waits == 0: // the decision comes
				if w.rng.IntN(3) > 0 {
					h.waits = max(at, w.now) + h.ahead
				}
			}
		}
		w.now += w.rng.Int64N(int64(30 * time.Millisecond))
	}
}

// Whatever gets lost or dies: either no host changes, or all do, each at the instant or, where it lost its connection,
// later; and nobody before the instant.
func TestS101_AllChangeOrNone(t *testing.T) {
	decided, none, late := 0, 0, 0
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 101))
		w := &world{rng: rng, now: int64(time.Hour)}
		for i := range 1 + rng.IntN(6) {
			w.hosts = append(w.hosts, &simulated{name: fmt.Sprint("h", i), has: before, can: rng.IntN(12) > 0,
				up: rng.IntN(10) > 0, ahead: rng.Int64N(int64(10 * time.Hour))})
		}
		except := rng.IntN(2) == 0
		awayBefore := slices.ContainsFunc(w.hosts, func(h *simulated) bool { return !h.up })
		why, done := w.decide(except)
		if !done {
			none++
			if len(why) == 0 {
				t.Fatalf("seed %d: refused without a word", seed)
			}
			for _, h := range w.hosts {
				if h.has != before {
					t.Fatalf("seed %d: %s changed, and nothing was decided", seed, h.name)
				}
			}
			continue
		}
		decided++
		if awayBefore && !except {
			t.Fatalf("seed %d: decided while a host is away", seed)
		}
		at := w.decided.At["first"]
		w.spread()
		for _, h := range w.hosts {
			if h.has != after || h.flipped < at {
				t.Fatalf("seed %d: %s has %d, since %s after the instant", seed, h.name, h.has,
					time.Duration(h.flipped-at))
			}
			if !h.heldAtDecision {
				late++
			}
		}
	}
	if decided < 500 || none < 500 || late < 100 {
		t.Errorf("%d decided, %d not, %d hosts late: this test shows less than it says", decided, none, late)
	}
}

func TestS101_ARefusalNamesEachHost(t *testing.T) {
	a := together.New([]string{"a", "b", "c", "d"}, []string{"e"}, false)
	a.Answered("a", nil)
	a.Answered("b", []string{"device eno1 is another switch's"})
	a.Lost("c")
	a.Answered("c", nil) // by a connection that has ended
	if a.Verdict(false) != together.Refuse {
		t.Fatal("it is not refused")
	}
	text := strings.Join(a.Lines(10*time.Second), "\n")
	for _, want := range []string{"host b can't make the change: device eno1", "host c lost its connection",
		"host e is not connected"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "host a") || strings.Contains(text, "host d") {
		t.Errorf("a host is named that is not in the way:\n%s", text)
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("h%03d", i)
	}
	if lines := together.New(many, nil, false).Lines(10 * time.Second); len(lines) != 21 || !strings.Contains(lines[20],
		"80 hosts more") || lines[0] != "host h000 has not said within 10s that it can make the change" {
		t.Errorf("of many hosts: %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// A host that can't any more before it is decided, since something was changed on it, refuses; one that can again does
// not.
func TestS101_TheLastAnswerCounts(t *testing.T) {
	a := together.New([]string{"a", "b"}, nil, false)
	a.Answered("a", nil)
	a.Answered("a", []string{"a port is in the way"})
	if a.Verdict(false) != together.Refuse {
		t.Error("a host that can't any more is not heard")
	}
	a.Answered("a", nil)
	a.Answered("b", nil)
	if a.Verdict(false) != together.Decide || len(a.Ready()) != 2 {
		t.Error("a host that can again is not heard")
	}
}

func TestS101_WhoIsLateIsNamed(t *testing.T) {
	off := map[string]int64{"a": 10_000, "b": 900_000, "c": int64(2 * time.Second)}
	late, spread := together.Outcome([]string{"a", "b", "c", "d", "e", "g"}, []string{"f"}, together.Told{Off: off,
		Missing: map[string]string{"e": "it can't make the change", "g": "it is not connected"},
		Unsure:  map[string]string{"g": "it is not connected"}}, time.Millisecond)
	var names []string
	for _, l := range late {
		names = append(names, l.Host+": "+l.Why)
	}
	if len(late) != 4 || spread != 890*time.Microsecond || late[0].Host != "c" || late[3].Host != "f" {
		t.Errorf("within %s; late: %q", spread, names)
	}
}

// A controller that nobody asked goes by the clock on the wall, and never waits for longer than a change may take.
func TestS101_TheInstantByEachControllersClock(t *testing.T) {
	wall := time.Unix(1_000, 0)
	d := together.Decision{At: map[string]int64{"one": 77}, Wall: wall.Add(2 * time.Second)}
	for _, c := range []struct {
		start string
		wall  time.Time
		want  int64
	}{{"one", wall.Add(time.Hour), 77}, {"other", wall, 5 + int64(2*time.Second)}, {"other", wall.Add(time.Hour), 5},
		{"other", wall.Add(-time.Hour), 5 + int64(together.MostLead)}} {
		if got := d.Instant(c.start, 5, c.wall); got != c.want {
			t.Errorf("%s at %s: %d, want %d", c.start, c.wall, got, c.want)
		}
	}
}
