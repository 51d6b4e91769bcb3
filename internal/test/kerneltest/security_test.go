package kerneltest

import (
	"fmt"
	"testing"

	"heddle/internal/plan"
)

func TestS1_ForgedTransmitsRejectedAreDroppedAndCounted(t *testing.T) {
	r := newRig(t, `
  portGroups:
  - {name: web, security: {forgedTransmits: reject}}
`, "vm1 web", "vm2 web")
	r.send("vm1", "all nest1 0806", dropped("forged-transmit"))
	r.send("vm1", "vm2 vm2 0800", dropped("forged-transmit")) // not even another port's
	r.send("vm1", "all vm1 0806", to("vm2"))
}

func TestS2_ForgedTransmitsAcceptedAreNotChecked(t *testing.T) {
	r := newRig(t, `
  portGroups:
  - {name: lab, security: {forgedTransmits: accept}}
  - {name: web}
`, "vm1 lab", "vm2 web")
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.send("vm1", "all ext9 0806", to("vm2"))
	r.send("vm2", "all ext9 0806", dropped("forged-transmit")) // each port its own policy
}

func uses(mac string) func(*plan.Fact) {
	return func(f *plan.Fact) { f.SeenMAC = plan.MAC(word(mac)) }
}

func TestS3_MACChangeRejectedReceivesNothingUntilItIsUndone(t *testing.T) {
	r := newRig(t, `
  portGroups:
  - {name: web, security: {macChanges: reject}}
`, "vm1 web", "vm2 web", "vm3 web")
	r.fact("vm2", uses("nest2"))
	r.send("vm1", "vm2 vm1 0800", refused("vm2", "mac-change"), dropped("mac-change"))
	r.send("vm1", "nest2 vm1 0800", dropped("unknown-unicast"))
	r.send("vm1", "all vm1 0806", to("vm3"), refused("vm2", "mac-change"))
	r.send("vm2", "all nest2 0806", dropped("forged-transmit")) // the effective MAC is still the initial one
	r.fact("vm2", uses("vm2"))
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm1", "all vm1 0806", to("vm2 vm3"))
}

func TestS4_D2_MACChangeAcceptedMovesTheAddress(t *testing.T) {
	r := newRig(t, `
  portGroups:
  - {name: web, security: {macChanges: accept}}
`, "vm1 web", "vm2 web")
	r.fact("vm2", uses("nest2"))
	r.send("vm1", "nest2 vm1 0800", to("vm2"))
	r.send("vm1", "vm2 vm1 0800", dropped("unknown-unicast"))
	r.send("vm2", "vm1 nest2 0800", to("vm1"))
	r.send("vm2", "vm1 vm2 0800", dropped("forged-transmit"))
}

func TestS4_D2_D16_AMACThatAnotherOwnsIsNotTaken(t *testing.T) {
	for _, taken := range []string{"vm1", "dev1", "nest3"} { // a port's, an uplink device's, one that vm2 took before
		t.Run(taken, func(t *testing.T) {
			r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web, security: {macChanges: accept}}
`, "vm1 web", "vm2 web", "vm3 web")
			r.fact("vm2", uses("nest3"))
			r.fact("vm3", uses(taken))
			r.send("vm1", "vm3 vm1 0800", refused("vm3", "mac-change"), dropped("mac-change"))
			r.send("vm1", "nest3 vm1 0800", to("vm2"))
			r.send("u1", "vm1 ext1 0800", to("vm1"))
		})
	}
}

func TestS5_PromiscuousRejectedSeesItsOwnAndGroupFramesOnly(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web, security: {promiscuous: reject}}
`, "vm1 web", "vm2 web", "vm3 web")
	r.fact("vm3", func(f *plan.Fact) { f.Promiscuous = plan.AsksYes })
	r.send("vm1", "vm2 vm1 0800", to("vm2"))
	r.send("vm1", "ext1 vm1 0800", to("u1"))
	r.send("u1", "vm1 ext1 0800", to("vm1"))
	r.send("vm1", "vm3 vm1 0800", to("vm3"))
	r.send("vm1", "all vm1 0806", to("vm2 vm3 u1"))
	r.send("vm1", "333300000001 vm1 86dd", to("vm2 vm3 u1"))
}

func TestS6_D1_PromiscuousAcceptedHelpsOnlyWhoMayBeAsking(t *testing.T) {
	for asks, also := range map[plan.Asks]outcome{
		plan.AsksYes: to("vm3"), plan.AsksUnknown: to("vm3"), plan.AsksNo: to(""),
	} {
		unknown := func(e *expectation, sent string) { also(e, sent); e.flooded = asks != plan.AsksNo }
		t.Run(fmt.Sprint(asks), func(t *testing.T) {
			r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web}
  - {name: sniff, security: {promiscuous: accept}}
`, "vm1 web", "vm2 web", "vm3 sniff")
			r.fact("vm3", func(f *plan.Fact) { f.Promiscuous = asks })
			r.send("vm1", "vm2 vm1 0800", to("vm2"), also)
			r.send("vm1", "ext1 vm1 0800", to("u1"), unknown)
			r.send("u1", "vm1 ext1 0800", to("vm1"), also)
			r.send("vm1", "vm3 vm1 0800", to("vm3"))
		})
	}
}

func TestS7_PromiscuousSeesItsOwnVLANOnly(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  defaults: {security: {promiscuous: accept}}
  portGroups:
  - {name: ten, vlan: {access: 10}, security: {promiscuous: reject}}
  - {name: sniff10, vlan: {access: 10}}
  - {name: sniff20, vlan: {access: 20}}
  - {name: sniff-trunk, vlan: {trunk: ["0", "20-30"]}}
  - {name: sniff-trunk10, vlan: {trunk: ["9-11"]}}
  - {name: sniff-none}
`, "vm1 ten", "vm2 ten", "vm3 sniff10", "vm4 sniff20", "vm5 sniff-trunk", "vm6 sniff-trunk10", "vm7 sniff-none")
	r.send("vm1", "vm2 vm1 0800", to("vm2 vm3"), to("vm6", "vm2 vm1 q10 0800"))
	r.send("u1", "vm2 ext1 q10 0800", to("vm2 vm3", "vm2 ext1 0800"), to("vm6"))
	r.send("u1", "vm2 ext1 q20 0800", flooded, to("vm4", "vm2 ext1 0800"), to("vm5"))
	r.send("u1", "vm2 ext1 q99 0800", dropped("unknown-unicast"))
	r.send("u1", "vm2 ext1 0800", flooded, to("vm5 vm7"))
}

func TestS41_ABlockedPortPassesNothingEitherWay(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: web}
  - {name: shut, blocked: true}
  - {name: sniff, blocked: true, security: {promiscuous: accept}}
`, "vm1 web", "vm2 shut", "vm3 sniff")
	r.send("vm2", "all vm2 0806", dropped("port-blocked"))
	r.send("vm2", "vm1 vm2 0800", dropped("port-blocked"))
	r.send("vm1", "vm2 vm1 0800", refused("vm2 vm3", "receiver-blocked"), dropped("receiver-blocked"))
	r.send("vm1", "all vm1 0806", to("u1"), refused("vm2 vm3", "receiver-blocked"))
	r.send("u1", "vm1 ext1 0800", to("vm1"), refused("vm3", "receiver-blocked"))
	r.change("{name: shut, blocked: true}", "{name: shut}")
	r.send("vm2", "vm1 vm2 0800", to("vm1"), refused("vm3", "receiver-blocked"))
	r.send("vm1", "vm2 vm1 0800", to("vm2"), refused("vm3", "receiver-blocked"))
}

func TestS41_ABlockedUplinkPassesNothingOfTheSwitch(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1, blocked: true}]
  portGroups: [{name: web}]
`, "vm1 web", "vm2 web")
	r.send("vm1", "ext1 vm1 0800", refused("u1", "receiver-blocked"), dropped("receiver-blocked"))
	r.send("vm1", "all vm1 0806", to("vm2"), refused("u1", "receiver-blocked"))
	r.send("u1", "vm1 ext1 0800", dropped("port-blocked"))
	r.send("u1", "all ext1 0806", to("host")) // the host's own traffic continues
}

func TestD8_GroupAndZeroSourcesAreDroppedWhateverThePolicy(t *testing.T) {
	r := newRig(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: lab, security: {forgedTransmits: accept, promiscuous: accept, macLearning: {enabled: true}}}
`, "vm1 lab", "vm2 lab")
	for _, at := range []string{"vm1", "u1"} {
		r.send(at, "vm2 010000000001 0800", dropped("source-group"))
		r.send(at, "vm2 all 0800", dropped("source-group"))
		r.send(at, "vm2 000000000000 0800", dropped("source-zero"))
	}
	r.send("vm1", "all 010000000001 0806", dropped("source-group"))
	r.learned()
}
