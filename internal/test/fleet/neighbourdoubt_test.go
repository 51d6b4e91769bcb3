package fleet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/test/testkit/cable"
)

// TestS154_OneAnnouncementSilencesNoOwner: a guest announces the address of another host's guest, or sweeps over many
// addresses. The owner hears the next question all the same, and its answer counts.
func TestS154_OneAnnouncementSilencesNoOwner(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ARP", true: "ND"}[v6], func(t *testing.T) {
			t.Parallel()
			r := &neighbourRig{newOverlayRig(t, false, "web"), v6}
			r.stolen()
			r.swept()
		})
	}
}

func (r *neighbourRig) stolen() {
	r.t.Helper()
	asker, thief, owner := r.at(1), r.at(2), r.at(11)
	r.everywhere(r.guests[1][0], r.announces(owner, owner.ip), "S85: an announcement passes")
	r.introduces(0)
	r.nobodyAsked(0, owner.mac, owner.ip)
	r.everywhere(r.guests[0][1], r.announces(thief, owner.ip), "S85: an announcement passes")
	r.othersAsked(r.asks(asker, false, owner.ip), r.answers(asker, thief.mac, owner.ip),
		"S154: the owner is asked whose address another one has announced")
	if n := r.hosts[0].listed("--address", owner.ip.String()).Neighbours; len(n) != 1 || !n[0].Unsure {
		r.t.Errorf("S154: the host shows %+v", n)
	}
	r.guests[1][0].Send(r.answers(asker, owner.mac, owner.ip))
	r.guests[0][0].Expect(r.answers(asker, owner.mac, owner.ip), "the owner's answer")
	if n := r.hosts[0].listed("--address", owner.ip.String()).Neighbours; len(n) != 1 ||
		n[0].MAC != plan.MAC(owner.mac).String() {
		r.t.Errorf("S154: after the owner's answer the host shows %+v", n)
	}
}

// swept: of many addresses that one guest announces, none is kept from its owner, whom nobody has heard.
func (r *neighbourRig) swept() {
	r.t.Helper()
	asker, thief := r.at(1), r.at(2)
	address := func(n int) netip.Addr {
		last := thief.ip.AsSlice()
		binary.BigEndian.PutUint16(last[len(last)-3:], uint16(n)+256)
		ip, _ := netip.AddrFromSlice(last)
		return ip
	}
	begun := time.Now()
	for n := range 250 {
		r.guests[0][1].Send(r.announces(thief, address(n)))
	}
	marker := cable.Frame(cable.Broadcast(), thief.mac, 0, "after the sweep")
	r.guests[0][1].Send(marker)
	r.kernel.Until(marker)
	most := abi.SurePerSecond * (2 + int(time.Since(begun).Seconds()))
	for n := range 250 {
		r.guests[0][0].Send(r.asks(asker, false, address(n)))
	}
	marker = cable.Frame(cable.Broadcast(), asker.mac, 0, "after the questions")
	r.guests[0][0].Send(marker)
	before, kept := all(r.kernel, marker), 0
	for n := range 250 {
		ask := r.asks(asker, false, address(n))
		if !slices.ContainsFunc(before, func(f []byte) bool { return bytes.Equal(f, ask) }) {
			kept++
		}
	}
	if kept > most {
		r.t.Errorf("S154: the owners of %d of 250 addresses are not asked, want at most %d", kept, most)
	}
}
