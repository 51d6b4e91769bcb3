package trace

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// answerHost has a pair that talks, a port in another VLAN, one that is blocked, one under the address guard with IPv4
// alone, and one without its device.
func answerHost(t *testing.T) *Host {
	t.Helper()
	h := host(t, config("uplinks: [{name: u1, device: p1, vlans: [\"0-29\"]}]",
		"{name: web, vlan: {access: 10}}\n{name: db, vlan: {access: 20}}\n{name: far, vlan: {access: 30}}\n"+
			"{name: kept, vlan: {access: 10}, security: {addressGuard: {enabled: true}}}",
		"vm1 web", "vm2 web", "vm3 db", "vm4 web blocked: true", "vm5 far", "vm6 web",
		"vm7 kept security: {addressGuard: {addresses: [192.0.2.7]}}"))
	delete(h.Facts, id("vm6"))
	h.Waiting[id("vm6")] = problem.Problem{Code: problem.DeviceMissing, Device: "dev-vm6"}
	return h
}

func TestTheAnswerIsOneSentence(t *testing.T) {
	const edit = "set security: {forgedTransmits: accept} in port group web of switch lab"
	forged := ptr(mac(0x77))
	frame := func(dst plan.MAC) []byte {
		return slices.Concat(dst[:], []byte{2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, 46))
	}
	for name, x := range map[string]struct {
		q    diagnose.Request
		want diagnose.Answer
	}{
		"talk": {diagnose.Request{From: "vm1", To: "vm2"},
			diagnose.Answer{Verdict: diagnose.Yes, Text: "vm1 reaches vm2: on this host"}},
		"uplink": {diagnose.Request{From: "vm1", To: "u1"},
			diagnose.Answer{Verdict: diagnose.Yes, Text: "vm1 reaches u1: leaves by u1, VLAN 10"}},
		"from an uplink": {diagnose.Request{From: "u1", To: "vm3"},
			diagnose.Answer{Verdict: diagnose.Yes, Text: "u1 reaches vm3: on this host"}},
		"other VLAN": {diagnose.Request{From: "vm1", To: "vm3"}, diagnose.Answer{Verdict: diagnose.No,
			Text: "vm1 does not reach vm3 because the frame is in VLAN 10, and the port is access 20, as set by the " +
				"port group db (other-vlan)", Reason: "other-vlan",
			Fix: "set portGroup: web in port vm3"}},
		"blocked sender": {diagnose.Request{From: "vm4", To: "vm1"}, diagnose.Answer{Verdict: diagnose.No,
			Text: "vm4 does not reach vm1: the ARP request is dropped at vm4 because port vm4 is blocked, as set by " +
				"the port vm4 (port-blocked)", Reason: "port-blocked", Fix: "set blocked: false in port vm4"}},
		"no device": {diagnose.Request{From: "vm1", To: "vm6"}, diagnose.Answer{Verdict: diagnose.No,
			Text:   "port vm6 is not connected: there is no device dev-vm6; it is connected when it appears",
			Reason: "not-connected", Fix: "make the device dev-vm6, or correct its name"}},
		"sender without device": {diagnose.Request{From: "vm6", Frame: to(mac(1), diagnose.Fields{})},
			diagnose.Answer{Verdict: diagnose.No,
				Text:   "port vm6 is not connected: there is no device dev-vm6; it is connected when it appears",
				Reason: "not-connected", Fix: "make the device dev-vm6, or correct its name"}},
		"forged": {diagnose.Request{From: "vm1", To: "vm2", Frame: &diagnose.Fields{SrcMAC: forged}},
			diagnose.Answer{Verdict: diagnose.No, Text: "vm1 does not reach vm2: the frame is dropped at vm1 because " +
				"the source 02:00:00:00:00:77 is not the port's MAC 02:00:00:00:00:01 (forged-transmit)",
				Reason: "forged-transmit", Fix: edit}},
		"forged to nobody": {diagnose.Request{From: "vm1", Frame: to(mac(2), diagnose.Fields{SrcMAC: forged})},
			diagnose.Answer{Verdict: diagnose.No, Text: "nobody gets the frame: the frame is dropped at vm1 because " +
				"the source 02:00:00:00:00:77 is not the port's MAC 02:00:00:00:00:01 (forged-transmit)",
				Reason: "forged-transmit", Fix: edit}},
		"frame": {diagnose.Request{From: "vm1", To: "vm2", Frame: &diagnose.Fields{VLAN: nil, Length: 100}},
			diagnose.Answer{Verdict: diagnose.Yes, Text: "vm1 reaches vm2: it gets the frame, untagged, 100 bytes"}},
		"to everybody": {diagnose.Request{From: "vm1", Frame: to(broadcast, diagnose.Fields{})},
			diagnose.Answer{Verdict: diagnose.Yes, Text: "the frame is delivered to vm2, vm7, u1 (VLAN 10)"}},
		"uplink lacks the VLAN": {diagnose.Request{From: "vm5", Frame: to(broadcast, diagnose.Fields{})},
			diagnose.Answer{Verdict: diagnose.No, Text: "nobody gets the frame: not u1 because the uplink carries " +
				"0-29, and not VLAN 30 (uplink-vlan)", Reason: "uplink-vlan",
				Fix: `set vlans: ["0-30"] in uplink u1 of switch lab`}},
		"several": {diagnose.Request{From: "vm1", Frames: [][]byte{frame(mac(2)), frame(mac(3)), frame(mac(2))}},
			diagnose.Answer{Verdict: diagnose.Yes, Text: "3 of 3 frames are delivered"}},
		"several to one": {diagnose.Request{From: "vm1", To: "vm2",
			Frames: [][]byte{frame(mac(2)), frame(mac(9)), frame(broadcast), frame(mac(1))}},
			diagnose.Answer{Verdict: diagnose.No, Text: "2 of 4 frames reach vm2; the others do not: " +
				"1 not-addressed, 1 own-destination", Reason: "not-addressed",
				Fix: "send to the port's address; for addresses behind " +
					"the port, set `security: {macLearning: {enabled: true}}` on its port group"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := run(t, answerHost(t), x.q).Answer; got != x.want {
				t.Errorf("got  %+v\nwant %+v", got, x.want)
			}
		})
	}
}

// TestOneFamilyOfAddressesIsEnough: a port that lists only its IPv4 address can talk with it, and with the link-local
// address derived from its MAC.
func TestOneFamilyOfAddressesIsEnough(t *testing.T) {
	r := run(t, answerHost(t), diagnose.Request{From: "vm7", To: "vm1"})
	if r.Answer.Verdict != diagnose.Yes || r.Answer.Text != "vm7 reaches vm1: on this host" {
		t.Errorf("%+v", r.Answer)
	}
	talk := &diagnose.Talk{
		Protocols: []diagnose.Protocol{{Name: "ARP", Verdict: diagnose.Yes}, {Name: "IPv4", Verdict: diagnose.Yes},
			{Name: "IPv6", Verdict: diagnose.No}},
		Hops: []diagnose.Hop{{Protocol: "IPv6", Frame: "solicitation", From: "a", To: "b", Verdict: diagnose.No,
			Reason: "mtu-exceeded"}},
		Causes: []diagnose.Cause{{Reason: "mtu-exceeded", Port: "b", Why: "It is too long."}},
	}
	const want = "a reaches b by IPv4, not by IPv6 because it is too long (mtu-exceeded)"
	if a := talkAnswer(talk, "a", "b"); a.Verdict != diagnose.Yes || a.Text != want {
		t.Errorf("%+v", a)
	}
}

// TestFramesThatDoNotReachTheSwitchAreANo: the answer is no, whatever the tables would do with them.
func TestFramesThatDoNotReachTheSwitchAreANo(t *testing.T) {
	h := answerHost(t)
	h.Waiting[id("vm1")] = problem.Problem{Code: problem.NoDevice}
	a := run(t, h, diagnose.Request{From: "vm1", To: "vm2"}).Answer
	if a.Verdict != diagnose.No || !strings.HasPrefix(a.Text, "frames of port vm1 do not reach the switch: ") {
		t.Errorf("%+v", a)
	}
}

func TestEndsAreNamedByTheirAddresses(t *testing.T) {
	text := config("uplinks: [{name: u1, device: p1}]", "{name: web, vlan: {access: 10}}\n{name: nest, vlan: {access: "+
		"10}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}", "vm1 web", "vm2 web",
		"vm3 nest", "vm4 web security: {addressGuard: {addresses: [192.0.2.4, 192.0.2.44, 198.51.100.0/24]}}",
		"vm5 web security: {addressGuard: {addresses: [192.0.2.44]}}",
		"vmk6 web role: host, addresses: [203.0.113.6/24]")
	for _, x := range []struct{ from, port, note string }{
		{"02:00:00:00:00:01", "vm1", "02:00:00:00:00:01 is at port vm1: the port's own MAC"},
		{"02-00-00-00-00-88", "vm3", "02-00-00-00-00-88 is at port vm3: learned there"},
		{"192.0.2.4", "vm4", "192.0.2.4 is at port vm4: listed there for the address guard"},
		{"::ffff:192.0.2.4", "vm4", "is at port vm4: listed there for the address guard"},
		{"198.51.100.9", "vm4", "198.51.100.9 is at port vm4: of a prefix that is listed there for the address guard"},
		{"203.0.113.6", "vmk6", "203.0.113.6 is at port vmk6: the host port's address"},
		{"fe80::ff:fe00:1", "vm1", "fe80::ff:fe00:1 is at port vm1: the link-local address of its MAC"},
		{"192.0.2.1", "vm1", "192.0.2.1 is at port vm1: flows come from it"},
		{"192.0.2.200", "u1", "192.0.2.200 is at uplink u1: flows come in from it"},
		{"192.0.2.88", "vm3", "192.0.2.88 is at port vm3: the host's neighbour"},
		{"192.0.2.55", "vm5", "192.0.2.55 is at port vm5: frames in its name were refused there"},
		{"192.0.2.44", "", "192.0.2.44 is at vm4 and vm5: say which port"},
		{"02:00:00:00:00:99", "", "no port has the MAC 02:00:00:00:00:99, and none has learned it; the MACs of this " +
			"host: heddle mac list"},
		{"10.0.0.9", "", "it is not known which port has 10.0.0.9: it is no host port's address and no neighbour of " +
			"the host, nor one of those that 2 ports list for the address guard, and no metered flow comes from it; " +
			"give the port (heddle port " +
			"list) or its MAC (heddle mac list)"},
		{"vm9", "", "there is no port or uplink vm9; there are u1, vm1, vm2, vm3, vm4, vm5, vmk6"},
	} {
		t.Run(x.from, func(t *testing.T) {
			h := host(t, text)
			h.Learned = append(h.Learned, model.MAC{Port: id("vm3"), Segment: model.Segment{VLAN: 10}, MAC: mac(0x88),
				Seen: h.Now})
			h.Metered = true
			h.Seen = []Seen{{At: id("vm1"), MAC: mac(1), Addr: addr("192.0.2.1")},
				{At: id("u1"), MAC: mac(0xee), Addr: addr("192.0.2.1")},
				{At: id("u1"), MAC: mac(0xee), Addr: addr("192.0.2.200")}}
			h.Neighbours = []Seen{{MAC: mac(0x88), Addr: addr("192.0.2.88")}, {MAC: mac(0xab), Addr: addr("10.0.0.9")}}
			h.Refused = []Seen{{At: id("vm5"), MAC: mac(5), Addr: addr("192.0.2.55")}}
			r, err := Run(h, diagnose.Request{From: x.from, To: "vm2"})
			if x.port == "" {
				if err == nil || err.Error() != x.note {
					t.Errorf("%v, want %s", err, x.note)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.From != "lab/"+x.port || !strings.Contains(strings.Join(r.Notes, "\n"), x.note) ||
				r.Answer.Verdict != diagnose.Yes {
				t.Errorf("%s, %+v, notes %q, want %s", r.From, r.Answer, r.Notes, x.note)
			}
		})
	}
}

// TestAnEndThatIsNamedByAnAddressSendsWithIt: the frames have that MAC or IP address.
func TestAnEndThatIsNamedByAnAddressSendsWithIt(t *testing.T) {
	text := config("", "{name: nest, vlan: {access: 10}, security: {forgedTransmits: accept, macLearning: {enabled: "+
		"true}}}", "vm1 nest", "vm2 nest security: {addressGuard: {addresses: [192.0.2.22]}}")
	h := host(t, text)
	h.Learned = append(h.Learned, model.MAC{Port: id("vm1"), Segment: model.Segment{VLAN: 10}, MAC: mac(0x88),
		Seen: h.Now})
	r := run(t, h, diagnose.Request{From: mac(0x88).String(), To: "vm2",
		Frame: &diagnose.Fields{IP: &diagnose.Addresses{Dst: addr("192.0.2.22")}}})
	if got := r.Frames[0].Summary; !strings.HasPrefix(got, "02:00:00:00:00:88 → 02:00:00:00:00:02, ") {
		t.Errorf("from a learned MAC: %s", got)
	}
	r = run(t, h, diagnose.Request{From: "192.0.2.22", To: mac(0x88).String(),
		Frame: &diagnose.Fields{IP: &diagnose.Addresses{Dst: addr("192.0.2.1")}}})
	if got := r.Frames[0].Summary; !strings.HasPrefix(got,
		"02:00:00:00:00:02 → 02:00:00:00:00:88, IPv4 192.0.2.22 → 192.0.2.1") {
		t.Errorf("from a listed address: %s", got)
	}
}
