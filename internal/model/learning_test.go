package model

import (
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// m is a MAC behind a port, not the port's own.
func m(n int) plan.MAC { return plan.MAC{0x06, 0, 0, 0, 0, byte(n)} }

func TestS12_LearnedUnicastGoesToItsPortOnly(t *testing.T) {
	r := newRig(t, vnic("a", access(5), learning), vnic("b", access(5), learning), vnic("c", access(5), learning),
		vnic("d", access(6), learning), up("u"))
	r.send("a", eth(all, m(1)))
	f := eth(m(1), portMAC(2))
	r.delivered(r.send("b", f), f, "a")
	r.expect(r.send("d", eth(m(1), portMAC(4))), // another VLAN knows nothing of it
		outcome{copies: map[string][]byte{"u": tagged(eth(m(1), portMAC(4)), typeQ, 6)}})
	if got := r.h.MACs(); len(got) != 1 ||
		got[0] != (MAC{Switch: "s", Segment: Segment{VLAN: 5}, MAC: m(1), Port: id("a"), Seen: r.now}) {
		t.Errorf("learned %v", got)
	}
}

func TestS13_WithoutLearningUnknownUnicastReachesNoPlainPort(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"), up("u"))
	r.dropped(r.send("u", eth(m(1), m(9))), abi.ReasonUnknownUnicast)
}

func TestS14_UnknownUnicastReachesFloodingPortsOnly(t *testing.T) {
	r := newRig(t, vnic("a", learning), vnic("b", learning), vnic("c", learning, noFlooding), vnic("d"), up("u"))
	f := eth(m(1), m(9))
	r.delivered(r.send("u", f), f, "a", "b")
	g := eth(m(1), portMAC(4))
	r.delivered(r.send("d", g), g, "a", "b", "u")
}

func TestS15_LimitWithDropDropsNewSources(t *testing.T) {
	r := newRig(t, vnic("a", learning, limit(1, spec.LimitDrop)), vnic("b", learning), up("u"))
	r.send("a", eth(all, m(1)))
	r.dropped(r.send("a", eth(all, m(2))), abi.ReasonMACLimit)
	f := eth(all, m(1))
	r.delivered(r.send("a", f), f, "b", "u")
	c := r.counters("a")
	if c.MACNotLearnedDropped != 1 || c.MACsLearned != 1 || c.DropsIn[abi.ReasonMACLimit] != 1 {
		t.Errorf("counters %+v", c)
	}
	r.delivered(r.send("u", eth(m(2), m(9))), eth(m(2), m(9)), "a", "b") // not marked as sent, and unknown
	g := eth(all, m(2))                                                  // S91: nor marked as sent
	if res := r.send("u", g); len(res.Refused) != 0 {
		t.Errorf("refused %v", res.Refused)
	}
}

func TestS16_LimitWithAllowForwardsUnlearned(t *testing.T) {
	r := newRig(t, vnic("a", learning, limit(0, spec.LimitAllow)), vnic("b"))
	f := eth(all, m(2))
	r.delivered(r.send("a", f), f, "b")
	if c := r.counters("a"); c.MACNotLearnedAllowed != 1 || c.MACsLearned != 0 || len(r.h.MACs()) != 0 {
		t.Errorf("counters %+v, learned %v", c, r.h.MACs())
	}
}

func TestS17_S93_AnEntryPastItsAgeingIsUnknownWithoutASweep(t *testing.T) {
	r := newRig(t, vnic("a", learning, noFlooding), vnic("b"))
	r.send("a", eth(all, m(1)))
	r.now += time.Minute
	f := eth(m(1), portMAC(2))
	r.delivered(r.send("b", f), f, "a")
	r.now += time.Millisecond
	r.dropped(r.send("b", f), abi.ReasonUnknownUnicast)
	if len(r.h.MACs()) != 1 {
		t.Error("the entry went without a sweep")
	}
	r.h.Sweep(r.now)
	if len(r.h.MACs()) != 0 || r.counters("a").MACsLearned != 0 {
		t.Error("the sweep left an expired entry")
	}
}

func TestD5_D19_ExpiredEntriesCountTowardsTheLimitUntilSwept(t *testing.T) {
	r := newRig(t, vnic("a", learning, limit(1, spec.LimitDrop)), vnic("b"))
	r.send("a", eth(all, m(1)))
	r.now += time.Hour
	r.dropped(r.send("a", eth(all, m(2))), abi.ReasonMACLimit)
	r.h.Sweep(r.now)
	f := eth(all, m(2))
	r.delivered(r.send("a", f), f, "b")
}

func TestS18_NothingIsLearnedFromAnUplink(t *testing.T) {
	r := newRig(t, vnic("a", learning), up("u"))
	r.send("u", eth(all, m(1)))
	if got := r.h.MACs(); len(got) != 0 {
		t.Errorf("learned %v", got)
	}
}

func TestS19_D16_D19_AnOwnedMACIsNotLearnedElsewhere(t *testing.T) {
	r := newRig(t, vnic("a", learning), vnic("b"), up("u"))
	for _, src := range []plan.MAC{portMAC(2), uplinkMAC(1), portMAC(1)} {
		f := eth(all, src)
		r.delivered(r.send("a", f), f, "b", "u")
	}
	if got := r.h.MACs(); len(got) != 0 {
		t.Errorf("learned %v", got)
	}
	f := eth(portMAC(2), m(9))
	r.delivered(r.send("u", f), f, "b")
}

func TestS20_AMACFoundElsewhereMoves(t *testing.T) {
	r := newRig(t, vnic("a", learning), vnic("b", learning), vnic("c"))
	r.send("a", eth(all, m(1)))
	res := r.send("b", eth(all, m(1)))
	if len(res.Changes) != 1 || res.Changes[0].Kind != Moved || res.Changes[0].Before != id("a") {
		t.Errorf("changes %v", res.Changes)
	}
	f := eth(m(1), portMAC(3))
	r.delivered(r.send("c", f), f, "b")
	if a, b := r.counters("a"), r.counters("b"); a.MACsLearned != 0 || b.MACsLearned != 1 || b.MACMoves != 1 {
		t.Errorf("a %+v, b %+v", a, b)
	}
}

func TestS92_ASilentMACSeenFromOutsideIsForgotten(t *testing.T) {
	r := newRig(t, vnic("a", learning, noFlooding), vnic("b"), up("u"))
	r.send("a", eth(all, m(1)))
	r.now += 999 * time.Millisecond
	r.send("u", eth(all, m(1)))
	f := eth(m(1), portMAC(2))
	r.delivered(r.send("b", f), f, "a")
	r.now += time.Millisecond
	if res := r.send("u", eth(all, m(1))); len(res.Changes) != 1 || res.Changes[0].Kind != Removed {
		t.Errorf("changes %v", res.Changes)
	}
	r.delivered(r.send("b", f), f, "u")
	if c := r.counters("a"); c.MACsLearned != 0 {
		t.Errorf("still counted: %+v", c)
	}
}

// TestS158_WhoSpeaksOutsideAgainHasMoved: an echo comes right after the frame that it is of, and as often.
func TestS158_WhoSpeaksOutsideAgainHasMoved(t *testing.T) {
	r := newRig(t, vnic("a", learning, noFlooding), vnic("b"), up("u"))
	f := eth(m(1), portMAC(2))
	r.send("a", eth(all, m(1)))
	for range 20 { // echoes of a guest that goes on sending
		r.now += 90 * time.Millisecond
		r.send("u", eth(all, m(1)))
		r.send("u", eth(all, m(1)))
		r.send("a", eth(all, m(1)))
	}
	r.delivered(r.send("b", f), f, "a")
	r.now += 100 * time.Millisecond
	r.send("u", eth(all, m(1)))
	r.delivered(r.send("b", f), f, "a")
	if res := r.send("u", eth(all, m(1))); len(res.Changes) != 1 || res.Changes[0].Kind != Removed {
		t.Errorf("changes %v", res.Changes)
	}
	r.delivered(r.send("b", f), f, "u")
	r.send("a", eth(all, m(1)))
	r.delivered(r.send("b", f), f, "a") // it is back
	r.now += 300 * time.Millisecond
	r.send("u", eth(all, m(1)))
	r.send("a", eth(all, m(1)))
	r.now += 300 * time.Millisecond
	r.send("u", eth(all, m(1))) // it has spoken here since the first one
	r.delivered(r.send("b", f), f, "a")
}

func TestSweepAfterAChangeRemovesWhatCountsNoMore(t *testing.T) {
	changes := map[string]func(*rig){
		"learning off":   func(r *rig) { r.port("a").Policy.Learning.Enabled.V = false },
		"other VLAN":     func(r *rig) { r.port("a").Policy.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: 7} },
		"not connected":  func(r *rig) { delete(r.facts, id("a")) },
		"gone":           func(r *rig) { r.sw.Ports = r.sw.Ports[1:] },
		"shorter ageing": func(r *rig) { r.port("a").Policy.Learning.Ageing.V = time.Second; r.now += 2 * time.Second },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vnic("a", learning), vnic("b"))
			r.send("a", eth(all, m(1)))
			r.change(change)
			if got := r.h.MACs(); len(got) != 0 || r.counters("a").MACsLearned != 0 {
				t.Errorf("still learned: %v", got)
			}
		})
	}
}
