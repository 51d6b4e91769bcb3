package span

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
)

// What a host says by changes is what it has.
func TestOwn_ChangesAreWhatThereIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table, known := NewTable(), &Replica{}
	var o Own
	for step := range 300 {
		have := map[VNI]map[Key]Claim{}
		for vni := VNI(1); vni <= 3; vni++ {
			if r.IntN(4) == 0 {
				continue
			}
			have[vni] = map[Key]Claim{}
			for n := range 6 {
				if r.IntN(2) == 0 {
					have[vni][mac(n)] = Claim{Source: Port, Generation: uint64(r.IntN(2))}
				}
			}
		}
		want := map[VNI]map[Key]Claim{}
		for vni, items := range have {
			want[vni] = maps.Clone(items)
		}
		o.Set(endpoints(r.IntN(2)), have)
		for range r.IntN(3) {
			if _, member := want[1]; member && r.IntN(2) == 0 {
				report, ok := o.Changes("a", &Replica{})
				if ok {
					table.Report("a", "a", report, at(step))
				}
				n := r.IntN(6)
				if _, has := want[1][mac(n)]; !has {
					want[1][mac(n)] = Claim{Source: Learned, Generation: uint64(step)}
				}
				o.Note(1, mac(n), Claim{Source: Learned, Generation: uint64(step)}, r.IntN(2) == 0)
			}
		}
		switch report, ok := o.Changes("a", &Replica{}); {
		case step == 0 || r.IntN(20) == 0:
			o.End()
			table.Report("a", "a", o.Whole("a", known), at(step))
		case ok:
			table.Report("a", "a", report, at(step))
		}
		for vni := VNI(1); vni <= 3; vni++ {
			c := content(table, vni)
			if _, member := want[vni]; member != (c != nil) {
				t.Fatalf("step %d: member of %d: %v", step, vni, member)
			}
			if c == nil {
				continue
			}
			got := map[Key]Claim{}
			for k, l := range c.Places {
				l.Order = 0
				got[k] = l.Claim
			}
			if !reflect.DeepEqual(got, want[vni]) {
				t.Fatalf("step %d: of %d it said %v and has %v", step, vni, got, want[vni])
			}
		}
	}
}

// A controller that was started anew is told the numbers of before; a claim that has lost loses again, whoever comes
// first (S105).
func TestSpan_AClaimThatHasLostLosesAgain(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		table := NewTable()
		own, known := map[string]*Own{}, map[string]*Replica{}
		for _, id := range []string{"a", "b"} {
			own[id], known[id] = &Own{}, &Replica{}
			own[id].Set(endpoints(1), map[VNI]map[Key]Claim{5: {mac(1): {Source: Learned}}})
			table.Report(id, id, own[id].Whole(id, known[id]), at(1))
		}
		u, _, _ := table.Since(5, Cursor{}, false)
		known["a"].Apply(u)
		known["b"].Apply(u)
		anew := NewTable()
		for _, id := range order {
			own[id].End()
			anew.Report(id, id, own[id].Whole(id, known[id]), at(2))
		}
		if got := content(anew, 5).Places[mac(1)].Host; got != "b" {
			t.Errorf("after %v it is at %s", order, got)
		}
	}
}

// A segment that was refused is said once more; nothing is said before a whole report.
func TestOwn_SaysARefusedSegmentAgain(t *testing.T) {
	var o Own
	if o.Wanted() {
		t.Error("a host without segments wants to say something")
	}
	o.Set(nil, map[VNI]map[Key]Claim{5: {mac(1): {Source: Port}}})
	if _, ok := o.Changes("a", &Replica{}); ok || !o.Wanted() {
		t.Error("changes before a whole report")
	}
	o.Whole("a", &Replica{})
	if _, ok := o.Changes("a", &Replica{}); ok {
		t.Error("nothing has changed")
	}
	o.Again(5)
	if r, ok := o.Changes("a", &Replica{}); !ok || len(r.Segments) != 1 || len(r.Segments[0].Put) != 1 {
		t.Errorf("it says %+v", r)
	}
}

// A MAC that came back to a host is claimed anew, although the controllers have the host's claim of before still: of
// two claims the later one counts.
func TestOwn_WhatCameBackIsClaimedAnew(t *testing.T) {
	for _, listed := range []bool{false, true} {
		table := NewTable()
		var a, b Own
		a.Set(endpoints(1), map[VNI]map[Key]Claim{1: {mac(1): {Source: Learned}}})
		table.Report("a", "a", a.Whole("a", &Replica{}), at(1))
		b.Set(endpoints(1), map[VNI]map[Key]Claim{1: {}})
		table.Report("b", "b", b.Whole("b", &Replica{}), at(2))
		say := func(o *Own, id string, now int) {
			if r, ok := o.Changes("a", &Replica{}); ok {
				table.Report(id, id, r, at(now))
			}
		}
		host := func() string { l, _ := table.Place(1, mac(1)); return l.Host }
		b.Note(1, mac(1), Claim{Source: Learned}, true)
		say(&b, "b", 3)
		if got := host(); got != "b" {
			t.Fatalf("after it went to b it is at %q", got)
		}
		a.Note(1, mac(1), Claim{Source: Learned}, true)
		if listed {
			a.Set(endpoints(1), map[VNI]map[Key]Claim{1: {mac(1): {Source: Learned}}})
		}
		say(&a, "a", 4)
		if got := host(); got != "a" {
			t.Errorf("after it came back to a it is at %q; listed: %v", got, listed)
		}
	}
}

// pair is two hosts of one segment and a controller.
type pair struct {
	t     *testing.T
	table *Table
	own   map[string]*Own
	known map[string]*Replica
	now   int
}

func newPair(t *testing.T) *pair {
	p := &pair{t, NewTable(), map[string]*Own{}, map[string]*Replica{}, 0}
	for _, id := range []string{"a", "b"} {
		p.own[id], p.known[id] = &Own{}, &Replica{}
		p.set(id)
		p.begin(id)
	}
	return p
}

// set says which MACs a host has.
func (p *pair) set(id string, macs ...int) {
	have := map[Key]Claim{}
	for _, n := range macs {
		have[mac(n)] = Claim{Source: Learned}
	}
	p.own[id].Set(endpoints(1), map[VNI]map[Key]Claim{5: have})
}

// begin begins a conversation with the controller.
func (p *pair) begin(id string) {
	p.now++
	p.own[id].End()
	p.table.Report(id, id, p.own[id].Whole(id, p.known[id]), at(p.now))
	p.hear()
}

// say has a host report what has changed. lost: the report does not come to the controller.
func (p *pair) say(id string, lost bool) {
	p.now++
	if r, ok := p.own[id].Changes(id, p.known[id]); ok && !lost {
		p.table.Report(id, id, r, at(p.now))
		p.hear()
	}
}

// hear has both hosts hear what the controller knows.
func (p *pair) hear() {
	for id, known := range p.known {
		if u, _, ok := p.table.Since(5, Cursor{}, false); ok && !known.Apply(u) {
			p.t.Fatalf("%s cannot take in %+v", id, u)
		} else if ok {
			p.own[id].Confirm(id, u)
		}
	}
}

func (p *pair) isAt(want string) {
	p.t.Helper()
	if l, _ := p.table.Place(5, mac(1)); l.Host != want {
		p.t.Errorf("it is at %q, not at %q", l.Host, want)
	}
}

// moved is a pair of which b has a MAC that a had before, and has claimed.
func moved(t *testing.T) *pair {
	p := newPair(t)
	p.set("a", 1)
	p.say("a", false)
	p.set("b", 1)
	p.say("b", false)
	p.isAt("b")
	return p
}

// TestS84_AMACThatCameBackIsClaimedAnew: whatever a host has reported of it before, and however the report of its
// return gets lost.
func TestS84_AMACThatCameBackIsClaimedAnew(t *testing.T) {
	t.Run("it was gone between two reports", func(t *testing.T) {
		p := moved(t)
		p.set("a")
		p.set("a", 1)
		p.say("a", false)
		p.isAt("a")
	})
	t.Run("while no controller answered", func(t *testing.T) {
		p := moved(t)
		p.own["a"].End()
		p.set("a")
		p.set("a", 1)
		p.begin("a")
		p.isAt("a")
	})
	t.Run("it was noted while no controller answered", func(t *testing.T) {
		p := moved(t)
		p.own["a"].End()
		p.own["a"].Note(5, mac(1), Claim{Source: Learned}, true)
		p.begin("a")
		p.isAt("a")
	})
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprintf("the report is lost with the connection, listed %v", listed), func(t *testing.T) {
			p := moved(t)
			p.own["a"].Note(5, mac(1), Claim{Source: Learned}, true)
			if listed {
				p.set("a", 1)
			}
			p.say("a", true)
			p.begin("a")
			p.isAt("a")
		})
	}
	t.Run("the report of a first claim is lost", func(t *testing.T) {
		p := newPair(t)
		p.set("a", 1)
		p.say("a", false)
		p.set("b", 1)
		p.say("b", true)
		p.begin("b")
		p.isAt("b")
	})
	t.Run("it left the whole segment between two reports", func(t *testing.T) {
		p := moved(t)
		p.own["a"].Set(endpoints(1), nil)
		p.set("a", 1)
		p.say("a", false)
		p.isAt("a")
	})
}

// TestS84_AMACThatDidNotComeBackIsNotClaimedAnew: a host that lost a MAC and connects again does not take it back.
func TestS84_AMACThatDidNotComeBackIsNotClaimedAnew(t *testing.T) {
	p := moved(t)
	p.begin("a")
	p.isAt("b")
	p.own["a"].Note(5, mac(1), Claim{Source: Learned}, true)
	p.say("a", false)
	p.isAt("a")
	p.own["b"].Note(5, mac(1), Claim{Source: Learned}, true)
	p.say("b", false)
	p.begin("a")
	p.isAt("b")
}
