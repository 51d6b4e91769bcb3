package lldp

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heddle/internal/plan"
)

var epoch = time.Unix(1_000_000, 0)

func from(port string, ttl uint16) PDU {
	p := bare()
	p.Port.Value, p.TTL = []byte(port), ttl
	return p
}

func TestTable_LearnsUpdatesAgesAndHearsGoodbyes(t *testing.T) {
	var tb Table
	src := plan.MAC{2, 0, 0, 0, 0, 9}
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	learn := func(s int, p PDU, want Change) {
		t.Helper()
		if got, gone := tb.Learn(at(s), src, p); got != want || gone != nil {
			t.Fatalf("at %d s: change %d, want %d", s, got, want)
		}
	}
	learn(0, from("1", 0), Rejected)
	learn(0, from("1", 100), New)
	learn(10, from("1", 100), Same)
	named := from("1", 100)
	named.SystemName = "leaf"
	learn(20, named, Updated)
	learn(20, from("2", 5), New)
	if n := tb.Neighbours(); len(n) != 2 || n[0].PDU.SystemName != "leaf" || n[0].Since != epoch ||
		n[0].Heard != at(20) {
		t.Fatalf("%+v", n)
	}
	if !tb.Next().Equal(at(25)) {
		t.Errorf("next %s", tb.Next())
	}
	if gone := tb.Sweep(at(24)); len(gone) != 0 {
		t.Errorf("too early: %+v", gone)
	}
	if gone := tb.Sweep(at(25)); len(gone) != 1 || gone[0].PDU.Port.String() != "2" {
		t.Errorf("at its end: %+v", gone)
	}
	learn(30, from("1", 0), Gone)
	if len(tb.Neighbours()) != 0 || !tb.Next().IsZero() {
		t.Error("a neighbour that said goodbye is still there")
	}
}

func TestTable_IsBounded(t *testing.T) {
	var tb Table
	gone := 0
	for i := range 1000 {
		if _, n := tb.Learn(epoch, plan.MAC{2}, from(fmt.Sprint(i), 65535)); n != nil {
			gone++
		}
	}
	if n := tb.Neighbours(); len(n) != MaxNeighbours || tb.Refused != 1000-MaxNeighbours {
		t.Fatalf("%d neighbours, %d refused", len(n), tb.Refused)
	}
	if gone != MaxNeighbours {
		t.Errorf("%d are told to be gone: of those made up only the first %d were told of", gone, MaxNeighbours)
	}
}

// flood makes n invented neighbours send two PDUs each, the two within a moment.
func flood(tb *Table, now time.Time, run, n int) {
	for i := range n {
		for range 2 {
			tb.Learn(now.Add(time.Duration(i)*time.Millisecond), plan.MAC{2, 6},
				from(fmt.Sprint("made up ", run, " ", i), 65535))
		}
	}
}

func knows(tb *Table, port string) bool {
	return slices.ContainsFunc(tb.Neighbours(), func(n Neighbour) bool { return n.PDU.Port.String() == port })
}

func TestTable_AFloodDoesNotPushOutWhoIsHeardAgain(t *testing.T) {
	var tb Table
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	tb.Learn(at(0), plan.MAC{2}, from("leaf", 120))
	tb.Learn(at(30), plan.MAC{2}, from("leaf", 120))
	for s := 31; s < 600; s++ {
		flood(&tb, at(s), s, 50)
		if s%30 == 0 {
			if c, _ := tb.Learn(at(s), plan.MAC{2}, from("leaf", 120)); c != Same {
				t.Fatalf("at %d s: change %d", s, c)
			}
		}
		if !knows(&tb, "leaf") {
			t.Fatalf("at %d s the neighbour is pushed out", s)
		}
	}
}

func TestTable_AFloodDoesNotKeepTheNeighbourOut(t *testing.T) {
	var tb Table
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	flood(&tb, at(0), 0, 1000)
	if c, _ := tb.Learn(at(5), plan.MAC{2}, from("leaf", 120)); c != Unsure || !knows(&tb, "leaf") {
		t.Fatalf("after a flood: change %d", c)
	}
	if c, _ := tb.Learn(at(6), plan.MAC{2}, from("leaf", 120)); c != New {
		t.Errorf("heard again: change %d", c)
	}
	flood(&tb, at(7), 1, 1000)
	if !knows(&tb, "leaf") {
		t.Error("the neighbour is pushed out")
	}
	if gone := tb.Sweep(at(126)); len(gone) != 1 || gone[0].PDU.Port.String() != "leaf" {
		t.Errorf("at the end of its time: %+v", gone)
	}
}

func TestTable_WhoFallsSilentMakesWay(t *testing.T) {
	var tb Table
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	for _, s := range []int{0, 10} {
		// liars that repeat themselves, and then claim a time to live of 18 hours
		for i := range MaxNeighbours {
			tb.Learn(at(s), plan.MAC{2, 6}, from(fmt.Sprint(i), 65535))
		}
	}
	if c, _ := tb.Learn(at(20), plan.MAC{2}, from("leaf", 120)); c != Rejected {
		t.Errorf("while all are heard: change %d", c)
	}
	c, gone := tb.Learn(at(10+121), plan.MAC{2}, from("leaf", 120))
	if c != Unsure || gone == nil || gone.PDU.Port.String() != "0" {
		t.Errorf("after their silence: change %d, gone %+v", c, gone)
	}
}

func TestAdvertiser_FourQuicklyThenEveryThirtySeconds(t *testing.T) {
	var a Advertiser
	var sent []int
	step := func(s int) {
		if a.Due(epoch.Add(time.Duration(s) * time.Second)) {
			sent = append(sent, s)
		}
	}
	for s := range 140 {
		if s >= 100 && s < 103 { // a series that is running continues
			a.Restart(epoch.Add(time.Duration(s) * time.Second))
		}
		step(s)
	}
	if got, want := fmt.Sprint(sent), "[0 1 2 3 33 63 93 101 102 103 104 134]"; got != want {
		t.Errorf("sent at %s, want %s", got, want)
	}
}
