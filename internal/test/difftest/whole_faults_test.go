package difftest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// What random runs have found once, each by itself.

var (
	twoAway  = netip.MustParseAddr("198.51.100.2")
	fiveNear = netip.MustParseAddr("192.0.2.5")
)

// speaksFrom is a frame of a station elsewhere, in a VLAN inside.
func speaksFrom(n byte, vlan uint16) []byte {
	return withTag([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, n, 0x88, 0xb5, 49: 0}, vlan)
}

// TestS84_WhatASegmentHasLearnedGoesWithIt: the next segment may get its number, and no location with it.
func TestS84_WhatASegmentHasLearnedGoesWithIt(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateHead)
	x.set(t, crossingFacts()[0], x.reaches()[0])
	x.arrive(t, twoAway, 10, speaksFrom(9, 7))
	if got := x.model.Tables().Shown; len(got) != 1 {
		t.Fatalf("learned: %v", got)
	}
	whole := x.desired.Plan
	for _, gone := range []string{"b", ""} { // the only port of that segment goes, and another one comes
		p := *whole.Switches[0]
		p.Ports = nil
		for _, port := range whole.Switches[0].Ports {
			switch {
			case port.ID.Name != "b":
				p.Ports = append(p.Ports, port)
			case gone == "":
				other, policy := *port, *port.Policy
				policy.VLAN.V.ID = 8
				other.Policy = &policy
				p.Ports = append(p.Ports, &other)
			}
		}
		x.desired = binding.Desired{Plan: &plan.Plan{Switches: []*plan.Switch{&p}}}
		x.set(t, crossingFacts()[0], overlay.Of(whole.Switches[0]))
		x.sameTables(t)
	}
	to := speaksFrom(1, 8)
	copy(to, []byte{2, 0, 0, 0, 1, 9})
	if out := x.leave(t, 10, to); len(out) < 2 {
		t.Errorf("a frame of the new segment goes where one of the old segment would: %+v", out)
	}
}

// TestS84_TheLimitBehindAnEndpointCountsWhatIsThere: also when the endpoint's subnet becomes another one, and when the
// tunnel has forgotten all because it learns no more.
func TestS84_TheLimitBehindAnEndpointCountsWhatIsThere(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateTwoTier)
	fact, all := crossingFacts()[0], x.reaches()[0]
	x.set(t, fact, all)
	for n := range byte(3) {
		x.arrive(t, twoAway, 10, speaksFrom(n, 0))
	}
	x.sameTables(t)
	fact.Endpoints = []netip.Addr{netip.MustParseAddr("198.51.100.77")} // then it is in this host's own subnet
	x.set(t, fact, all)
	x.sameTables(t)
	if got := x.model.Tables().Held[twoAway]; got != 3 {
		t.Errorf("%d MACs are held", got)
	}
	deaf := all
	deaf.Learn = false
	for _, r := range []overlay.Reach{deaf, all} {
		x.set(t, fact, r)
		x.sameTables(t)
	}
	if got := x.model.Tables(); len(got.Held) != 0 || len(got.Shown) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestS84_AnEndpointHasAsManyMACsAsMayBe: no more is learned behind it, and behind another one it is.
func TestS84_AnEndpointHasAsManyMACsAsMayBe(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateHead)
	x.set(t, crossingFacts()[0], x.reaches()[0])
	frame := speaksFrom(0, 0)
	for n := range abi.EndpointMACs - 1 {
		frame[9], frame[10] = byte(n>>8), byte(n)
		x.arrive(t, twoAway, 10, frame)
	}
	for n, from := range []netip.Addr{twoAway, twoAway, fiveNear} {
		frame[9], frame[10], frame[11] = 1, 1, byte(1+n)
		x.arrive(t, from, 10, frame)
		x.sameTables(t)
	}
}

// TestS85_AnAddressStaysContestedThroughASweep: until the time is over for which nobody is believed, whatever the
// controllers tell.
func TestS85_AnAddressStaysContestedThroughASweep(t *testing.T) {
	testkit.Root(t)
	x := newCrossers(t, spec.ReplicateHead)
	x.desired.Plan.Switches[0].Tunnel.Hold = 30 * time.Second
	x.set(t, crossingFacts()[0], x.reaches()[0])
	claim := func(sender byte, n int) []byte {
		return []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, sender, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0,
			sender, 10, 0, byte(n >> 8), byte(n), 0, 0, 0, 0, 0, 0, 10, 0, byte(n >> 8), byte(n)}
	}
	x.arrive(t, twoAway, 10, claim(8, 1))
	x.now += 29 * time.Second
	for n := range abi.BindingsPerSecond { // until one has had its share
		x.arrive(t, twoAway, 10, claim(9, 1000+n))
	}
	x.arrive(t, twoAway, 10, claim(9, 1))
	told := []overlay.Binding{{Address: overlay.Address{VNI: 10, IP: netip.MustParseAddr("10.0.0.1")},
		MAC: plan.MAC{2, 5: 8}}}
	for _, row := range []struct {
		after time.Duration
		want  abi.Reason
	}{{0, abi.ReasonNone}, {20 * time.Second, abi.ReasonNone}, {11 * time.Second, abi.ReasonNeighbourAnswered}} {
		t.Run(fmt.Sprint(row.after), func(t *testing.T) {
			x.now += row.after
			x.model.Bind(false, told, nil, x.now)
			x.model.Sweep(x.now)
			if err := x.kernel.Bind("s", false, told, nil, x.now); err != nil {
				t.Fatal(err)
			}
			if err := x.kernel.Sweep(x.now); err != nil {
				t.Fatal(err)
			}
			x.sameTables(t)
			ask := claim(7, 2)
			copy(ask[38:], []byte{10, 0, 0, 1})
			if got := x.leaveNow(t, 10, ask)[0].Reason; got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

// TestS105_AFrameFromATunnelHasAtLeast16Bytes: as its segment's number is a tag to the switch.
func TestS105_AFrameFromATunnelHasAtLeast16Bytes(t *testing.T) {
	w := newWholes(t, spec.ReplicateHead)
	defer w.close(t)
	if err := w.change(w.plans[0], crossingFacts()[0], overlay.Of(w.plans[0].Switches[0])); err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]abi.Reason{14: abi.ReasonMalformed, 15: abi.ReasonMalformed, 16: abi.ReasonNone} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 33, 8, 6}, make([]byte, length-14)...)
			if d, err := w.arrive(twoAway, 10, frame); d != "" || err != nil {
				t.Fatal(d, err)
			}
			if _, got := w.model.Arrive("s", twoAway, 10, frame, w.now); got.Reason != want {
				t.Errorf("%s, want %s", got.Reason, want)
			}
		})
	}
}
