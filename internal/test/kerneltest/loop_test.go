package kerneltest

import (
	"testing"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// looped is a port group whose guests send from any address, on a switch with an uplink.
const looped = `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: own}
  - {name: any, security: {forgedTransmits: accept, promiscuous: accept, macLearning: {enabled: true}}}
`

func (r *rig) loopBlock(port, why string) {
	id := plan.PortID{Switch: "s", Name: port}
	f := r.facts[id]
	f.LoopBlocked = nil
	if why != "" {
		f.LoopBlocked = &problem.Problem{Code: problem.LoopProbed, Detail: why}
	}
	r.facts[id] = f
	r.apply()
}

func TestS110_APortThatALoopGoesThroughPassesNothingEitherWay(t *testing.T) {
	r := newRig(t, looped, "vm1 own", "vm2 any", "vm3 any, blocked: true")
	r.loopBlock("vm2", "for the test")
	r.loopBlock("vm3", "for the test")
	r.send("vm2", "all vm2 0806", dropped("loop-blocked"))
	r.send("vm2", "vm1 nest1 0800", dropped("loop-blocked"))
	r.send("vm3", "all vm3 0806", dropped("port-blocked")) // the policy's reason goes before
	r.send("vm1", "vm2 vm1 0800", refused("vm2", "loop-blocked"), refused("vm3", "receiver-blocked"),
		dropped("receiver-blocked"))
	r.send("vm1", "all vm1 0806", to("u1"), refused("vm2", "loop-blocked"), refused("vm3", "receiver-blocked"))
	r.send("u1", "vm1 ext1 0800", to("vm1"), refused("vm2", "loop-blocked"), refused("vm3", "receiver-blocked"))
	r.loopBlock("vm2", "")
	r.send("vm2", "all vm2 0806", to("vm1 u1"), refused("vm3", "receiver-blocked"))
}

func TestS110_ProbesAreNeverForwardedAndFramesLikeThemAre(t *testing.T) {
	const probe, like, short = "88b5 48644c70 [52]", "88b5 48644c71 [52]", "88b5 48644c70 [51]"
	r := newRig(t, looped, "vm1 own", "vm2 any")
	for _, port := range []string{"vm1", "vm2"} { // whether or not the source is the port's own
		r.send(port, "all nest1 "+probe, dropped("loop-blocked"))
		r.send(port, "all "+port+" "+probe, dropped("loop-blocked"))
	}
	r.send("u1", "all ext1 "+probe, to("host"))
	r.send("vm1", "all vm1 "+like, to("vm2 u1"))
	r.send("vm1", "all vm1 "+short, to("vm2 u1"))
	r.send("vm1", "vm2 vm1 "+probe, to("vm2"))
	r.send("vm1", "333300000001 vm1 "+probe, to("vm2 u1"))
	r.send("vm1", "all vm1 q0 "+probe, dropped("loop-blocked"))
}
