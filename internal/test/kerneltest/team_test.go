package kerneltest

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

const team = `
  kind: distributed
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}, {name: u3, device: dev3}]
  portGroups:
  - {name: web}
  - {name: standby, teaming: {active: [u1], standby: [u3]}}
  - {name: order, teaming: {policy: explicit, active: [u2, u1], standby: [u3]}}
  - {name: source, teaming: {policy: source-mac}, security: {forgedTransmits: accept}}
  - {name: hash, teaming: {policy: ip-hash}, security: {forgedTransmits: accept}, vlan: {trunk: ["0", "5"]}}
`

func TestS42_D10_APortKeepsItsUplinkUntilThatFails(t *testing.T) {
	r := newRig(t, team, "vm1 web", "vm2 web", "vm3 web", "vm4 web")
	leave := func(uplinks ...string) {
		t.Helper()
		for n, u := range uplinks {
			vm := fmt.Sprint("vm", n+1)
			r.send(vm, "ext1 "+vm+" 0800", to(u))
			r.send(vm, "ext2 "+vm+" 86dd", to(u)) // whatever it sends
		}
	}
	leave("u2", "u3", "u1", "u2") // port number mod 3
	r.fact("u2", down)
	leave("u3", "u3", "u1", "u1") // vm1 and vm4 choose again among two; the others stay
	r.gone("u1")
	leave("u3", "u3", "u3", "u3")
	r.fact("u2", up)
	r.resolve(r.cfg)
	leave("u2", "u3", "u1", "u2")
}

func TestS45_StandbyServesWhenNoActiveDoesAndUnusedNever(t *testing.T) {
	r := newRig(t, team, "vm1 standby")
	r.send("vm1", "ext1 vm1 0800", to("u1"))
	r.fact("u1", down)
	r.send("vm1", "ext1 vm1 0800", to("u3"))
	r.fact("u3", down)
	r.send("vm1", "ext1 vm1 0800", noUplink, dropped("no-uplink")) // u2 is up, and unused
	r.fact("u1", up)
	r.send("vm1", "ext1 vm1 0800", to("u1"))
}

func TestS45_ExplicitOrderTakesTheFirstUsable(t *testing.T) {
	r := newRig(t, team, "vm1 order", "vm2 order")
	for _, u := range []string{"u2", "u1", "u3"} {
		r.send("vm1", "ext1 vm1 0800", to(u))
		r.send("vm2", "all vm2 0806", to("vm1"), to(u))
		r.fact(u, down)
	}
	r.send("vm1", "ext1 vm1 0800", noUplink, dropped("no-uplink"))
}

func TestS44_WhatRestsIsUsedOnlyWhenNothingElseIs(t *testing.T) {
	r := newRig(t, team, "vm1 order", "vm2 order", "vm3 standby", "vm4 source")
	rests := func(names ...string) func(*plan.Fact) { return func(f *plan.Fact) { f.Resting = names } }
	r.fact("vm1", rests("u2"))
	r.send("vm1", "ext1 vm1 0800", to("u1"))
	r.send("vm2", "ext1 vm2 0800", to("u2")) // it rests for the one port only
	r.fact("vm3", rests("u1"))
	r.send("vm3", "ext1 vm3 0800", to("u3")) // better the standby than one that came back
	r.fact("u3", down)
	r.send("vm3", "ext1 vm3 0800", to("u1")) // better one that came back than none
	r.fact("vm4", rests("u2", "u3"))
	for _, last := range []string{"00", "01", "02"} {
		r.send("vm4", "ext1 0600000007"+last+" 0800", to("u1"))
	}
	r.fact("vm1", rests("u2", "u1"))
	r.send("vm1", "ext1 vm1 0800", to("u2")) // the normal order among those that rest, as u3 is down
}

func TestS45_AnUplinkThatIsOutIsNotUsed(t *testing.T) {
	r := newRig(t, team, "vm1 order", "vm2 order")
	for _, u := range []string{"u2", "u1", "u3"} {
		r.send("vm1", "ext1 vm1 0800", to(u))
		r.fact(u, func(f *plan.Fact) { f.Out = &problem.Problem{Code: problem.BeaconsLost, Want: 3} })
	}
	r.send("vm1", "ext1 vm1 0800", noUplink, dropped("no-uplink"))
	r.send("u2", "vm1 ext1 0800", to("vm1")) // frames that arrive on it are accepted even so
}

func TestS47_APortLeavesByTheUplinkItIsAssignedTo(t *testing.T) {
	r := newRig(t, team+"  - {name: load, teaming: {policy: load-based, active: [u1, u2], standby: [u3]}}\n",
		"vm1 load", "vm2 web")
	assigned := func(name string) func(*plan.Fact) { return func(f *plan.Fact) { f.Assigned = name } }
	r.send("vm1", "ext1 vm1 0800", to("u2")) // as by originating port
	r.fact("vm1", assigned("u1"))
	r.send("vm1", "ext1 vm1 0800", to("u1"))
	r.send("u1", "all ext1 0806", to("vm1 host"), refused("vm2", "reverse-path"))
	r.fact("u1", down)
	r.send("vm1", "ext1 vm1 0800", to("u2"))
	r.fact("u1", up)
	r.fact("vm1", assigned("u3")) // which is not active
	r.send("vm1", "ext1 vm1 0800", to("u2"))
	r.fact("vm2", assigned("u1")) // whose team is not load-based
	r.send("vm2", "ext1 vm2 0800", to("u3"))
}

func TestS45_AnEmptyActiveListUsesNoUplink(t *testing.T) {
	r := newRig(t, strings.Replace(team, "active: [u1], standby: [u3]", "active: [], standby: []", 1), "vm1 standby")
	r.send("vm1", "ext1 vm1 0800", noUplink, dropped("no-uplink"))
}

func TestD10_SourceMACTeamsHashTheLastByte(t *testing.T) {
	r := newRig(t, team, "vm1 source")
	for last, u := range map[string]string{"00": "u1", "01": "u2", "c8": "u3", "ff": "u1"} {
		t.Run(last, func(t *testing.T) {
			r.send("vm1", "ext1 0600000007"+last+" 0800", to(u))
		})
	}
}

func TestS46_IPHashIsTheXorOfTheLastOctetsModuloTheUplinks(t *testing.T) {
	r := newRig(t, team, "vm1 hash")
	const ip4 = "0800 4500001400000000400000000a0000%02x0a0000%02x [26]"
	const ip6 = "86dd 6000000000003b40 fd%030x fd%030x [6]"
	for _, c := range []struct {
		source, destination int // last octets
		uplink              string
	}{
		{10, 5, "u1"},  // 15 mod 3 = 0
		{10, 7, "u2"},  // 13 mod 3 = 1
		{200, 6, "u3"}, // 206 mod 3 = 2
		{6, 200, "u3"}, // the same both ways
		{9, 9, "u1"},
	} {
		for _, form := range []string{ip4, ip6} {
			f := fmt.Sprintf(form, c.source, c.destination)
			r.send("vm1", "ext1 vm1 "+f, to(c.uplink))
			r.send("vm1", "ext1 vm1 q5 "+f, to(c.uplink))
		}
	}
	arp := "0806 0001080006040001 02000000000a 0a000%03x 000000000000 0a000005" // bytes 29 and 33
	r.send("vm1", "ext1 vm1 "+fmt.Sprintf(arp, 7), to("u1"))
}
