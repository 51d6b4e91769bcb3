package model

import (
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

func TestS1_ForgedTransmitRejectedIsDropped(t *testing.T) {
	r := newRig(t, vnic("a", noForgery), vnic("b"))
	r.dropped(r.send("a", eth(all, portMAC(9))), abi.ReasonForgedTransmit)
	f := eth(all, portMAC(1))
	r.delivered(r.send("a", f), f, "b")
	c := r.counters("a")
	if c.DropsIn[abi.ReasonForgedTransmit] != 1 || c.PacketsInDropped != 1 || c.Delivered != 1 {
		t.Errorf("counters %+v", c)
	}
}

func TestS2_ForgedTransmitAcceptedIsNotChecked(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"))
	f := eth(all, portMAC(77))
	r.delivered(r.send("a", f), f, "b")
}

func TestS3_MACChangeRejectedReceivesNothingUntilItIsBack(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", noForgery))
	r.change(func(r *rig) { r.fact("b", func(f *plan.Fact) { f.SeenMAC = portMAC(42) }) })
	refusal := outcome{refused: map[string]abi.Reason{"b": abi.ReasonMACChange}, reason: abi.ReasonMACChange}
	r.expect(r.send("a", eth(portMAC(2), portMAC(1))), refusal)
	r.expect(r.send("a", eth(all, portMAC(1))), refusal)
	r.dropped(r.send("a", eth(portMAC(42), portMAC(1))), abi.ReasonUnknownUnicast)
	r.dropped(r.send("b", eth(all, portMAC(42))), abi.ReasonForgedTransmit) // C1: the effective MAC is the initial one
	r.change(func(r *rig) { r.fact("b", func(f *plan.Fact) { f.SeenMAC = portMAC(2) }) })
	f := eth(portMAC(2), portMAC(1))
	r.delivered(r.send("a", f), f, "b")
}

func acceptChanges(e *plan.Effective) { e.MACChanges.V = true }

func TestS4_MACChangeAcceptedMovesTheAddress(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", policy(acceptChanges), noForgery))
	r.change(func(r *rig) { r.fact("b", func(f *plan.Fact) { f.SeenMAC = portMAC(42) }) })
	f := eth(portMAC(42), portMAC(1))
	r.delivered(r.send("a", f), f, "b")
	r.dropped(r.send("a", eth(portMAC(2), portMAC(1))), abi.ReasonUnknownUnicast)
	g := eth(portMAC(1), portMAC(42))
	r.delivered(r.send("b", g), g, "a")
}

func TestD2_D16_MACThatAnotherOwnsIsRefused(t *testing.T) {
	for name, m := range map[string]plan.MAC{"initial of another": portMAC(1), "uplink device": uplinkMAC(1),
		"taken before": portMAC(42)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vnic("a"), up("u"),
				vnic("x", policy(acceptChanges), fact(func(f *plan.Fact) { f.SeenMAC = portMAC(42) })),
				vnic("b", policy(acceptChanges), fact(func(f *plan.Fact) { f.SeenMAC = m })))
			r.expect(r.send("a", eth(portMAC(3), portMAC(99))),
				outcome{refused: map[string]abi.Reason{"b": abi.ReasonMACChange}, reason: abi.ReasonMACChange})
		})
	}
}

func TestD2_PortWithoutAConfiguredMACTakesTheSeenOne(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", noForgery, func(p *plan.Port, f *plan.Fact) { p.InitialMAC = plan.MAC{} }))
	f := eth(portMAC(2), portMAC(1))
	r.delivered(r.send("a", f), f, "b")
	r.change(func(r *rig) { r.fact("b", func(f *plan.Fact) { f.SeenMAC = plan.MAC{} }) })
	r.dropped(r.send("a", f), abi.ReasonUnknownUnicast)
	r.dropped(r.send("b", eth(all, portMAC(2))), abi.ReasonForgedTransmit) // an effective MAC of zero equals nothing
}

func TestS5_PromiscuousRejectedSeesOnlyItsOwn(t *testing.T) {
	asks := fact(func(f *plan.Fact) { f.Promiscuous = plan.AsksYes })
	r := newRig(t, vnic("a"), vnic("b"), vnic("c", asks))
	f := eth(portMAC(2), portMAC(1))
	r.delivered(r.send("a", f), f, "b")
	g := eth(all, portMAC(1))
	r.delivered(r.send("a", g), g, "b", "c")
}

func TestS6_D1_PromiscuousAcceptedNeedsAnOwnerThatMayAsk(t *testing.T) {
	for asks, to := range map[plan.Asks][]string{
		plan.AsksNo: {"b"}, plan.AsksYes: {"b", "c"}, plan.AsksUnknown: {"b", "c"},
	} {
		r := newRig(t, vnic("a"), vnic("b"), vnic("c", promiscuous, fact(func(f *plan.Fact) { f.Promiscuous = asks })))
		f := eth(portMAC(2), portMAC(1))
		r.delivered(r.send("a", f), f, to...)
	}
}

func TestS7_PromiscuousStaysInItsVLAN(t *testing.T) {
	r := newRig(t, vnic("a", access(10)), vnic("b", access(10)), vnic("c", access(20), promiscuous),
		vnic("d", trunk(false, 20), promiscuous))
	f := eth(portMAC(2), portMAC(1))
	r.delivered(r.send("a", f), f, "b")
}

func TestD8_GroupAndZeroSourcesAreDropped(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"), up("u"))
	for _, at := range []string{"a", "u"} {
		r.dropped(r.send(at, eth(all, plan.MAC{1, 0, 0, 0, 0, 1})), abi.ReasonSourceGroup)
		r.dropped(r.send(at, eth(portMAC(2), plan.MAC{})), abi.ReasonSourceZero)
	}
}

func TestS41_BlockedPassesNothingEitherWay(t *testing.T) {
	r := newRig(t, vnic("a", blocked), vnic("b"), up("u", func(u *plan.Uplink, _ *plan.Fact) { u.Blocked = true }))
	r.dropped(r.send("a", eth(all, portMAC(1))), abi.ReasonPortBlocked)
	r.dropped(r.send("u", eth(portMAC(2), portMAC(9))), abi.ReasonPortBlocked)
	r.expect(r.send("b", eth(all, portMAC(2))), outcome{reason: abi.ReasonReceiverBlocked,
		refused: map[string]abi.Reason{"a": abi.ReasonReceiverBlocked, "u": abi.ReasonReceiverBlocked}})
}

func TestS110_APortThatALoopGoesThroughPassesNothingAndProbesGoNowhere(t *testing.T) {
	loop := fact(func(f *plan.Fact) { f.LoopBlocked = &problem.Problem{Code: problem.LoopProbed} })
	r := newRig(t, vnic("a", loop), vnic("b"), vnic("c", blocked, loop))
	r.dropped(r.send("a", eth(all, portMAC(1))), abi.ReasonLoopBlocked)
	r.dropped(r.send("c", eth(all, portMAC(3))), abi.ReasonPortBlocked)
	r.expect(r.send("b", eth(portMAC(1), portMAC(2))), outcome{reason: abi.ReasonLoopBlocked,
		refused: map[string]abi.Reason{"a": abi.ReasonLoopBlocked}})
	probe := append(eth(all, portMAC(2))[:12], 0x88, 0xb5, 'H', 'd', 'L', 'p')
	r.dropped(r.send("b", append(probe, make([]byte, 52)...)), abi.ReasonLoopBlocked)
	r.expect(r.send("b", append(probe, make([]byte, 51)...)), outcome{reason: abi.ReasonReceiverBlocked,
		refused: map[string]abi.Reason{"a": abi.ReasonLoopBlocked, "c": abi.ReasonReceiverBlocked}})
}
