package kerneltest

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/test/guardcases"
)

// guardedPorts are a port group whose guests use their own addresses alone, one without DHCP servers and routers, and
// one that hears all.
const guardedPorts = `
  defaults: {vlan: {trunk: [0, 5]}}
  portGroups:
  - {name: guarded, security: {addressGuard: {enabled: true}}}
  - {name: clients, security: {dhcpServer: reject, routerAdvertisements: reject}}
  - {name: plain}
`

func guardAddresses(list ...string) string {
	return ", security: {addressGuard: {addresses: ['" + strings.Join(list, "', '") + "']}}"
}

// guarded sends the cases' frames from vm1 to vm2, which is alone with it.
func (r *rig) guarded(cases []guardcases.Case) {
	for _, c := range cases {
		outcome := to("vm2")
		if c.Reason != "" {
			outcome = dropped(c.Reason)
		}
		r.t.Log(c.Name)
		r.send("vm1", fmt.Sprintf("%x [0]", c.Frame), outcome)
	}
}

func TestS86_TheOwnerSendsIPFromItsOwnAddressesAlone(t *testing.T) {
	newRig(t, guardedPorts, "vm1 guarded"+guardAddresses(guardcases.Addresses...), "vm2 plain").guarded(
		guardcases.Sources())
}

func TestS108_TheOwnerSpeaksForItsOwnAddressesAlone(t *testing.T) {
	newRig(t, guardedPorts, "vm1 guarded"+guardAddresses(guardcases.Addresses...), "vm2 plain").guarded(
		guardcases.Neighbours())
}

func TestS87_AGuestAnswersNoDHCPAndIsNoRouterWhereItMayNot(t *testing.T) {
	newRig(t, guardedPorts, "vm1 clients", "vm2 plain").guarded(guardcases.Servers())
}

func TestS86_S87_S108_WithoutAGuardEverythingPasses(t *testing.T) {
	r := newRig(t, guardedPorts, "vm1 plain"+guardAddresses(guardcases.Addresses...), "vm2 plain")
	for _, cases := range [][]guardcases.Case{guardcases.Sources(), guardcases.Neighbours(), guardcases.Servers()} {
		for i := range cases {
			cases[i].Reason = ""
		}
		r.guarded(cases)
	}
}
