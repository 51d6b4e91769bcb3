package trace

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// knows has the live tunnel know of one address, and of that of 10.0.0.1, which is behind a port here.
func knows(h *Host, a netip.Addr, heard *model.Heard, told *model.Told) *Host {
	k := h.Known["lab"]
	k.Bound = func(at overlay.Address) (*model.Heard, *model.Told) {
		if at == (overlay.Address{VNI: 10, IP: ip("10.0.0.1")}) {
			return &model.Heard{MAC: mac(1), Here: true, Seen: time.Hour - time.Minute}, nil
		}
		if at != (overlay.Address{VNI: 10, IP: a}) {
			return nil, nil
		}
		return heard, told
	}
	h.Known["lab"] = k
	return h
}

// arpFrame is an ARP packet for all; operation 1 asks, 2 answers.
func arpFrame(operation byte, source, sender plan.MAC, from, target string) []byte {
	return slices.Concat(broadcast[:], source[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, operation}, sender[:],
		ip(from).AsSlice(), make([]byte, 6), ip(target).AsSlice(), make([]byte, 18))
}

// solicitation asks for an IPv6 address.
func solicitation(source plan.MAC, from, target string) []byte {
	all := ip("ff02::1:ff00:9")
	return slices.Concat([]byte{0x33, 0x33, 0xff, 0, 0, 9}, source[:],
		[]byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255}, ip(from).AsSlice(), all.AsSlice(),
		[]byte{135, 0, 0, 0, 0, 0, 0, 0}, ip(target).AsSlice(), []byte{1, 1}, source[:])
}

// tunnelSteps are the texts of what the tunnel does.
func tunnelSteps(f *diagnose.Frame) (texts []string) {
	for _, s := range f.Steps {
		if s.Stage == stageTunnel {
			texts = append(texts, s.Text)
		}
	}
	return texts
}

// TestS85_ATraceSaysWhatTheTunnelHearsAndAnswers: whose address a packet says its sender's to be and what becomes of
// that, and whether and why others are asked.
func TestS85_ATraceSaysWhatTheTunnelHearsAndAnswers(t *testing.T) {
	const ago = time.Hour - 7*time.Second
	nine := ip("10.0.0.9")
	question := arpFrame(1, mac(1), mac(1), "10.0.0.1", "10.0.0.9")
	claim := arpFrame(1, mac(1), mac(1), "10.0.0.9", "10.0.0.9")
	heardAsker := "this host hears in VNI 10 that 10.0.0.1 still belongs to 02:00:00:00:00:01"
	others := []string{"in VNI 10 from 192.0.2.1 to 198.51.100.2 (host2): a host of the segment",
		"in VNI 10 from 192.0.2.1 to 198.51.100.3 (host3): a host of the segment"}
	for _, c := range []struct {
		name   string
		frame  []byte
		heard  *model.Heard
		told   *model.Told
		want   []string // without the packets to other hosts
		asks   bool     // other hosts get it
		reason string
	}{
		{"heard", question, &model.Heard{MAC: mac(9), Seen: ago}, nil, []string{heardAsker,
			"this host answers in VNI 10: 10.0.0.9 belongs to 02:00:00:00:00:09 (the owner was heard 7s ago)",
			"vm1 gets the answer"}, false, "neighbour-answered"},
		{"told", question, nil, &model.Told{MAC: mac(9), Seen: ago}, []string{heardAsker,
			"this host answers in VNI 10: 10.0.0.9 belongs to 02:00:00:00:00:09 (the controllers say so)",
			"vm1 gets the answer"}, false, "neighbour-answered"},
		{"here", question, &model.Heard{MAC: mac(2), Here: true, Seen: time.Hour - time.Second}, nil,
			[]string{heardAsker, "no other host is asked in VNI 10: 10.0.0.9 belongs to 02:00:00:00:00:02 behind a " +
				"port of this host (the owner was heard 1s ago)"}, false, "neighbour-here"},
		{"nobody", question, nil, nil, []string{heardAsker,
			"other hosts are asked in VNI 10 who has 10.0.0.9: this host does not know"}, true, ""},
		{"too old", question, &model.Heard{MAC: mac(9), Seen: time.Minute}, nil, []string{heardAsker,
			"other hosts are asked in VNI 10 who has 10.0.0.9: this host does not know"}, true, ""},
		{"contested", question, &model.Heard{MAC: mac(9), Rival: mac(8), Seen: ago, Contested: time.Hour + time.Minute},
			nil, []string{heardAsker, "other hosts are asked in VNI 10 who has 10.0.0.9: it is contested, as " +
				"02:00:00:00:00:09 and 02:00:00:00:00:08 both claim it"}, true, ""},
		{"the asker's", question, &model.Heard{MAC: mac(1), Seen: ago}, nil, []string{heardAsker,
			"other hosts are asked in VNI 10 who has 10.0.0.9: as far as this host knows, the asker itself"}, true, ""},
		{"an asker that was not heard before", arpFrame(1, mac(1), mac(1), "10.0.0.2", "10.0.0.9"),
			&model.Heard{MAC: mac(9), Seen: ago}, nil, []string{
				"this host hears in VNI 10 that 10.0.0.2 belongs to 02:00:00:00:00:01",
				"other hosts are asked in VNI 10 who has 10.0.0.9, though this host knows that 02:00:00:00:00:09 has " +
					"it: by the question they hear that 10.0.0.2 belongs to 02:00:00:00:00:01 now"}, true, ""},
		{"a new address", claim, nil, nil, []string{
			"this host hears in VNI 10 that 10.0.0.9 belongs to 02:00:00:00:00:01"}, true, ""},
		{"its own address again", claim, &model.Heard{MAC: mac(1), Seen: ago}, nil, []string{
			"this host hears in VNI 10 that 10.0.0.9 still belongs to 02:00:00:00:00:01"}, true, ""},
		{"another's address", claim, &model.Heard{MAC: mac(9), Seen: ago}, nil, []string{
			"this host hears in VNI 10 that 10.0.0.9 belongs to 02:00:00:00:00:01 from now on, and no longer to " +
				"02:00:00:00:00:09",
			"that is not sure until 02:00:00:00:00:01 answers a question: questions for 10.0.0.9 pass to all hosts"},
			true, ""},
		{"not sure", question, &model.Heard{MAC: mac(8), Rival: mac(9), Seen: ago,
			Doubt: model.Doubt{Unverified: true}}, nil, []string{heardAsker, "other hosts are asked in VNI 10 who " +
			"has 10.0.0.9: it is not sure that 02:00:00:00:00:08 has it, which has not answered a question since " +
			"that was in doubt"}, true, ""},
		{"an address that was its own a moment ago", claim,
			&model.Heard{MAC: mac(9), Rival: mac(1), Seen: ago, Changed: time.Hour - time.Second}, nil, []string{
				"this host hears in VNI 10 that 10.0.0.9 belongs to 02:00:00:00:00:01 from now on, and no longer to " +
					"02:00:00:00:00:09",
				"10.0.0.9 is contested: for 5m0s this host answers for nobody who is asked for it"}, true, ""},
		{"in another's name", arpFrame(2, mac(1), mac(9), "10.0.0.9", "10.0.0.1"), nil, nil, []string{
			"this host believes nothing that the packet says of addresses: the MAC in it is not 02:00:00:00:00:01, " +
				"the frame's source"}, true, ""},
		{"a probe", arpFrame(1, mac(1), mac(1), "0.0.0.0", "10.0.0.9"), &model.Heard{MAC: mac(9), Seen: ago}, nil, nil,
			true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := knows(overlayHost(t, 1600), nine, c.heard, c.told)
			f := &run(t, h, diagnose.Request{From: "vm1", Frames: [][]byte{c.frame}}).Frames[0]
			if c.asks {
				c.want = append(c.want, others...)
			}
			if got := tunnelSteps(f); !slices.Equal(got, c.want) {
				t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			causes := []string{}
			for _, cause := range f.Causes {
				causes = append(causes, cause.Reason)
			}
			if c.reason != "" != (len(causes) == 1 && causes[0] == c.reason) {
				t.Errorf("causes %s, want %q", causes, c.reason)
			}
		})
	}
}

// TestS85_ATraceSaysWhyARouterIsAskedItself: of an IPv6 owner that was heard to ask, and has not advertised itself.
func TestS85_ATraceSaysWhyARouterIsAskedItself(t *testing.T) {
	h := knows(overlayHost(t, 1600), ip("fd00::9"), &model.Heard{MAC: mac(9), Seen: time.Hour - time.Second}, nil)
	ask := solicitation(mac(1), "fd00::1", "fd00::9")
	f := &run(t, h, diagnose.Request{From: "vm1", Frames: [][]byte{ask}}).Frames[0]
	const want = "other hosts are asked in VNI 10 who has fd00::9: 02:00:00:00:00:09, which has not said yet whether " +
		"it is a router"
	if got := tunnelSteps(f); len(got) != 4 || got[1] != want {
		t.Errorf("%q", got)
	}
}

// TestS85_ATraceKnowsTheSharesOfOneMAC: the answers of a second, and the new addresses.
func TestS85_ATraceKnowsTheSharesOfOneMAC(t *testing.T) {
	h := knows(overlayHost(t, 1600), ip("10.0.0.9"), &model.Heard{MAC: mac(9), Seen: time.Hour - time.Second}, nil)
	list := slices.Repeat([][]byte{arpFrame(1, mac(1), mac(1), "10.0.0.1", "10.0.0.9")}, abi.AnswersPerSecond+1)
	f := &run(t, h, diagnose.Request{From: "vm1", Frames: list, Packet: len(list)}).Frames[0]
	const limit = "nobody answers or is asked in VNI 10: 10.0.0.9 belongs to 02:00:00:00:00:09 (the owner was heard " +
		"1s ago), but the asker has had 200 answers within a second"
	if got := tunnelSteps(f); len(got) != 2 || got[1] != limit {
		t.Errorf("%q", got)
	}
	list = nil
	for n := range abi.BindingsPerSecond + 1 {
		a := netip.AddrFrom4([4]byte{10, 0, 1, byte(n)}).String()
		list = append(list, arpFrame(1, mac(1), mac(1), a, a))
	}
	list[abi.BindingsPerSecond] = arpFrame(1, mac(1), mac(1), "10.0.0.9", "10.0.0.9")
	list = append(list, arpFrame(1, mac(1), mac(1), "10.0.1.1", "10.0.0.9"))
	f = &run(t, h, diagnose.Request{From: "vm1", Frames: list, Packet: len(list) - 1}).Frames[0]
	want := []string{"this host does not believe that 10.0.0.9 belongs to 02:00:00:00:00:01, which has named 64 new " +
		"addresses within a second", "10.0.0.9 is contested: for 5m0s this host answers for nobody who is asked for it"}
	if got := tunnelSteps(f); len(got) != 4 || !slices.Equal(got[:2], want) {
		t.Errorf("%q", got)
	}
	f = &run(t, h, diagnose.Request{From: "vm1", Frames: list, Packet: len(list)}).Frames[0]
	const asked = "other hosts are asked in VNI 10 who has 10.0.0.9: it is contested since a MAC claimed it that " +
		"named too many new addresses"
	if got := tunnelSteps(f); len(got) != 4 || got[1] != asked {
		t.Errorf("%q", got)
	}
}

// TestS85_S108_ATraceOfWhatAGuardDropsTellsOfNoBinding: the guard says why, and the tunnel hears nothing.
func TestS85_S108_ATraceOfWhatAGuardDropsTellsOfNoBinding(t *testing.T) {
	guarded := func() *Host {
		return overlayWith(t, 1600, "{name: web, overlay: {vni: 10}, security: {addressGuard: {enabled: true}}}",
			"vm1 web security: {addressGuard: {addresses: [10.0.0.1]}}", "vm2 web")
	}
	claim := arpFrame(1, mac(1), mac(1), "10.0.0.9", "10.0.0.9")
	r := run(t, guarded(), diagnose.Request{From: "vm1", Frames: [][]byte{claim}})
	f := &r.Frames[0]
	if f.Delivered || f.Reason != "arp-sender-not-allowed" || tunnelSteps(f) != nil || len(f.Causes) != 1 {
		t.Errorf("%+v", f)
	}
	const why = "10.0.0.9 is not the port's: the address guard (port group) lets port lab/vm1 use 10.0.0.1"
	if last := f.Steps[len(f.Steps)-1]; !strings.Contains(last.Text, why) {
		t.Errorf("%q, want %q", last.Text, why)
	}
	// The next question is for others, as nothing was bound.
	ask := arpFrame(1, mac(1), mac(1), "10.0.0.1", "10.0.0.9")
	f = &run(t, guarded(), diagnose.Request{From: "vm1", Frames: [][]byte{claim, ask}, Packet: 2}).Frames[0]
	if got := tunnelSteps(f); len(got) < 2 || got[1] != "other hosts are asked in VNI 10 who has 10.0.0.9: this host "+
		"does not know" {
		t.Errorf("%q", got)
	}
}

// TestS84_ATraceFromTheTunnelSaysWhatIsLearned: where the frame's source is, and who has which address.
func TestS84_ATraceFromTheTunnelSaysWhatIsLearned(t *testing.T) {
	h := overlayHost(t, 1600)
	r := h.Reach["lab"]
	r.Learn = true
	h.Reach["lab"] = r
	announce := func(n byte) []byte { return arpFrame(1, mac(n), mac(n), "10.0.0.7", "10.0.0.7") }
	h.Known = map[string]model.Known{"lab": {Placed: func(who model.Station) ([]overlay.Location, *model.Shown) {
		if who.MAC == mac(7) {
			return nil, &model.Shown{Endpoint: ip("198.51.100.3"), Seen: time.Hour - time.Minute}
		}
		return nil, nil
	}}}
	through := &diagnose.Through{VNI: 10, Source: ip("198.51.100.2")}
	for _, c := range []struct {
		name  string
		mac   byte
		where string
	}{
		{"new", 6, "this host learns that 02:00:00:00:00:06 is behind endpoint 198.51.100.2"},
		{"moved", 7, "this host learns that 02:00:00:00:00:07 is behind endpoint 198.51.100.2, and no longer behind " +
			"198.51.100.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := diagnose.Request{From: "tunnel", Frames: [][]byte{announce(c.mac)}, Through: through}
			f := &run(t, h, q).Frames[0]
			want := []string{"the frame comes in VNI 10 from endpoint 198.51.100.2",
				"this host hears in VNI 10 that 10.0.0.7 belongs to " + mac(c.mac).String(), c.where}
			if got := tunnelSteps(f); !slices.Equal(got, want) {
				t.Errorf("%q\nwant %q", got, want)
			}
		})
	}
}
