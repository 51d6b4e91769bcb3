package model

import (
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/test/guardcases"
)

// guardedRig has a guarded port and one that hears what passes.
func guardedRig(t *testing.T, guard func(*plan.Effective)) *rig {
	return newRig(t, vnic("a", trunk(false, 0, 5), policy(guard)), vnic("b", trunk(false, 0, 5)))
}

func addressGuard(e *plan.Effective) {
	e.AddressGuard.Enabled.V, e.AddressGuard.Addresses.V = true, guardcases.Addresses
}

func (r *rig) guarded(cases []guardcases.Case) {
	for _, c := range cases {
		res := r.send("a", c.Frame)
		if got := res.Reason; got != abi.ReasonNone && got.String() != c.Reason || got == abi.ReasonNone &&
			c.Reason != "" {
			r.t.Errorf("%s: %s, want %q", c.Name, got, c.Reason)
		}
	}
}

func TestS86_TheOwnerSendsIPFromItsOwnAddressesAlone(t *testing.T) {
	guardedRig(t, addressGuard).guarded(guardcases.Sources())
}

func TestS108_TheOwnerSpeaksForItsOwnAddressesAlone(t *testing.T) {
	guardedRig(t, addressGuard).guarded(guardcases.Neighbours())
}

func TestS87_AGuestAnswersNoDHCPAndIsNoRouterWhereItMayNot(t *testing.T) {
	guardedRig(t, func(e *plan.Effective) { e.DHCPServer.V, e.RouterAdvertisements.V = false, false }).guarded(
		guardcases.Servers())
}

func TestS86_S87_S108_WithoutAGuardEverythingPasses(t *testing.T) {
	for _, cases := range [][]guardcases.Case{guardcases.Sources(), guardcases.Neighbours(), guardcases.Servers()} {
		for i := range cases {
			cases[i].Reason = ""
		}
		guardedRig(t, func(e *plan.Effective) { e.AddressGuard.Addresses.V = guardcases.Addresses }).guarded(cases)
	}
}

func TestS109_AGuestSendsNothingThatLooksLikeAProbe(t *testing.T) {
	r := guardedRig(t, func(*plan.Effective) {})
	r.change(func(r *rig) { r.sw.HealthCheck = true })
	r.guarded(guardcases.HealthProbes())
}

func TestS109_WithoutAHealthCheckProbesOfGuestsPass(t *testing.T) {
	cases := guardcases.HealthProbes()
	for i := range cases {
		cases[i].Reason = ""
	}
	guardedRig(t, func(*plan.Effective) {}).guarded(cases)
}
