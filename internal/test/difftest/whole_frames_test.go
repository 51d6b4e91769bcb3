package difftest

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"heddle/internal/plan"
)

// Stations are known by a number: 1–7 are the ports a–g of this host, 17–20 are behind its ports, 33–39 elsewhere. Each
// has the addresses 10.0.0.n and fd00::n, and takes another's now and then.

func stationMAC(n int) plan.MAC { return plan.MAC{2, 5: byte(n)} }

// station is one of all.
func (w *wholeRun) station() int {
	return []int{1, 2, 3, 4, 5, 6, 7, 17, 18, 19, 20, 33, 34, 35, 36, 37, 38, 39}[w.random.IntN(18)]
}

func (w *wholeRun) mac() plan.MAC { return stationMAC(w.station()) }

// address is that of a station's number.
func (w *wholeRun) address(v6 bool, n int) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0xfd, 15: byte(n)})
	}
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
}

// spoken is who speaks, and which address it gives itself.
type spoken struct {
	mac     plan.MAC
	v6      bool
	address netip.Addr
}

func (w *wholeRun) speaks(n int) spoken {
	s := spoken{mac: stationMAC(n), v6: w.random.IntN(2) == 0}
	switch w.random.IntN(8) {
	case 0:
		n = w.station()
	case 1:
		n = 100 + w.random.IntN(100)
	}
	s.address = w.address(s.v6, n)
	return s
}

// rushing is one of many frames at one instant: a question, or an address that is new each time.
func (w *wholeRun) rushing(port *plan.Port) []byte {
	n := int(port.InitialMAC[5])
	s := spoken{mac: port.InitialMAC, v6: w.random.IntN(2) == 0}
	s.address = w.address(s.v6, n)
	if w.step/1000%2 == 0 {
		s.address = w.address(s.v6, 100+w.random.IntN(100))
	}
	target := w.address(s.v6, 33+w.random.IntN(3))
	if s.v6 {
		return w.solicits(s, target)
	}
	return w.arpOf(s, 1, s.address, target)
}

// fromPort is a frame of a port's owner: from its own MAC, mostly.
func (w *wholeRun) fromPort(port *plan.Port) []byte {
	n := int(port.InitialMAC[5])
	switch w.random.IntN(10) {
	case 0:
		n = w.station()
	case 1, 2, 3:
		if port.Policy.ForgedTransmits.V {
			n = 17 + w.random.IntN(4)
		}
	}
	frame := w.packet(w.speaks(n))
	tag := w.random.IntN(10) == 0
	if port.Policy.VLAN.V.Mode == plan.VLANTrunk {
		tag = w.random.IntN(4) > 0
	}
	return w.mutated(frame, tag)
}

// fromTunnel is a frame of a station elsewhere, mostly.
func (w *wholeRun) fromTunnel() []byte {
	n := 33 + w.random.IntN(7)
	switch w.random.IntN(40) {
	case 0, 1, 2, 3, 4:
		n = w.station()
	case 5: // ends within its second tag
		to, from := w.mac(), stationMAC(n)
		return slices.Concat(to[:], from[:], []byte{0x81, 0, 0, 7, 0x81, 0, 0, 7}, make([]byte, w.random.IntN(4)))
	}
	return fit(w.mutated(w.packet(w.speaks(n)), w.random.IntN(3) == 0))
}

// mutated is a frame with tags, cut off, or with a wrong bit.
func (w *wholeRun) mutated(frame []byte, tag bool) []byte {
	if w.random.IntN(10) == 0 {
		frame[12+w.random.IntN(min(len(frame), 90)-12)] ^= byte(1 << w.random.IntN(8))
	}
	if w.random.IntN(16) == 0 {
		frame = frame[:14+w.random.IntN(min(len(frame), 90)-14)]
	}
	frame = runnable(frame)
	for tag {
		protocol := []uint16{0x8100, 0x8100, 0x8100, 0x8100, 0x8100, 0x88a8}[w.random.IntN(6)]
		t := binary.BigEndian.AppendUint16(nil, protocol)
		t = binary.BigEndian.AppendUint16(t, []uint16{7, 7, 9, 0, 8}[w.random.IntN(5)]|uint16(w.random.IntN(16))<<12)
		frame = slices.Concat(frame[:12], t, frame[12:])
		tag = w.random.IntN(10) == 0
	}
	for tagged(frame) && len(frame) < 20 { // the kernel drops a shorter one before any program
		frame = append(frame, 0)
	}
	return frame
}

// packet is one of ARP, of neighbour discovery, or another one.
func (w *wholeRun) packet(s spoken) []byte {
	target := w.address(s.v6, w.station())
	switch n := w.random.IntN(10); {
	case n < 3:
		return w.data(s)
	case s.v6 && n < 6:
		return w.solicits(s, target)
	case s.v6:
		return w.advertises(s)
	}
	switch w.random.IntN(8) {
	case 0: // a probe (RFC 5227)
		return w.arpOf(s, 1, netip.IPv4Unspecified(), s.address)
	case 1, 2: // an announcement, in either of its forms
		return w.arpOf(s, 1+byte(w.random.IntN(2)), s.address, s.address)
	case 3:
		return w.arpOf(s, 2, s.address, target)
	}
	return w.arpOf(s, 1, s.address, target)
}

var everyone = []byte{255, 255, 255, 255, 255, 255}

// arpOf is an ARP packet, for all or for one, padded or not.
func (w *wholeRun) arpOf(s spoken, operation byte, sender, target netip.Addr) []byte {
	to, from := everyone, s.mac
	if w.random.IntN(5) == 0 {
		one := w.mac()
		to = one[:]
	}
	if w.random.IntN(20) == 0 {
		from = w.mac() // that which the packet names
	}
	return slices.Concat(to, s.mac[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, operation}, from[:], sender.AsSlice(),
		make([]byte, 6), target.AsSlice(), make([]byte, []int{0, 18}[w.random.IntN(2)]))
}

// solicits is a solicitation: with the sender's MAC, or with another option, of an odd length, or several; or one that
// finds out whether another station has the address, which has no source (RFC 4862), with a nonce (RFC 7527) or not.
func (w *wholeRun) solicits(s spoken, target netip.Addr) []byte {
	group := netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 15: target.As16()[15]})
	mac := []byte{0x33, 0x33, 0xff, 0, 0, target.As16()[15]}
	nonce := []byte{14, 1, 1, 2, 3, 4, 5, 6}
	own := slices.Concat([]byte{1, 1}, s.mac[:])
	switch w.random.IntN(12) {
	case 0:
		return w.nd(s, mac, netip.IPv6Unspecified(), group, 135, 0, s.address, nil)
	case 1:
		return w.nd(s, mac, netip.IPv6Unspecified(), group, 135, 0, s.address, nonce)
	case 2:
		return w.nd(s, mac, s.address, group, 135, 0, target, slices.Concat(own, nonce))
	case 3: // asks whether a known station is still there
		to := w.mac()
		return w.nd(s, to[:], s.address, target, 135, 0, target, own)
	case 4:
		return w.nd(s, mac, s.address, group, 135, 0, target, w.oddOption(1, s))
	}
	return w.nd(s, mac, s.address, group, 135, 0, target, own)
}

// advertises is an advertisement: asked for or not, with the flags that there are.
func (w *wholeRun) advertises(s spoken) []byte {
	all := netip.MustParseAddr("ff02::1")
	flags := []byte{0x20, 0x20, 0x60, 0xa0, 0, 0x40, 0xe0}[w.random.IntN(7)]
	own := slices.Concat([]byte{2, 1}, s.mac[:])
	switch w.random.IntN(8) {
	case 0:
		return w.nd(s, []byte{0x33, 0x33, 0, 0, 0, 1}, s.address, all, 136, flags, s.address, w.oddOption(2, s))
	case 1:
		return w.nd(s, []byte{0x33, 0x33, 0, 0, 0, 1}, s.address, all, 136, flags, s.address, nil)
	case 2: // for an address that is not the packet's source
		return w.nd(s, []byte{0x33, 0x33, 0, 0, 0, 1}, s.address, all, 136, flags, w.address(true, w.station()), own)
	case 3, 4:
		to := w.mac()
		return w.nd(s, to[:], s.address, w.address(true, int(to[5])), 136, flags, s.address, own)
	}
	return w.nd(s, []byte{0x33, 0x33, 0, 0, 0, 1}, s.address, all, 136, flags, s.address, own)
}

// oddOption is an option with the MAC whose length is none, or not that of its bytes.
func (w *wholeRun) oddOption(kind byte, s spoken) []byte {
	option := slices.Concat([]byte{kind, []byte{0, 2, 3, 255}[w.random.IntN(4)]}, s.mac[:])
	return append(option, make([]byte, w.random.IntN(17))...)
}

// nd is a packet of neighbour discovery, sometimes behind another header, or from too far away.
func (w *wholeRun) nd(s spoken, to []byte, from, dst netip.Addr, kind, flags byte, target netip.Addr,
	options []byte) []byte {
	message := slices.Concat([]byte{kind, 0, 0x12, 0x34, flags, 0, 0, 0}, target.AsSlice(), options)
	next, hops := byte(58), byte(255)
	switch w.random.IntN(25) {
	case 0:
		hops = 254
	case 1:
		message, next = append([]byte{58, 0, 1, 4, 0, 0, 0, 0}, message...), 0
	}
	return slices.Concat(to, s.mac[:], []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(message)), next, hops},
		from.AsSlice(), dst.AsSlice(), message)
}

// data is a packet for a station, or for all, as long as nearly fits the tunnel, or short.
func (w *wholeRun) data(s spoken) []byte {
	n := w.station()
	to, dst := stationMAC(n), w.address(s.v6, n)
	if w.random.IntN(6) == 0 {
		copy(to[:], everyone)
	}
	length := pick2(w.random, 46, 46, 46, 46, 46, 1426, 1430, 1446, 1450, 1478, 1500) + w.random.IntN(5) - 2
	head := slices.Concat(to[:], s.mac[:])
	if s.v6 {
		head = append(head, 0x86, 0xdd, 0x60, 0, 0, 0, byte((length-40)>>8), byte(length-40), 17, 64)
	} else {
		head = append(head, 8, 0, 0x45, 0, byte(length>>8), byte(length), 0, 0, 0x40, 0, 64, 17, 0, 0)
	}
	head = slices.Concat(head, s.address.AsSlice(), dst.AsSlice(), []byte{4, 0, 2, 0, 0, 8, 0, 0})
	return append(head, make([]byte, max(14+length-len(head), 0))...)
}
