package model

import (
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

func TestS21_AccessFrameLeavesAnUplinkWithExactlyOneTag(t *testing.T) {
	r := newRig(t, vnic("a", access(10)), vnic("b", access(10)), vnic("c", trunk(false, 10)), up("u"))
	f := eth(all, portMAC(1))
	r.expect(r.send("a", f), outcome{copies: map[string][]byte{
		"b": f, "c": tagged(f, typeQ, 10), "u": tagged(f, typeQ, 10),
	}})
}

func TestS22_TaggedFrameFromAnUplinkIsDeliveredUntagged(t *testing.T) {
	r := newRig(t, vnic("a", access(10)), vnic("b", access(11)), vnic("c"), up("u"))
	f := eth(portMAC(1), m(9))
	r.delivered(r.send("u", tagged(f, typeQ, 0x6000|10)), f, "a")
	r.dropped(r.send("u", tagged(f, typeAD, 10)), abi.ReasonUnknownUnicast) // another segment
	r.dropped(r.send("u", f), abi.ReasonUnknownUnicast)
	inner := tagged(f, typeQ, 99)
	r.delivered(r.send("u", tagged(inner, typeQ, 10)), inner, "a") // a tag below is payload
}

func TestS23_PortInNoVLANSeesNoTags(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"), up("u"))
	f := eth(all, m(9))
	r.delivered(r.send("u", f), f, "a", "b", "host")
	r.delivered(r.send("u", tagged(f, typeQ, 10)), tagged(f, typeQ, 10), "host")
	own := eth(all, portMAC(1))
	r.dropped(r.send("a", tagged(own, typeQ, 10)), abi.ReasonGuestTagged)
	r.dropped(r.send("a", tagged(own, typeAD, 4095)), abi.ReasonGuestTagged)
}

func TestS24_TrunkKeepsItsTags(t *testing.T) {
	r := newRig(t, vnic("a", trunk(false, 10, 15, 20)), vnic("b", trunk(false, 15)), vnic("c", access(15)), up("u"))
	f := eth(all, portMAC(1))
	in := tagged(f, typeQ, 0xb000|15) // with PCP 5 and DEI
	r.expect(r.send("a", in), outcome{copies: map[string][]byte{"b": in, "c": f, "u": in}})
	r.dropped(r.send("a", tagged(f, typeQ, 25)), abi.ReasonVLANNotAllowed)
	r.dropped(r.send("a", tagged(f, typeQ, 4095)), abi.ReasonVLANNotAllowed)
	r.dropped(r.send("a", tagged(f, typeAD, 15)), abi.ReasonVLANNotAllowed)
}

func TestS24_D11_ProviderTrunkIsASegmentOfItsOwn(t *testing.T) {
	r := newRig(t, vnic("a", trunk(true, 15)), vnic("b", trunk(true, 15)), vnic("c", trunk(false, 15)),
		vnic("d", access(15)), up("u"))
	f := tagged(tagged(eth(all, portMAC(1)), typeQ, 7), typeAD, 15)
	r.delivered(r.send("a", f), f, "b", "u")
	r.dropped(r.send("a", tagged(eth(all, portMAC(1)), typeQ, 15)), abi.ReasonVLANNotAllowed)
}

func TestS25_TrunkWithoutZeroDropsUntagged(t *testing.T) {
	r := newRig(t, vnic("a", trunk(false, 10)), vnic("b", trunk(false, 0)), vnic("c"))
	f := eth(all, portMAC(1))
	r.dropped(r.send("a", f), abi.ReasonVLANNotAllowed)
	r.dropped(r.send("a", tagged(f, typeQ, 0)), abi.ReasonVLANNotAllowed)
	g := eth(all, portMAC(2))
	r.delivered(r.send("b", g), g, "c")
}

func TestS26_PortGroupsOfOneVLANAreOneDomain(t *testing.T) {
	group := func(name string) func(*plan.Port, *plan.Fact) {
		return func(p *plan.Port, _ *plan.Fact) { p.PortGroup = name }
	}
	r := newRig(t, vnic("a", access(10), group("web")), vnic("b", access(10), group("db")))
	f := eth(all, portMAC(1))
	r.delivered(r.send("a", f), f, "b")
}

func TestS27_UplinkRangeFiltersBothDirections(t *testing.T) {
	narrow := func(u *plan.Uplink, _ *plan.Fact) { u.VLANs = plan.VLANSet{}; u.VLANs.AddRange(20, 30) }
	r := newRig(t, vnic("a", access(10)), up("u", narrow))
	r.expect(r.send("a", eth(all, portMAC(1))), outcome{reason: abi.ReasonUplinkVLAN,
		refused: map[string]abi.Reason{"u": abi.ReasonUplinkVLAN}})
	if c := r.counters("u"); c.PacketsOutDropped != 1 || c.RefusedOut[abi.ReasonUplinkVLAN] != 1 {
		t.Errorf("counters %+v", c)
	}
	r.dropped(r.send("u", tagged(eth(portMAC(1), m(9)), typeQ, 10)), abi.ReasonUplinkVLAN)
	r.dropped(r.send("u", eth(portMAC(1), m(9))), abi.ReasonUplinkVLAN)
}

func TestD9_D12_PriorityTagsPassAndOthersDoNot(t *testing.T) {
	r := newRig(t, vnic("a", access(10)), vnic("b", access(10)), vnic("c", trunk(false, 10)), vnic("d"), vnic("e"),
		up("u"))
	f := eth(all, portMAC(1))
	prio := tagged(f, typeAD, 0xe000)
	r.expect(r.send("a", prio), outcome{copies: map[string][]byte{
		"b": f, "c": tagged(f, typeQ, 0xe000|10), "u": tagged(f, typeQ, 0xe000|10),
	}})
	r.dropped(r.send("a", tagged(f, typeQ, 10)), abi.ReasonGuestTagged)
	r.dropped(r.send("a", tagged(tagged(f, typeQ, 10), typeQ, 0)), abi.ReasonGuestTagged) // no hopping by a hidden tag
	g := tagged(eth(all, portMAC(4)), typeQ, 0x2000)
	r.delivered(r.send("d", g), g, "e", "u") // untagged segment: as it came
	r.dropped(r.send("d", tagged(g, typeQ, 0)), abi.ReasonGuestTagged)
}

func TestMalformedIsTooShortForItsHeaders(t *testing.T) {
	r := newRig(t, vnic("a", trunk(false, 0, 10)), vnic("b", trunk(false, 0, 10)))
	f := eth(all, portMAC(1))
	one, two := tagged(f, typeQ, 10), tagged(tagged(f, typeQ, 7), typeQ, 10)
	for _, bad := range [][]byte{f[:13], f[:3], nil, one[:18], one[:19], two[:23]} {
		r.dropped(r.send("a", bad), abi.ReasonMalformed)
	}
	for _, good := range [][]byte{f[:14], one[:20], two[:24]} {
		r.delivered(r.send("a", good), good, "b")
	}
	if c := r.counters("a"); c.PacketsInException != 6 || c.PacketsInDropped != 0 {
		t.Errorf("counters %+v", c)
	}
}

func TestD17_MTUIsOfLayer3(t *testing.T) {
	r := newRig(t, vnic("a", trunk(false, 0, 10)),
		vnic("b", trunk(false, 0, 10), fact(func(f *plan.Fact) { f.MTU = 1400 })),
		vnic("c", access(10)), up("u", func(_ *plan.Uplink, f *plan.Fact) { f.MTU = 1400 }))
	sized := func(n int) []byte { return append(eth(all, portMAC(1)), make([]byte, n+14-64)...) }
	r.dropped(r.send("a", sized(1501)), abi.ReasonMTUExceeded)
	r.dropped(r.send("a", tagged(tagged(tagged(sized(1500), typeQ, 3), typeQ, 2), typeQ, 10)), abi.ReasonMTUExceeded)
	in := tagged(tagged(sized(1500), typeQ, 2), typeQ, 10)
	r.expect(r.send("a", in), outcome{copies: map[string][]byte{"c": tagged(sized(1500), typeQ, 2)},
		refused: map[string]abi.Reason{"b": abi.ReasonMTUExceeded, "u": abi.ReasonMTUExceeded}})
	in = tagged(sized(1400), typeQ, 10)
	r.expect(r.send("a", in), outcome{copies: map[string][]byte{"b": in, "c": sized(1400), "u": in}})
}
