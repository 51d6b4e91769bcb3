package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// TestS105_HostilePacketsFromTheUnderlay: packets whose outer or inner header is cut, or which hold another packet
// for the tunnel, harm nobody: they get to no guest, or cross as the bytes that they are. Who floods the host with
// addresses, or with those of others, binds none of them, and takes no owner's place.
func TestS105_HostilePacketsFromTheUnderlay(t *testing.T) {
	testkit.Long(t, "sends each hostile packet over both families; the package difftest has them without a real "+
		"network")
	testkit.Never(t)
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("IPv6=%v", v6), func(t *testing.T) {
			t.Parallel()
			r := &neighbourRig{newOverlayRig(t, v6, "other"), v6}
			r.outerCut()
			r.innerCut()
			r.innerPacketCut()
			r.tunnelInside()
			r.addressFlood()
		})
	}
}

// datagram sends a peer's packet to the first host's tunnel.
func (r *neighbourRig) datagram(payload []byte) {
	r.t.Helper()
	inside(r.t, r.third, func() error {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(r.addr[2])},
			&net.UDPAddr{IP: net.ParseIP(r.addr[0]), Port: 4789})
		if err != nil {
			return err
		}
		_, err = c.Write(payload)
		return errors.Join(err, c.Close())
	})
}

// goesOn: a sound packet arrives after the others, and nothing came before it.
func (r *neighbourRig) goesOn(text string) {
	r.t.Helper()
	marker := cable.Frame(cable.Broadcast(), cable.MAC(66), 0, text)
	r.vxlan(r.third, r.addr[2], r.addr[0], 5000, marker)
	for _, f := range r.guests[0][0].Until(marker) {
		r.t.Errorf("%s: a guest gets %x", text, f)
	}
}

// outerCut: no VXLAN header, half of one, and one that does not say that it has a VNI.
func (r *neighbourRig) outerCut() {
	r.t.Helper()
	r.datagram([]byte{8})
	r.datagram([]byte{8, 0, 0, 0, 0, 5000 >> 8})
	r.datagram(append([]byte{0, 0, 0, 0, 0, 5000 >> 8, 5000 & 0xff, 0},
		cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "without the flag")...))
	r.goesOn("after cut outer headers")
}

// innerCut: what is too short for an Ethernet header gets to nobody.
func (r *neighbourRig) innerCut() {
	r.t.Helper()
	frame := cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "cut")
	for _, length := range []int{0, 1, 6, 13} {
		r.vxlan(r.third, r.addr[2], r.addr[0], 5000, frame[:length])
	}
	r.goesOn("after cut inner headers")
}

// innerPacketCut: an IP header that is not whole is counted once, by the tunnel's device, under a name of its own.
func (r *neighbourRig) innerPacketCut() {
	r.t.Helper()
	h := r.hosts[0]
	cut := map[string]string{"IPv4": "\x08\x00\x45\x00\x00\x14", "IPv6": "\x86\xdd\x60\x00\x00\x00"}
	for kind, header := range cut {
		before := *r.device()
		frame := append(cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "")[:12], header...)
		r.vxlan(r.third, r.addr[2], r.addr[0], 5000, frame)
		h.Await("an inner packet of "+kind+" that is cut is counted", func() bool {
			return r.deviceErrors() > before.RxErrors
		})
		after := r.device()
		if after.RxErrors != before.RxErrors+1 || after.RxFrameErrors != before.RxFrameErrors {
			r.t.Errorf("%s: the device counts %+v, before %+v", kind, *after, before)
		}
	}
	if text := h.must("stats", "tunnel"); !strings.Contains(text, "of these: inner packet cut ") {
		r.t.Errorf("the host does not name what was cut:\n%s", text)
	}
	r.goesOn("after cut inner packets")
}

// tunnelInside: a packet that is for the host's own tunnel endpoint, in a VNI that another guest of the host has, is a
// frame like every other one: it crosses whole, and is not taken out of its tunnel again.
func (r *neighbourRig) tunnelInside() {
	r.t.Helper()
	hidden := cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "from inside")
	inner := outerOf(netip.MustParseAddr(r.addr[2]), netip.MustParseAddr(r.addr[0]), 6000, hidden)
	r.vxlan(r.third, r.addr[2], r.addr[0], 5000, inner)
	r.guests[0][0].Expect(inner, "a packet with another one inside")
	r.guests[0][1].Refuse(hidden, "S105: what is inside of what is inside")
	r.goesOn("after a packet with another one inside")
}

// outerOf is a guest's frame that looks like one of a tunnel.
func outerOf(from, to netip.Addr, vni uint32, inner []byte) []byte {
	body := append([]byte{8, 0, 0, 0, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}, inner...)
	udp := []byte{0xc0, 0, 0x12, 0xb5, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)+len(body)))
	f := cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "")[:12]
	if to.Is6() {
		f = append(f, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(udp)+len(body)), 17, 64)
	} else {
		ip := []byte{8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0}
		binary.BigEndian.PutUint16(ip[4:], uint16(20+len(udp)+len(body)))
		f = append(f, ip...)
	}
	return append(append(append(append(f, from.AsSlice()...), to.AsSlice()...), udp...), body...)
}

// addressFlood: a station of another machine has more addresses than it may, and names others as their owners.
func (r *neighbourRig) addressFlood() {
	r.t.Helper()
	h, owner := r.hosts[0], r.at(11)
	r.guests[1][0].Send(r.announces(owner, owner.ip))
	r.guests[0][0].Expect(r.announces(owner, owner.ip), "S85: an announcement passes")
	unbound := h.neighbourCount(r.t, abi.NeighbourUnbound)
	h.Await("addresses beyond a station's share are counted", func() bool {
		for n := range 2000 {
			a := r.at(77)
			last := a.ip.AsSlice()
			binary.BigEndian.PutUint16(last[len(last)-3:], uint16(n)+256)
			ip, _ := netip.AddrFromSlice(last)
			r.kernel.Send(r.announces(a, ip))
		}
		return h.neighbourCount(r.t, abi.NeighbourUnbound) > unbound
	})
	spoofed := h.neighbourCount(r.t, abi.NeighbourSpoofed)
	for range 100 {
		r.kernel.Send(r.claims(cable.MAC(77), cable.MAC(66), owner.ip))
	}
	h.Await("packets that name another sender are counted", func() bool {
		return h.neighbourCount(r.t, abi.NeighbourSpoofed) > spoofed
	})
	n := h.listed("--address", owner.ip.String())
	if len(n.Neighbours) != 1 || n.Neighbours[0].MAC != plan.MAC(owner.mac).String() || n.Neighbours[0].Contested {
		r.t.Errorf("S85: after the flood the owner of %s is %+v", owner.ip, n.Neighbours)
	}
	if n := h.listed("--mac", plan.MAC(cable.MAC(66)).String()); len(n.Neighbours) != 0 {
		r.t.Errorf("S85: a MAC that never spoke has %+v", n.Neighbours)
	}
}
