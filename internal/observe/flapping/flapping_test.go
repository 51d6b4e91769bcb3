package flapping_test

import (
	"fmt"
	"testing"
	"time"

	"heddle/internal/observe/flapping"
	"heddle/internal/plan"
)

func at(second int) time.Time { return time.Unix(int64(second), 0) }

func key(mac string) flapping.Key {
	return flapping.Key{Switch: "dvs", Segment: plan.SegmentOf(10, false), MAC: mac}
}

// A MAC that is learned again within the window is listed with its newest port; one that comes back later, and one that
// is learned once, are not.
func TestWhatIsLearnedAgainIsListed(t *testing.T) {
	l := &flapping.Ledger{}
	l.Learned(key("a"), "p1", at(0))
	l.Learned(key("b"), "p1", at(0))
	if list := l.Again(at(1)); len(list) != 0 {
		t.Errorf("learned once: %+v", list)
	}
	l.Learned(key("a"), "p2", at(100))
	l.Learned(key("a"), "p3", at(200))
	l.Learned(key("b"), "p1", at(301))
	list := l.Again(at(302))
	if len(list) != 1 || list[0].MAC != "a" || list[0].Times != 3 || list[0].Port != "p3" {
		t.Errorf("%+v", list)
	}
	if list := l.Again(at(501)); len(list) != 0 {
		t.Errorf("after the window: %+v", list)
	}
}

// A guest that invents MACs neither fills the memory nor the list.
func TestTheLedgerIsBounded(t *testing.T) {
	l := &flapping.Ledger{}
	for i := range 100_000 {
		l.Learned(key(fmt.Sprint(i)), "p", at(0))
		l.Learned(key(fmt.Sprint(i)), "p", at(0))
	}
	if n := len(l.Again(at(0))); n != flapping.Listed {
		t.Errorf("%d are listed", n)
	}
	l.Learned(key("later"), "p", at(1000))
	l.Learned(key("later"), "p", at(1000))
	if list := l.Again(at(1000)); len(list) != 1 {
		t.Errorf("when the others have gone: %+v", list)
	}
}
