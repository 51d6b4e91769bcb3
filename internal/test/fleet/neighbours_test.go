package fleet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// station is a guest that speaks ARP, or IPv6 and its neighbour discovery.
type station struct {
	mac [6]byte
	ip  netip.Addr
}

// neighbourRig is an overlay rig whose guests speak one of both.
type neighbourRig struct {
	*overlayRig
	v6 bool
}

func (r *neighbourRig) at(n byte) station {
	if r.v6 {
		return station{cable.MAC(n), netip.AddrFrom16([16]byte{0xfd, 15: n})}
	}
	return station{cable.MAC(n), netip.AddrFrom4([4]byte{10, 0, 0, n})}
}

// asks is the request of a station for an address, to all; without a sender's address it is a probe.
func (r *neighbourRig) asks(who station, probe bool, ip netip.Addr) []byte {
	if !r.v6 {
		sender := who.ip
		if probe {
			sender = netip.IPv4Unspecified()
		}
		return arpFrame(cable.Broadcast(), who.mac, 1, who.mac, sender, [6]byte{}, ip)
	}
	group := ip.As16()
	to := netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: group[13], 14: group[14], 15: group[15]})
	sender := who.ip
	if probe {
		sender = netip.IPv6Unspecified()
	}
	return ndFrame([6]byte{0x33, 0x33, 0xff, group[13], group[14], group[15]}, who.mac, sender, to, 135, 0, ip, who.mac)
}

// announces is what a station tells all that it has an address.
func (r *neighbourRig) announces(who station, ip netip.Addr) []byte {
	return r.claims(who.mac, who.mac, ip)
}

// claims is the same from one MAC for another one.
func (r *neighbourRig) claims(from, owner [6]byte, ip netip.Addr) []byte {
	if !r.v6 {
		return arpFrame(cable.Broadcast(), from, 1, owner, ip, [6]byte{}, ip)
	}
	return ndFrame([6]byte{0x33, 0x33, 5: 1}, from, ip, netip.MustParseAddr("ff02::1"), 136, 0x20, ip, owner)
}

// answers is what a station that has asked gets from the owner of the address.
func (r *neighbourRig) answers(who station, owner [6]byte, ip netip.Addr) []byte {
	if !r.v6 {
		return arpFrame(who.mac, owner, 2, owner, ip, who.mac, who.ip)
	}
	return ndFrame(who.mac, owner, ip, who.ip, 136, 0x60, ip, owner)
}

// arpFrame is a frame of 60 bytes.
func arpFrame(to, from [6]byte, operation byte, sender [6]byte, ip netip.Addr, target [6]byte,
	asked netip.Addr) []byte {
	f := slices.Concat(to[:], from[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, operation}, sender[:], ip.AsSlice(), target[:],
		asked.AsSlice())
	return append(f, make([]byte, 60-len(f))...)
}

// ndFrame is a neighbour solicitation or advertisement with one option, the MAC.
func ndFrame(to, from [6]byte, source, destination netip.Addr, kind, flags byte, target netip.Addr,
	mac [6]byte) []byte {
	option := byte(1)
	if kind == 136 {
		option = 2
	}
	message := slices.Concat([]byte{kind, 0, 0, 0, flags, 0, 0, 0}, target.AsSlice(), []byte{option, 1}, mac[:])
	sum := uint32(58 + len(message))
	for _, part := range [][]byte{source.AsSlice(), destination.AsSlice(), message} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(message[2:], ^uint16(sum))
	return slices.Concat(to[:], from[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(message)), 58, 255},
		source.AsSlice(), destination.AsSlice(), message)
}

// TestS85_TheAskersHostAnswers: what a guest asks for is answered by its own host once the owner was heard, and no
// other host is asked; probes and announcements always pass; another owner counts once it has answered; an address
// that two claim is answered for by nobody; who asks too often is not answered; an owner that is silent is asked for.
func TestS85_TheAskersHostAnswers(t *testing.T) {
	testkit.Long(t, "waits for owners that are silent; TestS85_AHostShowsWhoHasAnAddress has answers of the "+
		"asker's host")
	for _, v6 := range []bool{false, true} {
		name := "ARP"
		if v6 {
			name = "ND"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &neighbourRig{newOverlayRig(t, false, "web"), v6}
			r.answered()
			r.probed()
			r.spoofed()
			r.moved()
			r.hereAsked()
			r.contested()
			r.flooded()
			r.silent()
		})
	}
}

// everywhere: a frame of one guest comes to both other machines.
func (r *neighbourRig) everywhere(from *cable.End, frame []byte, why string) {
	r.t.Helper()
	from.Send(frame)
	for _, e := range []*cable.End{r.guests[0][0], r.guests[1][0], r.kernel} {
		if e != from {
			e.Expect(frame, why)
		}
	}
}

// all are the frames that come before a marker, of all types.
func all(e *cable.End, marker []byte) [][]byte {
	return e.Gather("the frames before a marker", func(all [][]byte) bool {
		return bytes.Equal(all[len(all)-1], marker)
	})
}

// introduces: a guest of the first host has said who it is, so that its next question need not (S194).
func (r *neighbourRig) introduces(guest byte) {
	r.t.Helper()
	who, end := r.at(guest+1), r.guests[0][guest]
	frame := r.announces(who, who.ip)
	end.Send(frame)
	for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
		e.Expect(frame, "S85: an announcement passes")
	}
}

// nobodyAsked: a guest of the first host asks, gets this answer, and no other machine gets the question.
func (r *neighbourRig) nobodyAsked(guest byte, owner [6]byte, ip netip.Addr) {
	r.t.Helper()
	who, end := r.at(guest+1), r.guests[0][guest]
	ask := r.asks(who, false, ip)
	end.Send(ask)
	end.Expect(r.answers(who, owner, ip), "S85: the answer")
	marker := cable.Frame(cable.Broadcast(), who.mac, 0, "after the question")
	end.Send(marker)
	for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
		if before := all(e, marker); slices.ContainsFunc(before, func(f []byte) bool { return bytes.Equal(f, ask) }) {
			r.t.Error("S85: the question has left the host")
		}
	}
}

// othersAsked: the question of a guest of the first host comes to the others, and the host does not answer.
func (r *neighbourRig) othersAsked(ask, answer []byte, why string) {
	r.t.Helper()
	r.everywhere(r.guests[0][0], ask, why)
	marker := cable.Frame(r.at(1).mac, r.at(11).mac, 0, "after the question: "+why)
	r.guests[1][0].Send(marker)
	if before := all(r.guests[0][0], marker); slices.ContainsFunc(before, func(f []byte) bool {
		return bytes.Equal(f, answer)
	}) {
		r.t.Errorf("%s, and the host answers", why)
	}
}

func (r *neighbourRig) answered() {
	r.t.Helper()
	asker, owner := r.at(1), r.at(11)
	r.othersAsked(r.asks(asker, false, owner.ip), r.answers(asker, owner.mac, owner.ip), "nobody has heard the owner")
	r.everywhere(r.guests[1][0], r.announces(owner, owner.ip), "S85: an announcement passes")
	r.nobodyAsked(0, owner.mac, owner.ip)
	if n := r.hosts[0].Refused("tunnel", "neighbour-answered"); n != 1 {
		r.t.Errorf("counted %d answers, want 1", n)
	}
}

func (r *neighbourRig) probed() {
	r.t.Helper()
	asker, owner := r.at(1), r.at(11)
	r.othersAsked(r.asks(asker, true, owner.ip), r.answers(asker, owner.mac, owner.ip),
		"S85: whether another station has the address")
	r.sure(owner, r.guests[1][0])
}

// sure: a station of another machine answers questions of the first host's guest until the host is sure who it is.
func (r *neighbourRig) sure(owner station, end *cable.End) {
	r.t.Helper()
	asker, mac := r.at(1), plan.MAC(owner.mac).String()
	ask := r.asks(asker, false, owner.ip)
	r.hosts[0].Await("S154: the owner's answer makes it sure", func() bool {
		n := r.hosts[0].listed("--address", owner.ip.String()).Neighbours
		if len(n) == 1 && n[0].MAC == mac && !n[0].Unsure && !n[0].Contested {
			return true
		}
		r.guests[0][0].Send(ask)
		if end.Await(ask, time.Second/2) {
			end.Send(r.answers(asker, owner.mac, owner.ip))
		}
		return false
	})
	marker := cable.Frame(cable.Broadcast(), asker.mac, 0, "after the questions")
	r.guests[0][0].Send(marker)
	for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
		e.Until(marker)
	}
}

// spoofed: who names another MAC than its own binds nothing.
func (r *neighbourRig) spoofed() {
	r.t.Helper()
	owner := r.at(11)
	r.everywhere(r.guests[0][1], r.claims(cable.MAC(2), cable.MAC(66), owner.ip), "what a guest says of another MAC")
	r.introduces(1)
	r.nobodyAsked(1, owner.mac, owner.ip) // who asks again has others asked
	if n := r.hosts[0].neighbourCount(r.t, abi.NeighbourSpoofed); n == 0 {
		r.t.Error("S85: no packet counted whose sender names another MAC")
	}
}

// moved: the third machine takes the owner's address over, and later on one of the first host's guests.
func (r *neighbourRig) moved() {
	r.t.Helper()
	owner, next := r.at(11), r.at(77)
	r.everywhere(r.kernel, r.announces(next, owner.ip), "S85: the next owner's announcement passes")
	r.othersAsked(r.asks(r.at(1), false, owner.ip), r.answers(r.at(1), next.mac, owner.ip),
		"S154: it is not sure who has the address")
	r.sure(station{next.mac, owner.ip}, r.kernel)
	r.nobodyAsked(0, next.mac, owner.ip)
}

// hereAsked: who asks for a guest of the same host asks that guest alone.
func (r *neighbourRig) hereAsked() {
	r.t.Helper()
	asker, owner := r.at(1), r.at(2)
	r.everywhere(r.guests[0][1], r.announces(owner, owner.ip), "S85: an announcement passes")
	ask := r.asks(asker, false, owner.ip)
	r.guests[0][0].Send(ask)
	r.guests[0][1].Expect(ask, "the owner on the same host is asked")
	marker := cable.Frame(cable.Broadcast(), asker.mac, 0, "after the question on one host")
	r.guests[0][0].Send(marker)
	before := all(r.kernel, marker)
	if slices.ContainsFunc(before, func(f []byte) bool { return bytes.Equal(f, ask) }) {
		r.t.Error("S85: the question for a guest of the same host has left it")
	}
	if n := r.hosts[0].Refused("tunnel", "neighbour-here"); n == 0 {
		r.t.Error("S85: no question counted that stayed on the host")
	}
}

// contested: two stations claim one address to and fro.
func (r *neighbourRig) contested() {
	r.t.Helper()
	asker, one, other := r.at(1), r.at(11), r.at(77)
	ip := r.at(40).ip
	for range 3 {
		r.everywhere(r.guests[1][0], r.announces(one, ip), "S85: an announcement passes")
		r.everywhere(r.kernel, r.announces(other, ip), "S85: an announcement passes")
	}
	r.othersAsked(r.asks(asker, false, ip), r.answers(asker, other.mac, ip), "S85: two claim the address")
	if n := r.hosts[0].neighbourCount(r.t, abi.NeighbourContested); n == 0 {
		r.t.Error("S85: no claim counted to the address of another one")
	}
	r.hosts[0].Await("the host reports that two claim an address", func() bool {
		found := false
		err := r.hosts[0].Events(r.t.Context(), api.Follow{Last: -1, NoFollow: true}, func(b api.Events) error {
			for _, e := range b.Events {
				found = found || e.Kind == "conflict" && e.Address == ip.String() &&
					strings.Contains(e.Text, "VNI 5000")
			}
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
		return found
	})
}

// flooded: a guest that asks and asks is answered as often as its share says.
func (r *neighbourRig) flooded() {
	r.t.Helper()
	ask := r.asks(r.at(1), false, r.at(11).ip)
	r.hosts[0].Await("questions beyond a guest's share are counted", func() bool {
		for range 2000 {
			r.guests[0][0].Send(ask)
		}
		return r.hosts[0].Refused("tunnel", "neighbour-limit") > 0
	})
	r.guests[0][0].Forget()
	before := r.hosts[0].neighbourCount(r.t, abi.NeighbourUnbound)
	r.hosts[0].Await("addresses beyond a guest's share are counted", func() bool {
		for n := range 2000 {
			a := r.at(1)
			last := a.ip.AsSlice()
			binary.BigEndian.PutUint16(last[len(last)-3:], uint16(n)+256)
			ip, _ := netip.AddrFromSlice(last)
			r.guests[0][0].Send(r.announces(a, ip))
		}
		return r.hosts[0].neighbourCount(r.t, abi.NeighbourUnbound) > before
	})
	for _, e := range []*cable.End{r.guests[0][0], r.guests[1][0], r.kernel} {
		e.Forget()
	}
}

// silent: an owner that says nothing is asked for after its time.
func (r *neighbourRig) silent() {
	r.t.Helper()
	owner, ip := r.at(11), r.at(50).ip // the second guest asks: the first has used its share
	r.everywhere(r.guests[1][0], r.announces(owner, ip), "S85: an announcement passes")
	r.nobodyAsked(1, owner.mac, ip)
	r.hosts[0].Configure(strings.Replace(r.config(0, "web"), "  tunnel:\n",
		"  tunnel:\n    neighbours: {hold: 1s}\n", 1))
	ask := r.asks(r.at(2), false, ip)
	r.hosts[0].Await("S85: a silent owner is asked for", func() bool {
		r.guests[0][1].Send(ask)
		return r.guests[1][0].Await(ask, time.Second/2)
	})
}

// neighbourCount is what the host's tunnel has counted beside the reasons.
func (h *host) neighbourCount(t *testing.T, what int) uint64 {
	t.Helper()
	m := h.overlayTable("neighbour_counts")
	defer m.Close()
	var slot uint32
	var n abi.NeighbourCounts
	all := m.Iterate()
	for all.Next(&slot, &n) {
		return n.N[what]
	}
	return 0
}
