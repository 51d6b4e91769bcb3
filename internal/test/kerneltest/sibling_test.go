package kerneltest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/plan"
)

const bonding = `
  kind: distributed
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web}
  - {name: bond, security: {forgedTransmits: accept, macChanges: accept}}
  - {name: forge, security: {forgedTransmits: accept}}
  - {name: learn, security: {forgedTransmits: accept, macChanges: accept, macLearning: {enabled: true}}}
`

// uses has an adapter use the MAC of that port.
func (r *rig) uses(port, of string) {
	r.t.Helper()
	r.fact(port, func(f *plan.Fact) { f.SeenMAC = plan.MAC(word(of)) })
}

// moved expects so many moves of MACs to a port.
func (r *rig) moved(to string, times uint64) { r.ledger.of(to).MACMoves = times }

// An active-backup bond of vm2 and vm3 with Linux' default fail_over_mac=0: both adapters have the MAC of vm2.
func TestS111_ABondsMACIsWhereItWasHeardLast(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g")
	r.uses("vm3", "vm2")
	r.send("vm1", "vm2 vm1 0800", to("vm2"))        // its own port, as long as the bond has said nothing
	r.send("vm3", "all vm2 0806", to("vm1 vm2 u1")) // the bond fails over,
	r.send("vm1", "vm2 vm1 0800", to("vm3"))        // and the traffic moves with its first frame.
	r.send("u1", "vm2 ext1 0800", to("vm3"))
	r.send("vm2", "ext1 vm2 0800", to("u1")) // back, by any frame
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm1", "vm3 vm1 0800", to("u1")) // nobody uses this one
	r.learned()                             // none of it is learned, none of it ages
	r.moved("vm2", 1)
	r.moved("vm3", 1)
}

// A tap without a monitor does not show that its adapter uses another MAC.
func TestS111_AnAdapterThatIsNotSeenMovesTheMACToo(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g", "vm4 learn, owner: g")
	for _, port := range []string{"vm2", "vm3", "vm4"} {
		r.fact(port, func(f *plan.Fact) { f.SeenMAC = plan.MAC{} })
	}
	r.send("vm3", "vm1 vm2 0800", to("vm1"))
	r.send("vm1", "vm2 vm1 0800", to("vm3"))
	r.send("vm1", "vm3 vm1 0800", to("vm3"))
	r.send("vm4", "vm1 vm2 0800", to("vm1"))
	r.send("vm1", "vm2 vm1 0800", to("vm4"))
	r.learned()
	r.send("vm4", "vm2 vm4 0800", dropped("own-destination"))
	r.send("vm2", "vm1 vm2 0800", to("vm1"))
	r.send("vm4", "vm2 vm4 0800", to("vm2"))
	r.moved("vm2", 1)
	r.moved("vm3", 1)
	r.moved("vm4", 1)
}

func TestS111_NobodyElseGetsTheMAC(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g", "vm4 bond, owner: other",
		"vm5 learn", "vm6 forge, owner: g")
	r.uses("vm4", "vm2")
	r.uses("vm6", "vm2")
	for _, port := range []string{"vm4", "vm5", "vm6"} {
		r.send(port, "vm1 vm2 0800", to("vm1")) // it may forge,
		r.send("vm1", "vm2 vm1 0800", to("vm2"))
		r.send("u1", "vm2 ext1 0800", to("vm2")) // and gains nothing by it
	}
	r.learned()
	r.send("vm1", "all vm1 0806", to("vm2 vm3 vm5 u1"), refused("vm4 vm6", "mac-change")) // S3, as ever
	r.send("vm3", "vm1 vm2 0800", to("vm1"))
	r.send("vm4", "vm1 vm2 0800", to("vm1"))
	r.send("vm1", "vm2 vm1 0800", to("vm3"))
	r.moved("vm3", 1)
}

func TestS111_ADeadPortGivesWayToASiblingThatHasTheMAC(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g", "vm4 bond, owner: g")
	r.uses("vm3", "vm2")
	r.fact("vm2", down)
	r.send("vm1", "vm2 vm1 0800", to("vm3")) // before it has said anything
	r.fact("vm3", down)
	// vm4 has nothing to do with this MAC
	r.send("vm1", "vm2 vm1 0800", dropped("receiver-down"), refused("vm2", "receiver-down"))
	r.fact("vm2", up)
	r.fact("vm3", up)
	r.send("vm3", "vm1 vm2 0800", to("vm1"))
	r.fact("vm3", down)
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.fact("vm3", up)
	r.gone("vm3")
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.moved("vm3", 1)
}

func TestS111_AChangeOfPolicyEndsIt(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g")
	r.uses("vm3", "vm2")
	r.send("vm3", "vm1 vm2 0800", to("vm1"))
	r.change("forgedTransmits: accept, macChanges: accept}}", "forgedTransmits: accept, macChanges: reject}}")
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm1", "all vm1 0806", to("vm2 u1"), refused("vm3", "mac-change"))
	r.send("vm3", "vm1 vm2 0800", to("vm1"))
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.change("forgedTransmits: accept, macChanges: reject}}", "forgedTransmits: accept, macChanges: accept}}")
	r.send("vm1", "vm2 vm1 0800", to("vm2")) // what was before is over
	r.send("vm3", "vm1 vm2 0800", to("vm1"))
	r.send("vm1", "vm2 vm1 0800", to("vm3"))
	r.moved("vm3", 2)
}

// With fail_over_mac=follow the two adapters change their MACs for each other's.
func TestS111_SiblingsMayChangeMACs(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g")
	r.uses("vm2", "vm3")
	r.uses("vm3", "vm2")
	r.send("vm1", "vm2 vm1 0800", to("vm3"))
	r.send("vm1", "vm3 vm1 0800", to("vm2"))
}

// The bond fails over and back, and each time its frame is ahead of what the agent sees of the adapters. Who sent from
// the MAC when it was another port's does not count when that port has it again.
func TestS111_MACsThatChangePlacesAndComeBack(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g")
	for range 2 {
		r.send("vm3", "all vm2 0806", to("vm1 vm2 u1")) // the bond fails over,
		r.send("vm1", "vm2 vm1 0800", to("vm3"))
		r.uses("vm2", "vm3") // and this is seen
		r.uses("vm3", "vm2")
		r.send("vm1", "vm2 vm1 0800", to("vm3"))
		r.send("vm2", "all vm2 0806", to("vm1 vm3 u1")) // It fails back.
		r.send("vm1", "vm2 vm1 0800", to("vm2"))
		r.uses("vm3", "vm3")
		r.uses("vm2", "vm2")
		r.send("vm1", "vm2 vm1 0800", to("vm2"))
	}
	r.learned()
	r.moved("vm2", 2)
	r.moved("vm3", 2)
}

func TestS111_WhatABondSendsDoesNotComeBackByAnUplink(t *testing.T) {
	r := newRig(t, bonding, "vm1 web", "vm2 bond, owner: g", "vm3 bond, owner: g", "vm4 bond, owner: g",
		"vm5 bond, owner: g", "vm6 bond, owner: g")
	for _, port := range []string{"vm3", "vm4", "vm5", "vm6"} {
		r.uses(port, "vm2")
	}
	for _, port := range []string{"vm3", "vm6"} { // of five ports with one MAC, the last is not in the table of owners
		r.send(port, "all vm2 0806", to(but("vm1 vm2 vm3 vm4 vm5 vm6 u1", port)))
		r.send("u1", "all vm2 0806", to("host"), refused("vm1 vm2 vm3 vm4 vm5 vm6", "reflected"))
		r.send("vm1", "vm2 vm1 0800", to(port))
		r.moved(port, 1)
		r.after(2 * time.Second)
	}
}

// but is a list of names without one.
func but(names, one string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(names), func(s string) bool { return s == one }), " ")
}
