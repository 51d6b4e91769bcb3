package lacp

import (
	"slices"
	"testing"

	"heddle/internal/plan/problem"
)

// A drained member leaves the LAG at once and announces that, so that its partner sends by the others; it continues to
// send LACPDUs, and returns when it is no longer drained.
func TestS52_ADrainedMemberTellsItsPartnerAndComesBack(t *testing.T) {
	cfg := config(1, "a", "b")
	b := newBench(t, cfg)
	b.join(2, "a", "b")
	b.sent = nil
	drained := cfg
	drained.Drained = []string{"a"}
	b.take(b.l.Configure(b.now, drained))
	if got := b.usable(); !slices.Equal(got, []string{"b"}) || b.status("a").Reason.Code != problem.Drained {
		t.Fatalf("drained: usable %v, a: %s", got, b.status("a").Reason)
	}
	told := b.pdus("a")
	if len(told) != 1 || told[0].Actor.State.has(Synchronization|Collecting|Distributing) ||
		!told[0].Actor.State.has(Aggregation) {
		t.Fatalf("the partner was told %+v", told)
	}
	for range 10 {
		b.pass(fastPeriod)
		b.hear(2, "a", allGood&^(Collecting|Distributing))
		b.hear(2, "b", allGood)
	}
	if n := len(b.pdus("a")); n < 5 {
		t.Errorf("a drained member sent %d PDUs in ten periods", n)
	}
	if got := b.usable(); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("its partner is heard, and usable are %v", got)
	}
	b.take(b.l.Configure(b.now, cfg))
	b.pass(aggregateWait)
	b.hear(2, "b", allGood)
	b.hear(2, "a", allGood)
	if got := b.usable(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after its return: %v", got)
	}
}

// A LAG without a partner uses the first member that is not drained.
func TestFallback_ADrainedMemberIsNotUsedAlone(t *testing.T) {
	cfg := config(1, "a", "b")
	cfg.Fallback = FallbackSingle
	b := newBench(t, cfg)
	b.up("a", "b")
	b.pass(shortTimeout)
	cfg.Drained = []string{"a"}
	b.take(b.l.Configure(b.now, cfg))
	if got := b.usable(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("usable %v", got)
	}
}
