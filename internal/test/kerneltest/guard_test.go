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

// TestS109_AGuestSendsNothingThatLooksLikeAProbe where the switch has a health check; with the guards beside it, the
// probe's reason counts first, and everything else has the reason that it had.
func TestS109_AGuestSendsNothingThatLooksLikeAProbe(t *testing.T) {
	r := newRig(t, "\n  healthCheck: true"+guardedPorts, "vm1 plain", "vm2 plain", "vm3 clients",
		"vm4 guarded"+guardAddresses(guardcases.Addresses...))
	cases := guardcases.HealthProbes()
	for _, c := range cases {
		t.Run(c.Name, func(row *testing.T) {
			r.t = row
			defer func() { r.t = t }()
			outcome := to("vm2 vm3 vm4")
			if c.Reason != "" {
				outcome = dropped(c.Reason)
			}
			r.send("vm1", fmt.Sprintf("%x [0]", c.Frame), outcome)
		})
	}
	probe := cases[0].Frame
	for _, vm := range []string{"vm3", "vm4"} {
		probe[11] = vm[2] - '0'
		r.send(vm, fmt.Sprintf("%x", probe), dropped(guardcases.HealthProbe))
	}
}

// TestS109_WithoutAHealthCheckProbesOfGuestsPass as any other frame does.
func TestS109_WithoutAHealthCheckProbesOfGuestsPass(t *testing.T) {
	cases := guardcases.HealthProbes()
	for i := range cases {
		cases[i].Reason = ""
	}
	newRig(t, guardedPorts, "vm1 plain", "vm2 plain").guarded(cases)
}
