package kerneltest

import (
	"testing"
	"time"

	"heddle/internal/plan"
)

// limited is a port group with storm control, and one without in the same VLAN.
const limited = `
  uplinks: [{name: u1, device: dev1}]
  defaults: {vlan: {access: 5}, security: {forgedTransmits: accept}}
  portGroups:
  - {name: limited, stormControl: {broadcast: 2, multicast: 1, unknownUnicast: 4, burst: 1s}}
  - {name: learn, security: {macLearning: {enabled: true}}}
  - {name: plain}
`

// notFlooded expects the refusal of storm control that has no receiver.
func notFlooded(e *expectation, _ string) { e.refused[""] = "storm-control" }

// everyone is what a frame to many from vm1 leads to.
func everyone(dst, src string) []outcome {
	return []outcome{to("vm2 vm3"), to("u1", dst+" "+src+" q5 0806")}
}

func TestD27_WhatIsAboveARateIsDroppedAndWhatIsWithinItIsNot(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	all := func() { r.send("vm1", "all vm1 0806", everyone("all", "vm1")...) }
	all()
	all()
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	r.after(499 * time.Millisecond) // half a second gives one
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	r.after(time.Millisecond)
	all()
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	r.after(time.Hour) // no more is saved than the burst
	all()
	all()
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
}

func TestD27_EachKindHasItsOwnRateAndKnownUnicastNone(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
	r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	r.send("vm1", "333300000001 vm1 0806", everyone("333300000001", "vm1")...)
	r.send("vm1", "333300000001 vm1 0806", dropped("storm-control"))
	for range 4 {
		r.send("vm1", "nest9 vm1 0800", flooded, to("vm2"), to("u1", "nest9 vm1 q5 0800"))
	}
	for range 2 {
		r.ledger.of("vm1").UnknownNotFlooded++
		r.send("vm1", "nest9 vm1 0800", notFlooded, to("u1", "nest9 vm1 q5 0800")) // the way out stays open
	}
	for range 20 {
		r.send("vm1", "vm3 vm1 0800", to("vm3"))
	}
	r.send("vm2", "all nest1 0806", to("vm1 vm3"), to("u1", "all nest1 q5 0806"))
	r.send("vm1", "nest1 vm1 0800", to("vm2")) // learned, and so known
	r.learned("5 nest1 vm2")
}

func TestD27_UnknownUnicastAboveTheRateHasNoWayWithoutAnUplink(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	r.change("unknownUnicast: 4", "unknownUnicast: 1")
	r.send("vm1", "nest9 vm1 0800", flooded, to("vm2"), to("u1", "nest9 vm1 q5 0800"))
	r.change("device: dev1}", "device: dev1, vlans: [9]}")
	r.ledger.of("vm1").UnknownNotFlooded++
	r.send("vm1", "nest9 vm1 0800", notFlooded, refused("u1", "uplink-vlan"), dropped("uplink-vlan"))
	r.change("  uplinks: [{name: u1, device: dev1, vlans: [9]}]\n", "")
	r.send("vm1", "nest9 vm1 0800", dropped("storm-control"))
}

func TestD27_OtherPortsAndUplinksHaveNoPartInIt(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 limited", "vm3 plain")
	for range 2 {
		r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
	}
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	for range 2 {
		r.send("vm2", "all vm2 0806", to("vm1 vm3"), to("u1", "all vm2 q5 0806"))
	}
	r.send("vm2", "all vm2 0806", dropped("storm-control"))
	for range 10 {
		r.send("vm3", "all vm3 0806", to("vm1 vm2"), to("u1", "all vm3 q5 0806"))
		r.send("u1", "all ext1 q5 0806", to("vm1 vm2 vm3", "all ext1 0806"), to("host"))
	}
}

func TestD27_AFrameThatIsDroppedForAnotherReasonPaysNothing(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	r.change("forgedTransmits: accept", "forgedTransmits: reject")
	for range 5 {
		r.send("vm1", "all vm9 0806", dropped("forged-transmit"))
		r.send("vm1", "all vm1 q7 0806", dropped("guest-tagged"))
	}
	r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
	r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
}

// A dropped frame still shows that the station exists: the station stays known, and a frame that comes back is our own.
func TestD27_WhatIsDroppedHasBeenLearnedFrom(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	r.change("broadcast: 2, multicast: 1, unknownUnicast: 4, burst: 1s}",
		"broadcast: 1}, security: {macLearning: {enabled: true}}")
	r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
	r.send("vm1", "all nest1 0806", dropped("storm-control"))
	r.send("vm3", "nest1 vm3 0800", to("vm1"))
	r.learned("5 nest1 vm1")
	r.send("u1", "all nest1 q5 0806", refused("vm1 vm2 vm3", "reflected"), to("host"))
}

func TestD27_AChangedPolicyFindsWhatWasSpent(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	all := func() { r.send("vm1", "all vm1 0806", everyone("all", "vm1")...) }
	all()
	all()
	r.change("broadcast: 2", "broadcast: 3") // a burst of three: one is left
	all()
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	r.change("broadcast: 3", "broadcast: 0")
	for range 10 {
		all()
	}
	r.change("broadcast: 0", "broadcast: 2")
	r.send("vm1", "all vm1 0806", dropped("storm-control")) // three are spent, and no time has passed
	r.after(time.Second)
	all()
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
	r.gone("vm1") // its device goes and comes again, the port stays
	r.facts[r.id("vm1")] = plan.Fact{Up: true, MTU: 1500}
	r.apply()
	r.send("vm1", "all vm1 0806", dropped("storm-control"))
}

func TestD27_ARateBelowOneABurstStillLetsOnePass(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	r.change("burst: 1s", "burst: 10ms")
	for range 3 {
		r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
		r.send("vm1", "all vm1 0806", dropped("storm-control"))
		r.after(500 * time.Millisecond)
	}
}

// The kernel's clock in a bucket has 32 bits, some 49 days here. A port that was silent for any part of that is not
// taken for one that has just sent.
func TestD27_APortThatWasSilentForWeeksMaySend(t *testing.T) {
	r := newRig(t, limited, "vm1 limited", "vm2 learn", "vm3 plain")
	for _, d := range []time.Duration{0, 20, 26, 40, 48, 60, 90} {
		r.after(d * 24 * time.Hour)
		r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
		r.send("vm1", "all vm1 0806", everyone("all", "vm1")...)
		r.send("vm1", "all vm1 0806", dropped("storm-control"))
	}
}
