package lldp

import (
	"fmt"
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
		if got := tb.Learn(at(s), src, p); got != want {
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
	if n := tb.Neighbours(); len(n) != 2 || n[0].PDU.SystemName != "leaf" || n[0].Since != epoch || n[0].Heard != at(20) {
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
	for i := range 1000 {
		tb.Learn(epoch, plan.MAC{2}, from(fmt.Sprint(i), 65535))
	}
	if n := tb.Neighbours(); len(n) != MaxNeighbours || tb.Refused != 1000-MaxNeighbours {
		t.Fatalf("%d neighbours, %d refused", len(n), tb.Refused)
	}
	if got := tb.Learn(epoch, plan.MAC{2}, from("0", 65535)); got != Same {
		t.Errorf("a known neighbour in a full table: %d", got)
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
		if s >= 100 && s < 103 { // while it is under way it goes on
			a.Restart(epoch.Add(time.Duration(s) * time.Second))
		}
		step(s)
	}
	if got, want := fmt.Sprint(sent), "[0 1 2 3 33 63 93 101 102 103 104 134]"; got != want {
		t.Errorf("sent at %s, want %s", got, want)
	}
}
