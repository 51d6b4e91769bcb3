package model

import (
	"slices"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

func hosted(_ *plan.Uplink, f *plan.Fact) { f.HostTraffic = true }

func (r *rig) fromHost(at string, frame []byte) Result { return r.h.FromHost(id(at), frame, r.now) }

func TestS96_TheHostBehindAnUplinkIsAMemberOfItsSegments(t *testing.T) {
	narrow := func(u *plan.Uplink, f *plan.Fact) {
		u.VLANs = plan.VLANSet{}
		u.VLANs.AddRange(10, 10)
		hosted(u, f)
	}
	byU := policy(func(e *plan.Effective) { e.Teaming.Active.V = []string{"u"} })
	r := newRig(t, vnic("a", byU), vnic("b", byU, access(10)), up("u", hosted), up("narrow", narrow), up("other"))
	f := eth(all, portMAC(1))
	r.copies(r.send("a", f), "host u", "u")
	r.copies(r.send("b", eth(all, portMAC(2))), "host u", "host narrow", "u")
	r.copies(r.send("a", eth(uplinkMAC(1), portMAC(1))), "host u")
	r.copies(r.send("b", eth(uplinkMAC(2), portMAC(2))), "host narrow")
	r.copies(r.send("a", eth(uplinkMAC(2), portMAC(1))), "u") // a segment that the uplink does not carry
	r.copies(r.send("a", eth(uplinkMAC(3), portMAC(1))), "u") // no address of the host there
	r.copies(r.send("other", eth(uplinkMAC(1), m(9))))        // frames from outside reach the host in another way
	long := append(eth(uplinkMAC(1), portMAC(1)), make([]byte, 1400)...)
	r.change(func(r *rig) { r.fact("u", func(f *plan.Fact) { f.MTU = 1280 }) })
	if got := r.send("a", long); got.Reason != abi.ReasonMTUExceeded {
		t.Errorf("a frame too long for the host's device: %+v", got)
	}
	for what, f := range map[string]func(r *rig){
		"down":                   func(r *rig) { r.fact("u", func(f *plan.Fact) { f.Up = false }) },
		"blocked":                func(r *rig) { r.sw.Uplinks[0].Blocked = true },
		"without an address":     func(r *rig) { r.fact("u", func(f *plan.Fact) { f.HostTraffic = false }) },
		"a port has the MAC now": func(r *rig) { r.port("b").InitialMAC = uplinkMAC(1) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, vnic("a"), vnic("b", access(10)), up("u", hosted))
			r.change(f)
			for _, c := range r.send("a", eth(all, portMAC(1))).Copies {
				if c.HostStack {
					t.Errorf("uplink %s: a copy for the host", what)
				}
			}
			g := eth(portMAC(1), uplinkMAC(1))
			r.copies(r.fromHost("u", g), "u")
		})
	}
}

func TestS96_WhatTheHostSendsIsLookedUpAndLeavesWhereItIsNotKnown(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", learning), vnic("c", access(10)), vnic("shut", blocked), up("u", hosted))
	own := uplinkMAC(1)
	r.copies(r.fromHost("u", eth(portMAC(1), own)), "a")
	r.copies(r.fromHost("u", eth(portMAC(4), own))) // refused, and it does not leave
	r.copies(r.fromHost("u", eth(m(9), own)), "b", "u")
	r.copies(r.fromHost("u", eth(all, own)), "a", "b", "u")
	r.copies(r.fromHost("u", tagged(eth(all, own), typeQ, 10)), "c", "u")
	r.send("b", eth(all, m(7)))
	r.copies(r.fromHost("u", eth(m(7), own)), "b") // learned there
	c := r.counters("u")
	if c.PacketsFromHost != 6 || c.PacketsFromHostKept != 2 || c.PacketsFromHostDropped != 1 {
		t.Errorf("counters %+v", c)
	}
	r.copies(r.fromHost("u", eth(all, m(9))), "u") // somebody else's
	r.copies(r.fromHost("u", eth(plan.MAC{1, 0x80, 0xc2, 0, 0, 0x0e}, own)), "u")
	r.copies(r.fromHost("u", append(eth(portMAC(1), own), make([]byte, 1500)...)), "u")
	if n := r.counters("u").PacketsFromHost; n != 6 || len(r.h.MACs()) != 1 {
		t.Errorf("%d looked up, learned %v", n, r.h.MACs())
	}
}

func TestS91_TheHostsOwnBroadcastComesBackByAnotherUplink(t *testing.T) {
	second := policy(func(e *plan.Effective) { e.Teaming.Active.V = []string{"v"} })
	r := newRig(t, vnic("a", second), up("u", hosted), up("v"))
	f := eth(all, uplinkMAC(1))
	r.copies(r.fromHost("u", f), "a", "u")
	got := r.send("v", f)
	r.copies(got, "host v")
	if len(got.Refused) != 1 || got.Refused[0].Reason != abi.ReasonReflected {
		t.Errorf("refused %v", got.Refused)
	}
}

// copies checks who got one.
func (r *rig) copies(got Result, want ...string) {
	r.t.Helper()
	var names []string
	for _, c := range got.Copies {
		name := c.To.Name
		if c.HostStack {
			name = "host " + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		r.t.Errorf("copies for %v, want %v (reason %v, refused %v)", names, want, got.Reason, got.Refused)
	}
}
