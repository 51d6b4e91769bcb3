package kerneltest

import (
	"strings"
	"testing"

	"heddle/internal/spec"
)

func TestS8_AChangedSwitchDefaultReachesTheKernelWhereItIsInherited(t *testing.T) {
	r := newRig(t, `
  defaults: {security: {forgedTransmits: reject}}
  portGroups:
  - {name: inherits}
  - {name: strict, security: {forgedTransmits: reject}}
`, "vm1 inherits", "vm2 strict")
	r.send("vm1", "vm2 nest1 0800", dropped("forged-transmit"))
	r.change("defaults: {security: {forgedTransmits: reject}}", "defaults: {security: {forgedTransmits: accept}}")
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.send("vm2", "vm1 nest1 0800", dropped("forged-transmit"))
}

func TestS9_APortsOwnValueIsRefusedOrReachesTheKernel(t *testing.T) {
	const group = `
  portGroups:
  - {name: web, vlan: {access: 10}, overrides: {vlan: false}}
`
	ports := []string{"vm1 web", "vm2 web, vlan: {access: 20}", "vm3 web, vlan: {access: 20}"}
	if _, err := spec.Parse("test.yaml", []byte(configText(group, ports))); err == nil {
		t.Error("a port's own VLAN was taken without its port group's leave")
	}
	r := newRig(t, strings.Replace(group, "vlan: false", "vlan: true", 1), ports...)
	r.send("vm2", "all vm2 0806", to("vm3")) // and not vm1
	r.send("vm1", "vm2 vm1 0800", dropped("unknown-unicast"))
}

func TestS11_D3_AGroupThatSetsOnlyMACLearningInheritsTheRest(t *testing.T) {
	r := newRig(t, `
  defaults: {security: {forgedTransmits: accept, promiscuous: reject}}
  portGroups:
  - {name: lab, security: {macLearning: {enabled: true}}}
  - {name: web}
`, "vm1 lab", "vm2 web", "vm3 web")
	r.send("vm1", "vm2 nest1 0800", to("vm2"))
	r.learned("0 nest1 vm1")
	r.change("forgedTransmits: accept, promiscuous: reject", "forgedTransmits: reject, promiscuous: accept")
	r.send("vm1", "vm2 nest1 0800", dropped("forged-transmit"))
	r.send("vm2", "vm3 vm2 0800", to("vm1 vm3"))
}
