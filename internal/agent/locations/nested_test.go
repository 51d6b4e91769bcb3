package locations

import (
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// TestS84_WhatTheTableShowsOfAMACThatAnotherHostHas: it is forgotten when it has been silent, claimed anew when it was
// heard here after the controllers said that it is elsewhere, and left alone otherwise.
func TestS84_WhatTheTableShowsOfAMACThatAnotherHostHas(t *testing.T) {
	key := learnedAt(5000, 0, plan.MAC{2, 0, 0, 0, 0, 1})
	said := time.Now()
	for _, c := range []struct {
		name        string
		read        time.Duration // after the controllers said so
		idle        float64
		here        bool // the controllers say that it is here by now
		gone, again bool
	}{
		{name: "heard before and silent", read: 100 * time.Millisecond, idle: 5, gone: true},
		{name: "heard before and not silent yet", read: 100 * time.Millisecond, idle: 0.5},
		{name: "heard since", read: 100 * time.Millisecond, idle: 0.05, again: true},
		{name: "heard since and silent", read: 3 * time.Second, idle: 2, again: true},
		{name: "heard in the tick in which they said so", read: 100 * time.Millisecond, idle: 0.1, again: true},
		{name: "it is here again", read: 100 * time.Millisecond, idle: 5, here: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNested()
			n.macs[key] = true
			n.claimed(key, said)
			all := []observe.MACEntry{{MAC: key.MAC, VNI: key.VNI, Idle: c.idle}}
			elsewhere := func(overlay.Key) bool { return !c.here }
			gone, back := n.take(all, said.Add(c.read), elsewhere)
			if (len(gone) == 1) != c.gone || (len(back) == 1) != c.again || n.macs[key] == c.gone {
				t.Errorf("forgotten %v, claimed anew %v, kept %v", gone, back, n.macs)
			}
		})
	}
}

// TestS84_OfTwoGuestsWithOneMACNoneIsClaimedAllTheTime: while both speak, each host claims it only now and then.
func TestS84_OfTwoGuestsWithOneMACNoneIsClaimedAllTheTime(t *testing.T) {
	key := learnedAt(5000, 0, plan.MAC{2, 0, 0, 0, 0, 1})
	n, now, claims := newNested(), time.Now(), 0
	n.macs[key] = true
	for range 60 {
		n.claimed(key, now)
		now = now.Add(time.Second)
		gone, back := n.take([]observe.MACEntry{{MAC: key.MAC, VNI: key.VNI, Idle: 0.2}}, now,
			func(overlay.Key) bool { return true })
		if len(gone) > 0 {
			t.Fatal("one that speaks is forgotten")
		}
		claims += len(back)
	}
	if claims != 12 {
		t.Errorf("%d claims within a minute", claims)
	}
}

// TestS84_AMACThatIsLearnedAgainIsALaterClaim: also before the controllers have said that it was elsewhere meanwhile,
// and in a flood of others.
func TestS84_AMACThatIsLearnedAgainIsALaterClaim(t *testing.T) {
	key := learnedAt(5000, 0, plan.MAC{2, 0, 0, 0, 0, 1})
	for _, c := range []struct {
		name                                   string
		kind                                   uint32
		known, crowded, elsewhere, claims, new bool
	}{
		{name: "the first time", kind: abi.TellLearned, claims: true},
		{name: "the first time, in a flood", kind: abi.TellLearned, crowded: true},
		{name: "again", kind: abi.TellLearned, known: true, claims: true, new: true},
		{name: "again, in a flood", kind: abi.TellLearned, known: true, crowded: true, claims: true, new: true},
		{name: "it was elsewhere, in a flood", kind: abi.TellLearned, crowded: true, elsewhere: true, claims: true},
		{name: "from one port to another", kind: abi.TellMoved, known: true, claims: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNested()
			if c.known {
				n.macs[key] = true
			}
			note, claims := n.hear(&dataplane.Told{Kind: c.kind, VNI: key.VNI, MAC: key.MAC}, time.Now(), c.crowded,
				func(overlay.Key) bool { return c.elsewhere })
			if claims != c.claims || note.Anew != c.new || claims && !n.macs[key] {
				t.Errorf("a claim %v, a later one %v, of %v", claims, note.Anew, n.macs)
			}
		})
	}
}

// TestS112_AMACMovesToAHostThatKnowsNoVLANs: such a host says that it has the MAC in the whole VNI. What was learned
// here in a VLAN is forgotten when it is silent, and claimed anew when it is heard.
func TestS112_AMACMovesToAHostThatKnowsNoVLANs(t *testing.T) {
	key, other := learnedAt(5000, 10, plan.MAC{2, 0, 0, 0, 0, 1}), learnedAt(5000, 10, plan.MAC{2, 0, 0, 0, 0, 2})
	said := time.Now()
	for _, c := range []struct {
		name string
		idle float64
		back bool
	}{{"silent", 5, false}, {"heard since", 0.01, true}} {
		t.Run(c.name, func(t *testing.T) {
			n := newNested()
			n.has(key)
			n.has(other)
			n.claimed(key.Whole(), said)
			all := []observe.MACEntry{{MAC: key.MAC, VNI: 5000, VLAN: 10, Idle: c.idle},
				{MAC: other.MAC, VNI: 5000, VLAN: 10, Idle: c.idle}}
			gone, back := n.take(all, said.Add(100*time.Millisecond), func(k overlay.Key) bool { return k == key })
			if (len(gone) == 1) == c.back || (len(back) == 1) != c.back || n.macs[key] != c.back || !n.macs[other] {
				t.Errorf("forgotten %v, claimed anew %v, kept %v", gone, back, n.macs)
			}
		})
	}
}
