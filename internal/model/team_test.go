package model

import (
	"reflect"
	"slices"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// leaves sends an unknown unicast frame and gives the uplink it left by; "" when it left by none.
func (r *rig) leaves(at string, f []byte) string {
	r.t.Helper()
	res := r.send(at, f)
	switch len(res.Copies) {
	case 0:
		return ""
	case 1:
		return res.Copies[0].To.Name
	}
	r.t.Fatalf("%d copies", len(res.Copies))
	return ""
}

func TestS42_D10_APortKeepsItsUplinkUntilItFails(t *testing.T) {
	r := newRig(t, vnic("p1"), vnic("p2"), vnic("p3"), vnic("p4"), up("u0"), up("u1"), up("u2"))
	where := func() (got []string) {
		for n, p := range []string{"p1", "p2", "p3", "p4"} {
			got = append(got, r.leaves(p, eth(m(1), portMAC(n+1))))
		}
		return got
	}
	if got := where(); !reflect.DeepEqual(got, []string{"u1", "u2", "u0", "u1"}) {
		t.Errorf("number mod 3: %v", got)
	}
	r.change(func(r *rig) { r.fact("u1", func(f *plan.Fact) { f.Up = false }) })
	if got := where(); !reflect.DeepEqual(got, []string{"u2", "u2", "u0", "u0"}) { // 1 and 4 choose again, out of two
		t.Errorf("u1 down: %v", got)
	}
	r.change(func(r *rig) { delete(r.facts, id("u0")) })
	if got := where(); !reflect.DeepEqual(got, []string{"u2", "u2", "u2", "u2"}) {
		t.Errorf("u2 alone: %v", got)
	}
}

func TestS45_StandbyServesWhenNoActiveDoesAndUnusedNever(t *testing.T) {
	r := newRig(t, vnic("a", team(spec.OriginatingPort, []string{"u1"}, []string{"u3", "u2"})), up("u1"), up("u2"),
		up("u3"), up("u4"))
	f := eth(m(1), portMAC(1))
	for _, want := range []string{"u1", "u3", "u2", ""} {
		if got := r.leaves("a", f); got != want {
			t.Errorf("left by %q, want %q", got, want)
		}
		if want != "" {
			r.change(func(r *rig) { r.fact(want, func(f *plan.Fact) { f.Up = false }) })
		}
	}
	r.expect(r.send("a", f), outcome{reason: abi.ReasonNoUplink,
		refused: map[string]abi.Reason{"": abi.ReasonNoUplink}})
	r = newRig(t, vnic("a", team(spec.IPHash, []string{}, nil)), up("u1")) // an empty list means none
	r.expect(r.send("a", f), outcome{reason: abi.ReasonNoUplink,
		refused: map[string]abi.Reason{"": abi.ReasonNoUplink}})
}

func TestS45_ExplicitOrderTakesTheFirstUsable(t *testing.T) {
	r := newRig(t, vnic("a", team(spec.ExplicitOrder, []string{"u2", "u1"}, []string{"u3"})), up("u1"), up("u2"),
		up("u3"))
	f := eth(m(1), portMAC(1))
	for _, want := range []string{"u2", "u1", "u3"} {
		if got := r.leaves("a", f); got != want {
			t.Errorf("left by %q, want %q", got, want)
		}
		r.change(func(r *rig) { r.fact(want, func(f *plan.Fact) { f.Up = false }) })
	}
}

func TestD10_SourceMACHashesTheLastByte(t *testing.T) {
	r := newRig(t, vnic("a", team(spec.SourceMAC, []string{"u0", "u1", "u2"}, nil)), up("u0"), up("u1"), up("u2"))
	for last, want := range map[int]string{0: "u0", 1: "u1", 200: "u2", 255: "u0"} {
		if got := r.leaves("a", eth(m(1), m(last))); got != want {
			t.Errorf("…:%02x left by %q, want %q", last, got, want)
		}
	}
}

func TestS46_IPHashIsTheXorOfTheLastOctets(t *testing.T) {
	names := []string{"u0", "u1", "u2"}
	r := newRig(t, vnic("a", trunk(false, 0, 5), team(spec.IPHash, names, nil)), up("u0"), up("u1"), up("u2"))
	other := []byte{0x08, 0x06, 29 - 2: 0}                                // ARP
	other[29-12], other[33-12] = 9, 13                                    // 4
	short := eth(m(1), m(2), []byte{0x86, 0xdd, 0x60})[:14+1]             // an IPv6 header cut short: 0
	short4 := append(eth(m(1), m(2), []byte{0x08, 0})[:29:29], byte(200)) // source there, destination not
	hidden := tagged(tagged(eth(m(1), m(2), ipv4(10, 5)), typeQ, 9), typeQ, 5)
	for _, c := range []struct {
		what  string
		frame []byte
		hash  int
	}{
		{"IPv4", eth(m(1), m(2), ipv4(10, 5)), 10 ^ 5},
		{"IPv4 tagged", tagged(eth(m(1), m(2), ipv4(10, 6)), typeQ, 5), 10 ^ 6},
		{"IPv6", eth(m(1), m(2), ipv6(200, 7)), 200 ^ 7},
		{"IPv6 tagged", tagged(eth(m(1), m(2), ipv6(200, 8)), typeQ, 5), 200 ^ 8},
		{"ARP", eth(m(1), m(2), other), 9 ^ 13},
		{"cut short IPv6", short, 0},
		{"cut short IPv4", short4, 200},
		{"IPv4 below two tags", hidden, 10 ^ 5},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := r.leaves("a", c.frame); got != names[c.hash%3] {
				t.Errorf("%s left by %q, want %q", c.what, got, names[c.hash%3])
			}
		})
	}
}

func TestS80_D7_D20_CountersOfPortAndUplink(t *testing.T) {
	r := newRig(t, vnic("a", access(10)), vnic("b", access(10)), up("u"))
	f := eth(all, portMAC(1)) // 64 bytes
	r.send("a", f)
	r.send("u", tagged(eth(portMAC(2), m(9)), typeQ, 10))
	a, b, u := r.counters("a"), r.counters("b"), r.counters("u")
	want := Counters{PacketsInBroadcast: 1, BytesInBroadcast: 64, BytesOutToPnic: 68, Delivered: 1}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("a %+v", a)
	}
	want = Counters{PacketsOutBroadcast: 1, BytesOutBroadcast: 64, PacketsOutUnicast: 1, BytesOutUnicast: 64,
		BytesInFromPnic: 64}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("b %+v", b)
	}
	want = Counters{PacketsOutBroadcast: 1, BytesOutBroadcast: 68, PacketsInUnicast: 1, BytesInUnicast: 68,
		Delivered: 1}
	if !reflect.DeepEqual(u, want) {
		t.Errorf("u %+v", u)
	}
}

func TestS44_WhatRestsIsUsedOnlyWhenNothingElseIs(t *testing.T) {
	r := newRig(t, vnic("a", team(spec.ExplicitOrder, []string{"u1", "u2"}, []string{"u3"})), up("u1"), up("u2"),
		up("u3"))
	f := eth(m(1), portMAC(1))
	for _, step := range []struct {
		resting, down []string
		want          string
	}{
		{[]string{"u1"}, nil, "u2"},
		{[]string{"u1"}, []string{"u2"}, "u3"},
		{[]string{"u1"}, []string{"u2", "u3"}, "u1"},
		{[]string{"u1", "u3"}, []string{"u2"}, "u1"},
		{nil, nil, "u1"},
	} {
		r.change(func(r *rig) {
			r.fact("a", func(f *plan.Fact) { f.Resting = step.resting })
			for _, u := range []string{"u1", "u2", "u3"} {
				r.fact(u, func(f *plan.Fact) { f.Up = !slices.Contains(step.down, u) })
			}
		})
		if got := r.leaves("a", f); got != step.want {
			t.Errorf("%v rest and %v are down: left by %q, want %q", step.resting, step.down, got, step.want)
		}
	}
}

func TestS47_APortLeavesByTheUplinkItIsAssignedTo(t *testing.T) {
	r := newRig(t, vnic("a", team(spec.LoadBased, []string{"u0", "u1"}, []string{"u2"})), up("u0"), up("u1"), up("u2"))
	f := eth(m(1), portMAC(1))
	for _, step := range []struct{ assigned, down, want string }{
		{"", "", "u1"}, {"u0", "", "u0"}, {"u0", "u0", "u1"}, {"u2", "", "u1"}, {"u2", "u1", "u0"},
		{"nobody", "", "u1"},
	} {
		r.change(func(r *rig) {
			r.fact("a", func(f *plan.Fact) { f.Assigned = step.assigned })
			for _, u := range []string{"u0", "u1", "u2"} {
				r.fact(u, func(f *plan.Fact) { f.Up = u != step.down })
			}
		})
		if got := r.leaves("a", f); got != step.want {
			t.Errorf("assigned to %q with %q down: left by %q, want %q", step.assigned, step.down, got, step.want)
		}
	}
}

func TestS52_ALAGSpreadsOverItsUsableMembers(t *testing.T) {
	bundle := set(func(s *plan.Switch) {
		s.LAGs = []*plan.LAG{{Name: "lag", Uplinks: []string{"u1", "u2", "u3"}, Hash: spec.HashIP}}
	})
	r := newRig(t, bundle, vnic("a", team(spec.SourceMAC, []string{"lag"}, []string{"u4"})), up("u1"), up("u2"),
		up("u3"), up("u4"))
	count := func() map[string]int {
		use := map[string]int{}
		for n := range 90 {
			use[r.leaves("a", eth(m(1), m(n), ipv4(byte(n), 7)))]++
		}
		return use
	}
	if use := count(); len(use) != 3 || min(use["u1"], use["u2"], use["u3"]) < 15 {
		t.Errorf("90 addresses are spread as %v", use)
	}
	r.change(func(r *rig) {
		r.fact("u2", func(f *plan.Fact) { f.Out = &problem.Problem{Code: problem.LACPNotInSync} })
	})
	if use := count(); len(use) != 2 || min(use["u1"], use["u3"]) < 25 {
		t.Errorf("over two members: %v", use)
	}
	r.change(func(r *rig) {
		r.fact("u1", func(f *plan.Fact) { f.Up = false })
		delete(r.facts, id("u3"))
	})
	if use := count(); use["u4"] != 90 {
		t.Errorf("without a member: %v", use)
	}
}
