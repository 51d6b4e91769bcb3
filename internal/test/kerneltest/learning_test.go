package kerneltest

import (
	"testing"
	"time"
)

// nested is two learning port groups, a plain one in the same VLAN and one in another VLAN.
const nested = `
  uplinks: [{name: u1, device: dev1}]
  defaults:
    vlan: {access: 5}
    security: {forgedTransmits: accept, macLearning: {limit: 2, ageing: 1m}}
  portGroups:
  - {name: learn, security: {macLearning: {enabled: true}}}
  - {name: quiet, security: {macLearning: {enabled: true, unicastFlooding: false}}}
  - {name: plain}
  - {name: other, vlan: {access: 6}, security: {macLearning: {enabled: true}}}
`

func TestS12_LearnedUnicastGoesToItsPortOnly(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 learn", "vm3 plain", "vm4 other")
	r.send("vm1", "all nest1 0806", to("vm2 vm3"), to("u1", "all nest1 q5 0806"))
	r.learned("5 nest1 vm1")
	r.send("vm2", "nest1 vm2 0800", to("vm1"))
	r.send("u1", "nest1 ext1 q5 0800", to("vm1", "nest1 ext1 0800"))
	r.send("vm4", "nest1 vm4 0800", to("u1", "nest1 vm4 q6 0800")) // another VLAN knows nothing of it
	r.send("vm1", "nest1 nest2 0800", dropped("own-destination"))
	r.learned("5 nest1 vm1", "5 nest2 vm1")
}

func TestS13_WithoutLearningUnknownUnicastReachesNoPlainPort(t *testing.T) {
	r := newRig(t, nested, "vm1 plain", "vm2 plain")
	r.send("vm1", "all nest1 0806", to("vm2"), to("u1", "all nest1 q5 0806"))
	r.learned()
	r.send("u1", "nest1 ext1 q5 0800", dropped("unknown-unicast"))
	r.send("vm2", "nest1 vm2 0800", to("u1", "nest1 vm2 q5 0800"))
}

func TestS14_UnknownUnicastReachesFloodingPortsOnly(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 learn", "vm3 quiet", "vm4 plain", "vm5 other")
	r.send("u1", "nest9 ext1 q5 0800", flooded, to("vm1 vm2", "nest9 ext1 0800"))
	r.send("vm4", "nest9 vm4 0800", flooded, to("vm1 vm2"), to("u1", "nest9 vm4 q5 0800"))
	r.send("vm1", "nest9 vm1 0800", flooded, to("vm2"), to("u1", "nest9 vm1 q5 0800")) // never back to the sender
}

func TestS15_AtTheLimitWithDropANewSourceIsDropped(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 learn")
	both := func(src string) []outcome { return []outcome{to("vm2"), to("u1", "all "+src+" q5 0806")} }
	r.send("vm1", "all nest1 0806", both("nest1")...)
	r.send("vm1", "all nest2 0806", both("nest2")...)
	r.send("vm1", "all nest3 0806", dropped("mac-limit"))
	r.send("vm1", "all vm1 0806", both("vm1")...) // its own MAC takes no place
	r.send("vm1", "all nest2 0806", both("nest2")...)
	r.send("vm2", "nest3 vm2 0800", flooded, to("vm1"), to("u1", "nest3 vm2 q5 0800")) // unknown
	r.learned("5 nest1 vm1", "5 nest2 vm1")
}

// Three ports want more than the table holds: each keeps its share, whatever the others send.
func TestS15_AFullTableIsSharedFairly(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 learn", "vm3 learn")
	r.plan.SetMACTable(4) // limits are 2 each: vm1 gets 1, vm2 1, vm3 2
	r.apply()
	all := func(to1, to2, src string) []outcome {
		return []outcome{to(to1 + " " + to2), to("u1", "all "+src+" q5 0806")}
	}
	r.send("vm1", "all nest1 0806", all("vm2", "vm3", "nest1")...)
	for _, src := range []string{"nest2", "nest3", "nest4", "nest5"} {
		r.send("vm1", "all "+src+" 0806", dropped("mac-table-full"))
	}
	r.send("vm2", "all nest6 0806", all("vm1", "vm3", "nest6")...)
	r.send("vm3", "all nest7 0806", all("vm1", "vm2", "nest7")...)
	r.send("vm3", "all nest8 0806", all("vm1", "vm2", "nest8")...)
	r.send("vm3", "all nest9 0806", dropped("mac-limit"))
	r.learned("5 nest1 vm1", "5 nest6 vm2", "5 nest7 vm3", "5 nest8 vm3")
}

func TestS16_AtTheLimitWithAllowANewSourcePassesUnlearned(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 plain")
	r.change("{limit: 2, ageing: 1m}", "{limit: 1, limitPolicy: allow, ageing: 1m}")
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.send("vm1", "vm2 nest2 0800", to("vm2"))
	r.learned("5 nest1 vm1")
	r.ledger.of("vm1").MACNotLearnedAllowed = 1
	r.send("vm2", "nest2 vm2 0800", flooded, to("vm1"), to("u1", "nest2 vm2 q5 0800")) // unknown, flooded
}

func TestS17_S93_D5_AnIdleEntryIsUnknownWithoutAnyAgent(t *testing.T) {
	r := newRig(t, nested, "vm1 quiet", "vm2 plain")
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.after(40 * time.Second)
	r.send("vm1", "vm2 nest1 0800", to("vm2")) // a frame of its own keeps it
	r.after(time.Minute)
	r.send("vm2", "nest1 vm2 0800", to("vm1"))
	r.after(time.Millisecond)
	r.send("vm2", "nest1 vm2 0800", to("u1", "nest1 vm2 q5 0800"))
	r.learned("5 nest1 vm1") // nobody has swept
	r.sweep()
	r.learned()
}

func TestD5_D19_AnExpiredEntryHoldsItsPlaceUntilTheSweep(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 plain")
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.send("vm1", "vm2 nest2 0800", to("vm2"))
	r.after(time.Hour)
	r.send("vm1", "vm2 nest3 0800", dropped("mac-limit"))
	r.sweep()
	r.learned()
	r.send("vm1", "vm2 nest3 0800", to("vm2"))
	r.learned("5 nest3 vm1")
}

func TestS18_NothingIsLearnedFromAnUplink(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 learn")
	r.send("u1", "vm1 ext1 q5 0800", to("vm1", "vm1 ext1 0800"))
	r.send("u1", "all ext1 q5 0806", to("vm1 vm2", "all ext1 0806"), to("host"))
	r.learned()
	r.send("vm1", "ext1 vm1 0800", flooded, to("vm2"), to("u1", "ext1 vm1 q5 0800")) // still unknown
}

func TestS19_D16_D19_AMACThatAPortOwnsIsNotLearnedElsewhere(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 plain", "vm3 plain")
	r.send("vm1", "vm3 vm2 0800", to("vm3"))
	r.send("vm1", "vm3 dev1 0800", to("vm3"))
	r.send("vm1", "vm3 vm1 0800", to("vm3"))
	r.learned()
	r.send("vm3", "vm2 vm3 0800", to("vm2"))
	r.gone("vm2") // nobody's any more
	r.send("vm1", "vm3 vm2 0800", to("vm3"))
	r.learned("5 vm2 vm1")
	r.resolve(r.cfg) // vm2 is back, and its MAC is its own
	r.send("vm3", "vm2 vm3 0800", to("vm2"))
}

func TestS20_AMACSeenOnAnotherPortIsFoundThere(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 quiet", "vm3 plain")
	r.send("vm1", "vm3 nest1 0800", to("vm3"))
	r.send("vm3", "nest1 vm3 0800", to("vm1"))
	r.send("vm2", "vm3 nest1 0800", to("vm3"))
	r.ledger.of("vm2").MACMoves = 1
	r.learned("5 nest1 vm2")
	r.send("vm3", "nest1 vm3 0800", to("vm2"))
}

func TestS20_APortAtItsLimitTakesNoMACOver(t *testing.T) {
	r := newRig(t, nested, "vm1 learn", "vm2 learn", "vm3 plain")
	r.send("vm1", "vm3 nest1 0800", to("vm3"))
	r.send("vm2", "vm3 nest2 0800", to("vm3"))
	r.send("vm2", "vm3 nest3 0800", to("vm3"))
	r.send("vm2", "vm3 nest1 0800", dropped("mac-limit"))
	r.send("vm3", "nest1 vm3 0800", to("vm1"))
	r.learned("5 nest1 vm1", "5 nest2 vm2", "5 nest3 vm2")
}

func TestS92_AMACThatFellSilentAndIsHeardOutsideIsForgotten(t *testing.T) {
	r := newRig(t, nested, "vm1 quiet", "vm2 plain")
	broadcast := []outcome{to("host"), refused("vm1 vm2", "reflected")}
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.after(999 * time.Millisecond)
	r.send("u1", "all nest1 q5 0806", broadcast...) // our own frame come back
	r.learned("5 nest1 vm1")
	r.send("vm2", "nest1 vm2 0800", to("vm1"))
	r.after(time.Millisecond)
	r.send("u1", "all nest1 q6 0806", to("host")) // the same MAC in another VLAN is another
	r.learned("5 nest1 vm1")
	r.send("u1", "all nest1 q5 0806", to("vm1 vm2", "all nest1 0806"), to("host"))
	r.learned()
	r.send("vm2", "nest1 vm2 0800", to("u1", "nest1 vm2 q5 0800"))
}

func TestS158_WhoSpeaksOutsideAgainHasMoved(t *testing.T) {
	r := newRig(t, nested, "vm1 quiet", "vm2 plain")
	broadcast := []outcome{to("host"), refused("vm1 vm2", "reflected")}
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.after(99 * time.Millisecond)
	r.send("u1", "all nest1 q5 0806", broadcast...) // an echo, and another
	r.send("u1", "all nest1 q5 0806", broadcast...)
	r.after(time.Millisecond)
	r.send("u1", "all nest1 q5 0806", broadcast...) // too late for an echo
	r.learned("5 nest1 vm1")
	r.send("u1", "all nest1 q5 0806", broadcast...)
	r.learned()
	r.send("vm2", "nest1 vm2 0800", to("u1", "nest1 vm2 q5 0800"))
}

func TestS12_WhatNoLongerCountsIsForgottenAtOnce(t *testing.T) {
	changes := map[string]func(r *rig){
		"learning off": func(r *rig) {
			r.change("{name: learn, security: {macLearning: {enabled: true}}}",
				"{name: learn}")
		},
		"another VLAN":   func(r *rig) { r.change("vlan: {access: 5}", "vlan: {access: 7}") },
		"device gone":    func(r *rig) { r.gone("vm1") },
		"shorter ageing": func(r *rig) { r.after(30 * time.Second); r.change("ageing: 1m", "ageing: 29s") },
		"port is no more": func(r *rig) {
			r.change(`- {name: vm1, switch: s, portGroup: learn, device: vm1, mac: "02:00:00:00:00:01"}`, "")
		},
		"another group": func(r *rig) {
			r.change("name: vm1, switch: s, portGroup: learn", "name: vm1, switch: s, portGroup: plain")
		},
		"owned by another": nil,
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nested, "vm1 learn", "vm2 plain")
			r.send("vm1", "vm2 nest1 0800", to("vm2"))
			r.learned("5 nest1 vm1")
			if change == nil {
				r.change(`02:00:00:00:00:02`, `06:00:00:00:00:01`) // vm2 owns it now: the entry stays and is not used
				r.fact("vm2", uses("nest1"))
				r.send("vm1", "nest1 vm1 0800", to("vm2"))
				return
			}
			change(r)
			r.learned()
		})
	}
}
