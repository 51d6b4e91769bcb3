package kerneltest

import (
	"testing"
	"time"

	"heddle/internal/plan"
)

const oneUplink = `
  kind: distributed
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web}
  - {name: nested, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
`

// waits makes a port wait for its guest, by the number of the wait.
func waits(number uint32) func(*plan.Fact) {
	return func(f *plan.Fact) { f.Wait, f.Left, f.Awake = number, false, false }
}

// left makes the port of a guest that has left by a migration wait, by the number of the wait.
func left(number uint32) func(*plan.Fact) {
	return func(f *plan.Fact) { f.Wait, f.Left, f.Awake = number, true, false }
}

func TestS99_AWaitingPortTakesNothingUntilItSendsAFrame(t *testing.T) {
	r := newRig(t, oneUplink, "vm1 web", "vm2 web", "vm3 web")
	r.fact("vm2", waits(1))
	r.send("vm1", "vm2 vm1 0800", to("u1")) // its MAC is not here: the guest is where the uplink leads
	r.send("vm1", "all vm1 0806", to("vm3 u1"), refused("vm2", "receiver-waiting"))
	r.send("u1", "vm2 ext1 0800", dropped("unknown-unicast"))
	r.send("u1", "all ext1 0806", to("vm1 vm3 host"), refused("vm2", "receiver-waiting"))

	r.send("vm2", "all vm2 8035", to("vm1 vm3 u1")) // its first own frame passes,
	r.send("vm1", "vm2 vm1 0800", to("vm2"))        // and it is here from then on,
	r.send("u1", "vm2 ext1 0800", to("vm2"))
	r.fact("vm1", up) // also when the plan changes.
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.fact("vm2", waits(2)) // The next wait is another.
	r.send("vm1", "vm2 vm1 0800", to("u1"))
	r.fact("vm2", func(f *plan.Fact) { f.Awake = true })
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
}

func TestS99_AFrameThatIsDroppedWakesItsPortToo(t *testing.T) {
	r := newRig(t, oneUplink, "vm1 web", "vm2 web")
	r.fact("vm2", waits(1))
	r.send("vm2", "all nest1 0806", dropped("forged-transmit")) // a guest that runs sent it
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
}

func TestS99_WhatTheGuestSendsFromItsNewPlaceIsNoEcho(t *testing.T) {
	r := newRig(t, oneUplink, "vm1 web", "vm2 nested")
	r.send("vm2", "all vm2 0806", to("vm1 u1"))
	r.send("vm2", "all nest1 0806", to("vm1 u1"))
	r.send("u1", "all vm2 0806", to("host"), refused("vm1 vm2", "reflected"))
	r.fact("vm2", left(1)) // it left a moment ago, and speaks there
	r.send("u1", "all vm2 0806", to("vm1 host"), refused("vm2", "guest-elsewhere"))
	r.learned("0 nest1 vm2")
	r.send("u1", "all nest1 0806", to("vm1 host"), refused("vm2", "guest-elsewhere"))
	r.learned() // what lived behind it is heard from there too
	r.send("vm1", "nest1 vm1 0800", to("u1"), refused("vm2", "guest-elsewhere"))
}

func TestS99_WhatStillComesForAGuestThatHasLeftIsCounted(t *testing.T) {
	r := newRig(t, oneUplink+`
  - {name: quiet, security: {forgedTransmits: accept, macLearning: {enabled: true, unicastFlooding: false}}}
  - {name: ten, vlan: {access: 10}}
`, "vm1 web", "vm2 web", "vm3 quiet", "vm4 nested", "vm5 ten")
	r.send("vm3", "all nest1 0806", to("vm1 vm2 vm4 u1"))
	for _, vm := range []string{"vm2", "vm3", "vm4", "vm5"} {
		r.fact(vm, left(uint32(vm[2]-'0')))
	}
	r.send("u1", "vm2 ext1 0800", dropped("guest-elsewhere"), refused("vm2 vm4", "guest-elsewhere"))
	r.send("u1", "vm4 ext1 0800", dropped("guest-elsewhere"), refused("vm4", "guest-elsewhere")) // once
	r.send("u1", "nest1 ext1 0800", dropped("guest-elsewhere"), refused("vm3 vm4", "guest-elsewhere"))
	r.send("u1", "vm5 ext1 0800", dropped("guest-elsewhere"), refused("vm4", "guest-elsewhere")) // another segment
	r.send("vm1", "vm2 vm1 0800", to("u1"), refused("vm4", "guest-elsewhere"))                   // it goes where it is
	r.fact("vm4", func(f *plan.Fact) { f.Awake = true })
	r.send("u1", "vm2 ext1 0800", flooded, to("vm4"), refused("vm2", "guest-elsewhere")) // as it takes what is unknown
	r.fact("vm2", waits(9))                                                              // on its way back
	r.send("u1", "vm2 ext1 0800", flooded, to("vm4"))
	r.learned("0 nest1 vm3")
}

func TestS99_TheMACGoesToThePortWhoseGuestRuns(t *testing.T) {
	r := newRig(t, oneUplink, "vm1 web", "vm2 web", "vm3 web")
	mac := r.plan.Port(r.id("vm2")).InitialMAC
	r.plan.Port(r.id("vm3")).InitialMAC = mac // in the place of vm2, when the guest has moved there
	r.fact("vm3", func(f *plan.Fact) { f.Wait, f.SeenMAC = 1, mac })
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm3", "all vm2 8035", to("vm1 vm2 u1"))
	r.send("vm1", "vm2 vm1 0800", to("vm3"))
	r.fact("vm2", left(2)) // the source is silent
	r.send("vm1", "all vm1 0806", to("vm3 u1"), refused("vm2", "guest-elsewhere"))
	r.after(2 * time.Second)
	r.send("vm2", "ext1 vm2 0800", to("u1")) // the guest is back there
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.fact("vm3", waits(3))
	r.fact("vm2", left(4))
	r.send("vm1", "vm2 vm1 0800", to("u1")) // it runs at neither
}
