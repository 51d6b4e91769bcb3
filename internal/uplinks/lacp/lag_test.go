package lacp

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLAG_FormsAndShowsItsPartner(t *testing.T) {
	b := newBench(t, config(1, "a", "b"))
	b.up("a", "b")
	if got := b.usable(); len(got) != 0 {
		t.Fatalf("usable without a partner: %v", got)
	}
	b.join(2, "a", "b")
	if got := b.usable(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("usable %v", got)
	}
	if s := b.l.Status(); s.Partner == nil || *s.Partner != system(2) || s.PartnerKey != 3 {
		t.Errorf("partner %+v", s)
	}
}

// The mux machine, step by step, with the flags that are sent to the partner.
func TestMux_OneStateAfterTheOther(t *testing.T) {
	b := newBench(t, config(1, "a"))
	b.up("a")
	b.pass(time.Second) // so that the rate is no obstacle
	expect := func(when string, mux muxState, want State) {
		t.Helper()
		if got := b.status("a").Mux; got != string(mux) {
			t.Fatalf("%s: %s, want %s", when, got, mux)
		}
		const told = Synchronization | Collecting | Distributing
		p := b.pdus("a")
		if len(p) == 0 || p[len(p)-1].Actor.State&told != want {
			t.Fatalf("%s: told %+v, want %s", when, p, want)
		}
	}
	b.hear(2, "a", allGood&^(Synchronization|Collecting|Distributing))
	expect("partner heard", muxWaiting, 0)
	b.pass(aggregateWait)
	expect("waited", muxAttached, Synchronization)
	b.hear(2, "a", allGood&^(Collecting|Distributing))
	expect("partner in sync", muxCollecting, Synchronization|Collecting)
	b.hear(2, "a", allGood&^Distributing)
	expect("partner takes frames", muxDistributing, Synchronization|Collecting|Distributing)
	b.pass(time.Second)
	b.hear(2, "a", allGood&^(Collecting|Distributing))
	expect("partner stops taking frames", muxCollecting, Synchronization|Collecting)
	b.hear(2, "a", allGood)
	expect("and takes them again", muxDistributing, Synchronization|Collecting|Distributing)
	b.pass(time.Second)
	b.hear(2, "a", allGood&^(Synchronization|Collecting|Distributing))
	expect("partner leaves", muxAttached, Synchronization)
	b.pass(time.Second)
	b.hear(2, "a", allGood)
	expect("partner returns", muxDistributing, Synchronization|Collecting|Distributing)
	b.hear(3, "a", allGood)
	expect("another partner", muxWaiting, 0)
}

func TestS52_FailedMemberLeavesTheOthersAlone(t *testing.T) {
	b := newBench(t, config(1, "a", "b", "c"))
	b.join(2, "a", "b", "c")
	b.step(Carrier{Member: "b", Up: false})
	if got := b.usable(); !slices.Equal(got, []string{"a", "c"}) {
		t.Fatalf("after the loss of b: %v", got)
	}
	if r := b.status("b").Reason.Text(); r != "lacp: no carrier" {
		t.Errorf("reason %q", r)
	}
	b.up("b")
	b.hear(2, "b", allGood)
	b.pass(aggregateWait)
	b.hear(2, "b", allGood)
	if got := b.usable(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("after its return: %v", got)
	}
}

func TestS52_SilentMemberLeavesAfterItsTimeout(t *testing.T) {
	b := newBench(t, config(1, "a", "b"))
	b.join(2, "a", "b")
	for range 3 {
		b.pass(time.Second)
		b.hear(2, "a", allGood)
	}
	if got := b.usable(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("three seconds later: %v", got)
	}
	if r := b.status("b").Reason.Text(); r != "lacp: partner silent" {
		t.Errorf("reason %q", r)
	}
}

func TestS53_PassiveSaysNothingToASilentPeer(t *testing.T) {
	for _, fallback := range []Fallback{FallbackNone, FallbackSingle} {
		cfg := config(1, "a", "b")
		cfg.Active, cfg.Fallback = false, fallback
		b := newBench(t, cfg)
		b.up("a", "b")
		b.pass(time.Hour)
		b.step(Carrier{Member: "a", Up: false})
		b.up("a")
		b.pass(time.Hour)
		b.take(Effects{Send: b.l.Goodbye()})
		b.take(b.l.Refresh(b.now))
		if len(b.sent) != 0 {
			t.Errorf("fallback %s: %d frames were sent", fallback, len(b.sent))
		}
		if got := len(b.usable()); got != map[Fallback]int{FallbackNone: 0, FallbackSingle: 1}[fallback] {
			t.Errorf("fallback %s: %d usable", fallback, got)
		}
	}
}

// A passive LAG answers a partner that sends, and is silent again when the partner goes silent.
func TestS53_PassiveAnswersAnActivePartner(t *testing.T) {
	cfg := config(1, "a")
	cfg.Active = false
	b := newBench(t, cfg)
	b.join(2, "a")
	b.pass(10 * time.Second)
	b.pdus("a")
	b.pass(time.Hour)
	if n := len(b.pdus("a")); n != 0 {
		t.Errorf("%d PDUs to a partner that is gone", n)
	}
}

func TestFallback_FirstMemberWithCarrierAlone(t *testing.T) {
	cfg := config(1, "a", "b", "c")
	cfg.Fallback = FallbackSingle
	b := newBench(t, cfg)
	expect := func(when string, want ...string) {
		t.Helper()
		if got := b.usable(); !slices.Equal(got, append([]string{}, want...)) {
			t.Fatalf("%s: usable %v, want %v", when, got, want)
		}
	}
	b.up("b", "c")
	expect("before the timeout")
	b.pass(shortTimeout)
	expect("silent", "b")
	if r := b.status("c").Reason.Text(); r != "lacp: no partner; b is used as a single link" {
		t.Errorf("reason %q", r)
	}
	b.up("a")
	expect("a has just come", "b")
	b.pass(shortTimeout)
	expect("a has its turn", "a")
	b.step(Carrier{Member: "a", Up: false})
	expect("a went", "b")
	b.hear(2, "c", allGood)
	expect("a partner appears")
	b.pass(aggregateWait)
	b.hear(2, "c", allGood)
	expect("the partner is in sync", "c")
	b.pass(2 * shortTimeout)
	expect("the partner is gone", "b")
	cfg.Fallback = FallbackNone
	b.take(b.l.Configure(b.now, cfg))
	expect("without fallback")
}

func TestSelection_OtherPartnersStayOut(t *testing.T) {
	b := newBench(t, config(1, "a", "b", "c"))
	b.up("a", "b", "c")
	b.hear(3, "a", allGood)
	b.hear(2, "b", allGood)
	b.hear(2, "c", allGood)
	b.pass(aggregateWait)
	b.hear(3, "a", allGood)
	b.hear(2, "b", allGood)
	b.hear(2, "c", allGood)
	if got := b.usable(); !slices.Equal(got, []string{"b", "c"}) {
		t.Fatalf("usable %v: the partner of most members counts", got)
	}
	if r := b.status("a").Reason.Text(); !strings.Contains(r,
		"partner 32768,02:00:00:00:00:03 key 3 is not that of the LAG (32768,02:00:00:00:00:02 key 3)") {
		t.Errorf("reason %q", r)
	}
	// A majority that comes later does not replace the partner in use.
	b.hear(3, "b", allGood)
	b.pass(aggregateWait)
	b.hear(3, "a", allGood)
	b.hear(3, "b", allGood)
	b.hear(2, "c", allGood)
	if got := b.usable(); !slices.Equal(got, []string{"c"}) {
		t.Fatalf("usable %v: the partner in use stays", got)
	}
	b.step(Carrier{Member: "c", Up: false})
	b.pass(aggregateWait)
	b.hear(3, "a", allGood)
	b.hear(3, "b", allGood)
	if got := b.usable(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("usable %v: the other partner's turn", got)
	}
}

func TestSelection_OneIndividualLinkAtATime(t *testing.T) {
	b := newBench(t, config(1, "a", "b"))
	b.up("a", "b")
	for range 2 {
		b.hear(2, "a", allGood&^Aggregation)
		b.hear(2, "b", allGood&^Aggregation)
		b.pass(aggregateWait)
	}
	b.hear(2, "a", allGood&^Aggregation)
	b.hear(2, "b", allGood&^Aggregation)
	if got := b.usable(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("usable %v", got)
	}
	if r := b.status("b").Reason.Text(); r != "lacp: the partner takes the link as an individual one" {
		t.Errorf("reason %q", r)
	}
}

func TestSelection_ALoopIsNoPartner(t *testing.T) {
	b := newBench(t, config(1, "a", "b"))
	b.up("a", "b")
	for range 5 {
		for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
			for _, p := range b.pdus(pair[0]) {
				b.step(Received{Member: pair[1], PDU: p})
			}
		}
		b.pass(time.Second)
	}
	if got := b.usable(); len(got) != 0 {
		t.Fatalf("usable %v", got)
	}
	if r := b.status("a").Reason.Text(); !strings.Contains(r, "loop") {
		t.Errorf("reason %q", r)
	}
}

// If there is a partner, our own PDUs that come back take no member out.
func TestS98_OurOwnWordPutsNoPartnerOut(t *testing.T) {
	b := newBench(t, config(1, "a", "b"))
	b.up("a", "b")
	b.join(2, "a", "b")
	before := b.status("a")
	b.hear(1, "a", allGood)
	after := b.status("a")
	if !after.Usable || after.Partner != before.Partner || !after.Reason.None() ||
		after.Counters.In != before.Counters.In+1 {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}

func TestTransmit_RateAndPeriod(t *testing.T) {
	b := newBench(t, config(1, "a"))
	b.join(2, "a")
	b.pass(time.Second)
	b.pdus("a")
	for range 10 { // a partner that requests an answer again and again
		p := b.answer(2, "a", allGood)
		p.Partner.Key++
		b.step(Received{Member: "a", PDU: p})
	}
	if n := len(b.pdus("a")); n > burst {
		t.Fatalf("%d PDUs at once", n)
	}
	b.pass(time.Second)
	if n := len(b.pdus("a")); n == 0 {
		t.Fatal("what the rate held back was never sent")
	}
	for _, c := range []struct {
		wants State
		every time.Duration
	}{{allGood, fastPeriod}, {allGood &^ ShortTimeout, slowPeriod}} {
		stay := func(periods int) { // in time for our own timeout
			for range periods * int(c.every/fastPeriod) {
				b.hear(2, "a", c.wants)
				b.pass(fastPeriod)
			}
		}
		stay(1)
		b.pdus("a")
		const n = 4
		stay(n)
		if got := len(b.pdus("a")); got != n {
			t.Errorf("partner wants %s: %d PDUs in %d periods", c.wants, got, n)
		}
	}
}

// A partner that now asks for a PDU every second does not have to wait for the end of a period of thirty seconds.
func TestTransmit_AShorterPeriodCountsAtOnce(t *testing.T) {
	b := newBench(t, config(1, "a"))
	b.join(2, "a")
	b.hear(2, "a", allGood&^ShortTimeout)
	b.pass(2 * time.Second)
	b.pdus("a")
	b.hear(2, "a", allGood)
	b.pass(time.Second)
	if n := len(b.pdus("a")); n != 1 {
		t.Errorf("%d PDUs in the second after", n)
	}
}

func TestMarker_IsAnsweredAtABoundedRate(t *testing.T) {
	b := newBench(t, config(1, "a"))
	k := Marker{Port: 4, System: system(2).MAC, Transaction: 99}
	b.step(Asked{Member: "a", Marker: k})
	if len(b.sent) != 0 {
		t.Fatal("a marker was answered without carrier")
	}
	b.up("a")
	b.sent = nil
	for range 50 {
		b.step(Asked{Member: "a", Marker: k})
	}
	b.step(Asked{Member: "a", Marker: k.Answer()})
	if len(b.sent) != answers {
		t.Errorf("%d answers", len(b.sent))
	}
	_, got, err := Decode(b.sent[0].Payload)
	if err != nil || got == nil || *got != k.Answer() {
		t.Errorf("answer %+v, %v", got, err)
	}
}

func TestConfigure_KeepsWhatDoesNotChange(t *testing.T) {
	cfg := config(1, "a", "b")
	b := newBench(t, cfg)
	b.join(2, "a", "b")
	more := config(1, "a", "b", "c")
	more.Fast = false
	b.take(b.l.Configure(b.now, more))
	if got := b.usable(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("usable %v after a member was added", got)
	}
	less := more
	less.Members = more.Members[1:]
	b.pass(time.Second)
	b.pdus("a")
	b.take(b.l.Configure(b.now, less))
	if got := b.usable(); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("usable %v after a member was taken away", got)
	}
	last := b.pdus("a")
	if len(last) != 1 || last[0].Actor.State&(Synchronization|Collecting|Distributing) != 0 {
		t.Errorf("the member taken away said %+v", last)
	}
	other := less
	other.Key++
	b.take(b.l.Configure(b.now, other))
	if got := b.usable(); len(got) != 0 {
		t.Errorf("usable %v with another key", got)
	}
	if s := b.status("b"); s.Receive != string(rxExpired) {
		t.Errorf("carrier is forgotten with another key: %s", s.Receive)
	}
}

func TestRestore_GoesOnWhereItWas(t *testing.T) {
	cfg := config(1, "a", "b", "c")
	b := newBench(t, cfg)
	b.join(2, "a", "b")
	b.up("c")
	b.pass(time.Second)
	b.hear(3, "c", allGood)
	saved := b.l.Snapshot()

	again := newBench(t, cfg)
	again.now = b.now.Add(2 * time.Second)
	again.take(again.l.Restore(again.now, saved))
	if got := again.usable(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("usable %v", got)
	}
	if p := again.pdus("a"); len(p) != 1 || p[0].Actor.State != allGood || p[0].Partner.System != system(2) {
		t.Errorf("the first word after a restart: %+v", p)
	}
	again.step(Carrier{Member: "b", Up: false})
	again.pass(2 * time.Second)
	if got := again.usable(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("usable %v after b was found without carrier", got)
	}
	again.pass(time.Second)
	if got := again.usable(); len(got) != 0 {
		t.Errorf("usable %v after a whole timeout of silence", got)
	}

	other := cfg
	other.System = system(9)
	fresh := newBench(t, other)
	fresh.take(fresh.l.Restore(fresh.now, saved))
	if s := fresh.status("a"); s.Usable || s.Receive != string(rxDisabled) {
		t.Errorf("what another system remembered counts: %+v", s)
	}
}

// A majority that waited when the process ended does not replace the partner in use.
func TestRestore_ThePartnerInUseStays(t *testing.T) {
	cfg := config(1, "a", "b", "c")
	b := newBench(t, cfg)
	b.join(2, "c")
	b.up("a", "b")
	b.hear(3, "a", allGood)
	b.hear(3, "b", allGood)
	again := newBench(t, cfg)
	again.take(again.l.Restore(again.now, b.l.Snapshot()))
	if got := again.usable(); !slices.Equal(got, []string{"c"}) {
		t.Fatalf("usable %v", got)
	}
}

func TestRestore_TheFallbackGoesOn(t *testing.T) {
	cfg := config(1, "a", "b")
	cfg.Fallback = FallbackSingle
	b := newBench(t, cfg)
	b.up("a", "b")
	b.pass(shortTimeout)
	again := newBench(t, cfg)
	again.take(again.l.Restore(again.now, b.l.Snapshot()))
	if got := again.usable(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("usable %v", got)
	}
}
