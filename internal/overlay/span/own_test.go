package span

import (
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
				report, ok := o.Changes()
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
		switch report, ok := o.Changes(); {
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
		u, _, _ := table.Since(5, Cursor{})
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
	if _, ok := o.Changes(); ok || !o.Wanted() {
		t.Error("changes before a whole report")
	}
	o.Whole("a", &Replica{})
	if _, ok := o.Changes(); ok {
		t.Error("nothing has changed")
	}
	o.Again(5)
	if r, ok := o.Changes(); !ok || len(r.Segments) != 1 || len(r.Segments[0].Put) != 1 {
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
			if r, ok := o.Changes(); ok {
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
