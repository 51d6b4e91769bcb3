package moves_test

import (
	"testing"

	"heddle/internal/agent/moves"
)

func TestS100_WhoBeginsToServeRaisesTheGeneration(t *testing.T) {
	var p moves.Place
	for i, c := range []struct {
		serves      bool
		wait        uint32
		heard, came uint64
		raised      bool
		want        uint64
	}{
		{true, 0, 0, 0, true, 1},   // it starts
		{true, 0, 0, 0, false, 1},  // nothing new
		{false, 1, 0, 0, false, 1}, // the guest has left
		{true, 1, 7, 0, true, 8},   // it is back, above what the target told
		{true, 1, 7, 0, false, 8},  // again
		{true, 2, 0, 0, true, 9},   // a silence that nobody saw is over
		{true, 2, 0, 9, true, 10},  // what it hears late of the host that it came from
		{true, 2, 0, 9, false, 10}, // again
		{false, 3, 1 << 63, 0, false, 10},
		{true, 3, 1<<64 - 1, 0, true, 1<<62 + 1}, // a hostile peer leaves room
	} {
		if raised := p.Look(c.serves, c.wait, c.heard, c.came); raised != c.raised || p.Generation != c.want {
			t.Errorf("step %d: raised %v to %d, want %v %d", i, raised, p.Generation, c.raised, c.want)
		}
	}
}

// A target keeps to the host that the guest left.
func TestS100_OneHostGivesTheCopies(t *testing.T) {
	h := moves.Begin("m", 1, now)
	if changed, drop := h.Expected("a", "esx1", 3); !changed || drop || h.Known != 3 {
		t.Errorf("%v %v %+v", changed, drop, h)
	}
	h.Dealt(moves.Copy{Number: 5, Says: moves.Runs, Generation: 3}, 0, now)
	if changed, _ := h.Expected("", "", 0); changed || h.Host != "a" {
		t.Error("a controller that knows nothing takes the source away")
	}
	if _, drop := h.Expected("b", "esx2", 4); !drop || h.Heard != 0 || h.Host != "b" {
		t.Errorf("another source: %+v", h)
	}
	h.Dealt(moves.Copy{Number: 1, Says: moves.Stops, Generation: 4}, 0, now)
	if changed, _ := h.Expected("a", "esx1", 0); changed || h.Host != "b" || !h.Last {
		t.Errorf("another source after the last copy: %+v", h)
	}
	if h.Takes(moves.Copy{Number: 1, Says: moves.Stops}, 0) != moves.Ignore {
		t.Error("a repeated copy is taken")
	}
	h.Gone(now, "gone")
	if a := h.Answer(0); a.Phase != moves.Cancelled || a.Confirmed != 1 {
		t.Errorf("%+v", a)
	}
}

// What a port had when it went is given to the host that a controller names later.
func TestS100_AnOrderOfAnotherHostGetsWhatIsLeft(t *testing.T) {
	a, _ := moves.Ordered(nil, moves.Order{Move: "m", Host: "b", HostName: "esx2"}, moves.GuestRuns, now)
	if _, pack := a.See(moves.GuestGone, 0, 1, now); !pack {
		t.Fatal("nothing is packed")
	}
	a.Packed([]byte{7}, now)
	next, changed := moves.Ordered(a, moves.Order{Move: "n", Host: "c", HostName: "esx3"}, moves.GuestGone, now)
	if !changed || next.Goods == nil || next.Host != "c" {
		t.Fatalf("%+v", next)
	}
	s, _, ok := next.Next(9)
	if !ok || s.Says != moves.Stops || s.Generation != 1 {
		t.Errorf("%+v %v", s, ok)
	}
	next.Answered(s, moves.Answer{Confirmed: s.Number, Phase: moves.Prepared}, now)
	if next.Phase != moves.Released || next.Goods != nil {
		t.Errorf("%+v", next)
	}
	same, changed := moves.Ordered(next, moves.Order{Move: "n", Host: "c"}, moves.GuestGone, now)
	if changed || same != next {
		t.Error("a move that is over begins again")
	}
}

// A move of which no controller knows any more ends where the target doesn't answer and the guest runs.
func TestS100_AWithdrawnMoveEndsWhileTheGuestRuns(t *testing.T) {
	a, _ := moves.Ordered(nil, moves.Order{Move: "m", Host: "b", HostName: "esx2"}, moves.GuestRuns, now)
	if a.Unanswered("no route", now); a.Over() || a.Problem != "no route" {
		t.Errorf("%+v", a)
	}
	a.Withdrawn()
	a.See(moves.GuestLeft, 1, 1, now)
	a.Packed([]byte{1}, now)
	if a.Unanswered("no route", now); a.Over() {
		t.Error("a move ends while its guest stands still")
	}
	a.See(moves.GuestRuns, 1, 2, now)
	if a.Unanswered("no route", now); !a.Over() {
		t.Errorf("%+v", a)
	}
}

// TestS100_AWrongWordAboutTheSourceIsNotTheLast: a controller that has not heard of the guest's last move names a host
// that it left earlier. The guest arrives; then the controllers know better, and what the right source has comes.
func TestS100_AWrongWordAboutTheSourceIsNotTheLast(t *testing.T) {
	h := moves.Begin("m", 1, now)
	h.Expected("earlier", "esx3", 7)
	h.Activated(now, "the guest runs here")
	if changed, drop := h.Expected("source", "esx1", 8); !changed || drop || h.Host != "source" {
		t.Fatalf("the source is named: %v %v, %+v", changed, drop, h)
	}
	c := moves.Copy{Number: 5, Says: moves.Stops, Generation: 8}
	if got := h.Takes(c, 9); got != moves.Keep {
		t.Fatalf("its last copy: %v", got)
	}
	h.Dealt(c, 9, now)
	if changed, drop := h.Expected("earlier", "esx3", 8); changed || drop || h.Host != "source" || !h.Last {
		t.Errorf("the goods are here, and the other host is named again: %v %v, %+v", changed, drop, h)
	}
}
