package model

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func TestS31_NothingGoesFromUplinkToUplink(t *testing.T) {
	r := newRig(t, vnic("a", learning, txUplink), up("u1"), up("u2"))
	f := eth(all, m(9))
	r.delivered(r.send("u2", f), f, "a", "host")
	g := eth(m(1), m(9))
	r.delivered(r.send("u2", g), g, "a")
}

func TestS32_UnknownUnicastLeavesByOneUplinkOnly(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"), up("u1"), up("u2"))
	f := eth(m(1), portMAC(1))
	r.delivered(r.send("a", f), f, "u2") // number 1 mod 2
}

func TestS33_BroadcastReachesEveryPortAndOneUplink(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"), vnic("c"), up("u1"), up("u2"))
	f := eth(all, portMAC(2))
	r.delivered(r.send("b", f), f, "a", "c", "u1")
	g := eth(plan.MAC{0x33, 0x33, 0, 0, 0, 1}, portMAC(2))
	r.delivered(r.send("b", g), g, "a", "c", "u1")
}

func TestS34_LocalUnicastStaysLocal(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b"), up("u"))
	f := eth(portMAC(2), portMAC(1))
	r.delivered(r.send("a", f), f, "b")
}

func TestS35_TxUplinkCopiesLocalUnicastToTheUplink(t *testing.T) {
	r := newRig(t, vnic("a", txUplink), vnic("b"), up("u"))
	f := eth(portMAC(2), portMAC(1))
	r.delivered(r.send("a", f), f, "b", "u")
	r.dropped(r.send("a", eth(portMAC(1), m(3))), abi.ReasonOwnDestination)
}

func TestS36_GuestBPDUStaysInside(t *testing.T) {
	for _, dst := range []plan.MAC{{1, 0x80, 0xc2, 0, 0, 0}, {1, 0, 0x0c, 0xcc, 0xcc, 0xcd}} {
		r := newRig(t, vnic("a"), up("u"))
		f := eth(dst, portMAC(1))
		r.dropped(r.send("a", f), abi.ReasonGuestBPDU)
		r.change(func(r *rig) { r.sw.BlockGuestBPDU = false })
		r.delivered(r.send("a", f), f, "u")
	}
}

// A guest's link control passes where its port's list names the protocol: every address × every type × every list.
func TestS97_D13_GuestLinkControlPassesByItsList(t *testing.T) {
	types := []uint16{0x8808, 0x8809, 0x88cc, 0x888e, 0x88f7, 0x0800, 0x0026}
	for _, list := range append([][]string{nil, spec.LinkControls()}, [][]string{{"lacp"}, {"lldp"}, {"eapol"}, {"ptp"},
		{"cdp"}, {"bpdu"}}...) {
		r := newRig(t, vnic("a", policy(func(e *plan.Effective) { e.GuestLinkControl.V = list })), vnic("b"), up("u"))
		for last := range byte(0x11) {
			for _, typ := range types {
				word := map[[2]uint16]string{{0x02, 0x8809}: "lacp", {0x03, 0x88cc}: "lldp", {0x0e, 0x88cc}: "lldp",
					{0x0e, 0x88f7}: "ptp"}[[2]uint16{uint16(last), typ}]
				reason := abi.ReasonGuestLinkControl
				switch {
				case last == 0:
					word, reason = "bpdu", abi.ReasonGuestBPDU
				case typ == 0x888e:
					word = "eapol"
				}
				f := eth(plan.MAC{1, 0x80, 0xc2, 0, 0, last}, portMAC(1), binary.BigEndian.AppendUint16(nil, typ))
				if last == 0x10 || slices.Contains(list, word) {
					r.delivered(r.send("a", f), f, "b", "u")
				} else {
					r.dropped(r.send("a", f), reason)
				}
			}
		}
		for last, word := range map[byte]string{0xcc: "cdp", 0xcd: "bpdu"} {
			f := eth(plan.MAC{1, 0, 0x0c, 0xcc, 0xcc, last}, portMAC(1), []byte{0, 0x26})
			if slices.Contains(list, word) {
				r.delivered(r.send("a", f), f, "b", "u")
			} else {
				r.dropped(r.send("a", f), map[string]abi.Reason{"cdp": abi.ReasonGuestLinkControl,
					"bpdu": abi.ReasonGuestBPDU}[word])
			}
		}
	}
}

func TestS37_D13_LinkLocalFromAnUplinkIsTheHosts(t *testing.T) {
	r := newRig(t, vnic("a", promiscuous), up("u", func(u *plan.Uplink, _ *plan.Fact) { u.Blocked = true }))
	for _, dst := range []plan.MAC{{1, 0x80, 0xc2, 0, 0, 0}, {1, 0x80, 0xc2, 0, 0, 0x0f},
		{1, 0, 0x0c, 0xcc, 0xcc, 0xcc}, {1, 0, 0x0c, 0xcc, 0xcc, 0xcd}} {
		f := eth(dst, m(9))
		r.delivered(r.send("u", f), f, "host")
	}
	r = newRig(t, vnic("a"), up("u"))
	f := eth(plan.MAC{1, 0x80, 0xc2, 0, 0, 0x10}, m(9))
	r.delivered(r.send("u", f), f, "a", "host")
}

// What the physical switch says by a protocol that a guest may speak reaches the guest, besides the host: every address
// × every type × every list.
func TestS170_AGuestHearsWhatItMaySpeak(t *testing.T) {
	for _, list := range append([][]string{nil, spec.LinkControls()}, [][]string{{"lacp"}, {"lldp"}, {"eapol"}, {"ptp"},
		{"cdp"}, {"bpdu"}}...) {
		r := newRig(t, vnic("a", policy(func(e *plan.Effective) { e.GuestLinkControl.V = list })), vnic("b"), up("u"))
		hears := func(dst plan.MAC, typ uint16, word string) {
			f := eth(dst, m(9), binary.BigEndian.AppendUint16(nil, typ))
			if slices.Contains(list, word) {
				r.delivered(r.send("u", f), f, "a", "host")
			} else {
				r.delivered(r.send("u", f), f, "host")
			}
		}
		for last := range byte(0x10) {
			for _, typ := range []uint16{0x8808, 0x8809, 0x88cc, 0x888e, 0x88f7, 0x0800, 0x0026} {
				word := map[[2]uint16]string{{0x02, 0x8809}: "lacp", {0x03, 0x88cc}: "lldp", {0x0e, 0x88cc}: "lldp",
					{0x0e, 0x88f7}: "ptp"}[[2]uint16{uint16(last), typ}]
				switch {
				case last == 0:
					word = "bpdu"
				case typ == 0x888e:
					word = "eapol"
				}
				hears(plan.MAC{1, 0x80, 0xc2, 0, 0, last}, typ, word)
			}
		}
		hears(plan.MAC{1, 0, 0x0c, 0xcc, 0xcc, 0xcc}, 0x26, "cdp")
		hears(plan.MAC{1, 0, 0x0c, 0xcc, 0xcc, 0xcd}, 0x26, "bpdu")
	}
}

// Such a copy is one like any other: only in the guest's segment, by the uplink that it uses, and while it may receive.
func TestS170_ACopyOfLinkControlHasTheRulesOfCopies(t *testing.T) {
	lldp := policy(func(e *plan.Effective) { e.GuestLinkControl.V = []string{"lldp"} })
	to, typ := plan.MAC{1, 0x80, 0xc2, 0, 0, 0x0e}, []byte{0x88, 0xcc}
	r := newRig(t, vnic("a", lldp), vnic("b", lldp, access(10)), up("u1"), up("u2")) // a uses u2, b uses u1
	f := eth(to, m(9), typ)
	r.delivered(r.send("u2", f), f, "a", "host")
	tagged := slices.Insert(slices.Clone(f), 12, 0x81, 0, 0, 10)
	r.expect(r.send("u1", tagged), outcome{copies: map[string][]byte{"b": f, "host": tagged}})
	r.expect(r.send("u1", f), outcome{copies: map[string][]byte{"host": f},
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
	r.change(func(r *rig) { r.fact("a", func(f *plan.Fact) { f.Up = false }) })
	r.expect(r.send("u2", f), outcome{copies: map[string][]byte{"host": f},
		refused: map[string]abi.Reason{"a": abi.ReasonReceiverDown}})
	r = newRig(t, vnic("a", lldp), up("u", func(u *plan.Uplink, _ *plan.Fact) { u.Blocked = true }))
	r.delivered(r.send("u", f), f, "host")
}

func TestS38_D18_ReflectedBroadcastOnAnotherUplinkIsRefused(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", team(spec.IPHash, []string{"u1", "u2"}, nil)), up("u1"), up("u2"))
	f := eth(all, m(9))
	r.expect(r.send("u1", f), outcome{copies: map[string][]byte{"b": f, "host": f},
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
	r.delivered(r.send("u2", f), f, "a", "b", "host")
	r.change(func(r *rig) { r.fact("u2", func(f *plan.Fact) { f.Up = false }) })
	r.delivered(r.send("u1", f), f, "a", "b", "host")
	r.change(func(r *rig) { r.fact("u1", func(f *plan.Fact) { f.Up = false }) })
	r.expect(r.send("u1", f), outcome{copies: map[string][]byte{"b": f, "host": f},
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
}

func TestS38_D18_SourceMACTeamExpectsTheUplinkItWouldAnswerBy(t *testing.T) {
	byMAC := team(spec.SourceMAC, []string{"u1", "u2"}, nil)
	r := newRig(t, vnic("a", byMAC, promiscuous, learning), up("u1"), up("u2")) // MAC 02::1: u2
	f := eth(all, m(9))
	r.expect(r.send("u1", f), outcome{copies: map[string][]byte{"host": f},
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
	g := eth(m(2), m(9)) // a guest's guest with an even MAC answers by u1
	r.delivered(r.send("u1", g), g, "a")
	r.expect(r.send("u2", g), outcome{reason: abi.ReasonReversePath,
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
}

func TestS39_FloodedUnicastFromTwoUplinksArrivesOnce(t *testing.T) {
	r := newRig(t, vnic("a", promiscuous), up("u1"), up("u2"))
	f := eth(m(1), m(9))
	r.expect(r.send("u1", f), outcome{reason: abi.ReasonReversePath,
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
	r.delivered(r.send("u2", f), f, "a")
	g := eth(portMAC(1), m(9)) // the known receiver is never suppressed
	r.delivered(r.send("u1", g), g, "a")
}

func TestS40_WithTheCheckOffItArrivesTwice(t *testing.T) {
	r := newRig(t, vnic("a", promiscuous), up("u1"), up("u2"),
		set(func(s *plan.Switch) { s.ReversePathPromiscuous = false }))
	f := eth(m(1), m(9))
	r.delivered(r.send("u1", f), f, "a")
	r.delivered(r.send("u2", f), f, "a")
	g := eth(all, m(9)) // the other check continues
	r.expect(r.send("u1", g), outcome{copies: map[string][]byte{"host": g},
		refused: map[string]abi.Reason{"a": abi.ReasonReversePath}})
}

func TestS91_OurOwnFrameComingBackIsRefused(t *testing.T) {
	r := newRig(t, vnic("a", promiscuous), vnic("b", promiscuous), up("u"))
	r.send("a", eth(m(1), m(7)))
	back := eth(m(1), m(7))
	both := map[string]abi.Reason{"a": abi.ReasonReflected, "b": abi.ReasonReflected}
	r.now += 999 * time.Millisecond
	r.expect(r.send("u", back), outcome{reason: abi.ReasonReflected, refused: both})
	r.expect(r.send("u", eth(all, m(7))), outcome{copies: map[string][]byte{"host": eth(all, m(7))}, refused: both})
	r.delivered(r.send("u", tagged(eth(all, m(7)), typeQ, 9)), tagged(eth(all, m(7)), typeQ, 9), "host")
	owned := eth(portMAC(2), m(7)) // a copy for the known receiver is its own, a promiscuous copy is not
	r.expect(r.send("u", owned), outcome{copies: map[string][]byte{"b": owned},
		refused: map[string]abi.Reason{"a": abi.ReasonReflected}})
	r.now += time.Millisecond
	r.delivered(r.send("u", back), back, "a", "b")
}

func TestS91_D14_GroupsAndCopiesOfUnicastHaveASettingEach(t *testing.T) {
	group, unicast := eth(all, portMAC(1)), eth(m(1), portMAC(1))
	refused := map[string]abi.Reason{"a": abi.ReasonReflected}
	for name, c := range map[string]struct {
		off            func(*plan.Switch)
		group, unicast outcome
	}{
		"groups": {func(s *plan.Switch) { s.ReversePath = false },
			outcome{copies: map[string][]byte{"a": group, "host": group}}, outcome{reason: abi.ReasonReflected,
				refused: refused}},
		"copies of unicast": {func(s *plan.Switch) { s.ReversePathPromiscuous = false },
			outcome{copies: map[string][]byte{"host": group}, refused: refused},
			outcome{copies: map[string][]byte{"a": unicast}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vnic("a", promiscuous), up("u"), set(c.off))
			r.send("a", unicast)
			r.expect(r.send("u", group), c.group)
			r.expect(r.send("u", unicast), c.unicast)
		})
	}
}

func TestS91_ASwitchWithoutUplinksMarksNothing(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", promiscuous))
	r.send("a", eth(all, m(7)))
	r.change(func(r *rig) {
		up("u")(r)
		for _, p := range r.sw.Ports {
			p.Policy.Teaming.Active.V = []string{"u"}
		}
	})
	f := eth(m(1), m(7))
	r.delivered(r.send("u", f), f, "b")
}

func TestS94_D15_OneDispositionAndAReasonForEveryCopy(t *testing.T) {
	r := newRig(t, vnic("a"), vnic("b", blocked), vnic("c", fact(func(f *plan.Fact) { f.Up = false })), up("u", down))
	refused := map[string]abi.Reason{"b": abi.ReasonReceiverBlocked, "c": abi.ReasonReceiverDown,
		"": abi.ReasonNoUplink}
	// the lowest number
	r.expect(r.send("a", eth(all, portMAC(1))), outcome{reason: abi.ReasonNoUplink, refused: refused})
	r = newRig(t, vnic("a"))
	r.dropped(r.send("a", eth(all, portMAC(1))), abi.ReasonNoReceiver)
	r.dropped(r.send("a", eth(m(1), portMAC(1))), abi.ReasonUnknownUnicast)
	if c := r.counters("a"); c.PacketsInDropped != 2 || c.Delivered != 0 || c.PacketsInBroadcast != 1 ||
		c.PacketsInUnicast != 1 {
		t.Errorf("counters %+v", c)
	}
}

func TestS96_TheHostGetsWhatIsItsWhateverTheSwitchDecides(t *testing.T) {
	narrow := func(u *plan.Uplink, f *plan.Fact) { u.VLANs = plan.VLANSet{}; f.MTU = 9000 }
	r := newRig(t, vnic("a", promiscuous), up("u"), up("blocked", func(u *plan.Uplink, _ *plan.Fact) {
		u.Blocked = true
	}), up("narrow", narrow))
	f := eth(uplinkMAC(1), m(9))
	r.delivered(r.send("u", f), f, "host") // and no promiscuous port
	for n, at := range []string{"blocked", "narrow"} {
		g := tagged(eth(all, m(9)), typeQ, 5)
		r.delivered(r.send(at, g), g, "host")
		g = eth(uplinkMAC(n+2), m(9))
		r.delivered(r.send(at, g), g, "host")
	}
	long := append(eth(uplinkMAC(1), m(9)), make([]byte, 2000)...)
	r.delivered(r.send("u", long), long, "host")
	if c := r.counters("u"); c.PacketsToHost != 2 || c.Delivered != 2 || c.PacketsInDropped != 0 {
		t.Errorf("counters %+v", c)
	}
}

func TestS96_D16_APortThatOwnsTheDevicesMACGetsItsUnicast(t *testing.T) {
	owns := func(p *plan.Port, f *plan.Fact) { p.InitialMAC, f.SeenMAC = uplinkMAC(1), uplinkMAC(1) }
	r := newRig(t, vnic("vmk0", owns, access(10)), up("u"))
	f := eth(uplinkMAC(1), m(9))
	r.delivered(r.send("u", tagged(f, typeQ, 10)), f, "vmk0")
	r.delivered(r.send("u", f), f, "host") // another segment: the port does not get it
	r.change(func(r *rig) { r.sw.Uplinks[0].Blocked = true })
	r.delivered(r.send("u", tagged(f, typeQ, 10)), tagged(f, typeQ, 10), "host")
	r.change(func(r *rig) { r.sw.Uplinks[0].Blocked = false; r.fact("vmk0", func(f *plan.Fact) { f.Up = false }) })
	r.expect(r.send("u", tagged(f, typeQ, 10)), outcome{reason: abi.ReasonReceiverDown,
		refused: map[string]abi.Reason{"vmk0": abi.ReasonReceiverDown}})
}
