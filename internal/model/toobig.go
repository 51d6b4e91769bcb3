package model

import (
	"encoding/binary"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/overlay"
)

// TooBig returns the ICMP error with which the host answers a frame of one of its ports, with the tag that it has
// inside its VNI, of which copies did not fit the tunnel (frame-rules §10): "fragmentation needed" (RFC 1191) or
// "packet too big" (RFC 4443). It goes to the frame's sender, as a frame from the tunnel in the same segment. nil
// where there is none. That a port gets only so many a second is not looked at.
func (c *Crossing) TooBig(frame []byte, copies []Outer) []byte {
	return c.tooBig(frame, copies, func() bool { return true })
}

// tooBig is TooBig; take says whether the sender may have an error.
func (c *Crossing) tooBig(frame []byte, copies []Outer, take func() bool) []byte {
	room, long := c.narrowest(frame, copies)
	if frame[0]&1 != 0 || !long {
		return nil
	}
	tag, bare := frame[:0], frame
	if hasTag(frame) {
		tag, bare = frame[12:16], slices.Concat(frame[:12], frame[16:])
	}
	if hasTag(bare) {
		return nil
	}
	p := readPacket(bare)
	if p.later || len(p.bytes) <= room || !p.fromOneToOne() || p.isError() {
		return nil
	}
	switch {
	case p.version == 4 && room >= abi.LeastIpv4 && p.bytes[6]&0x40 != 0 &&
		len(bare) >= ethernetHeader+abi.QuoteIpv4 && take():
		return answered(frame, tag, error4(&p, bare[ethernetHeader:], room))
	case p.version == 6 && room >= abi.LeastIpv6 && len(bare) >= ethernetHeader+abi.QuoteIpv6 && take():
		return answered(frame, tag, error6(&p, bare[ethernetHeader:], room))
	}
	return nil
}

// Error is the answer, if it is an ICMP error.
func (l *Left) Error() []byte {
	if l.Question.Asked.IsValid() {
		return nil
	}
	return l.Answer
}

// RoomIn is the MTU that the error of TooBig tells; false for no error.
func RoomIn(frame []byte) (mtu int, ok bool) {
	if frame == nil {
		return 0, false
	}
	p := readPacket(frame)
	if p.version == 4 {
		return int(binary.BigEndian.Uint16(p.layer4[6:])), true
	}
	return int(binary.BigEndian.Uint32(p.layer4[4:])), true
}

// narrowest is the longest packet that would have fitted for all endpoints; long is false if all copies did.
func (c *Crossing) narrowest(frame []byte, copies []Outer) (room int, long bool) {
	for _, o := range copies {
		if o.Reason != abi.ReasonTunnelMTU {
			continue
		}
		fits := c.room(o.To)
		if hasTag(frame) {
			fits -= overlay.TagInside
		}
		if !long || fits < room {
			room, long = fits, true
		}
	}
	return room, long
}

// fromOneToOne reports whether a packet's addresses are each that of one station that others reach.
func (p *packet) fromOneToOne() bool {
	if p.version == 4 {
		for _, a := range [][]byte{p.src, p.dst} {
			if a[0] == 0 || a[0] == 127 || a[0] >= 224 {
				return false
			}
		}
		return true
	}
	return p.version == 6 && p.src[0] != 255 && p.dst[0] != 255 && !slices.Equal(p.src, make([]byte, 16))
}

// isError reports whether a packet is an ICMP error or redirect: nobody answers those with an error.
func (p *packet) isError() bool {
	switch {
	case p.protocol == protoICMP && p.version == 4:
		return p.icmp != nil && slices.Contains([]byte{3, 4, 5, 11, 12}, p.icmp[0])
	case p.protocol == protoICMPv6 && p.version == 6:
		return p.icmp == nil || p.icmp[0] < 128 || p.icmp[0] == 137
	}
	return false
}

// answered is the frame in which an error goes back; nil for none.
func answered(frame, tag, packet []byte) []byte {
	if packet == nil {
		return nil
	}
	kind := []byte{8, 0}
	if packet[0]>>4 == 6 {
		kind = []byte{0x86, 0xdd}
	}
	return slices.Concat(frame[6:12], frame[:6], tag, kind, packet)
}

func error4(p *packet, from []byte, room int) []byte {
	quoted := quote(p, from, abi.QuoteIpv4)
	if quoted == nil {
		return nil
	}
	icmp := append([]byte{3, 4, 0, 0, 0, 0, byte(room >> 8), byte(room)}, quoted...)
	binary.BigEndian.PutUint16(icmp[2:], ^sum(icmp))
	ip := []byte{0x45, 0xc0, 0, 0, 0, 0, 0x40, 0, abi.OuterTtl, protoICMP, 0, 0}
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(icmp)))
	ip = slices.Concat(ip, p.dst, p.src)
	binary.BigEndian.PutUint16(ip[10:], ^sum(ip))
	return append(ip, icmp...)
}

func error6(p *packet, from []byte, room int) []byte {
	quoted := quote(p, from, abi.QuoteIpv6)
	if quoted == nil {
		return nil
	}
	icmp := binary.BigEndian.AppendUint32([]byte{2, 0, 0, 0}, uint32(room))
	icmp = append(icmp, quoted...)
	length := uint16(len(icmp))
	pseudo := slices.Concat(p.dst, p.src, []byte{0, 0, byte(length >> 8), byte(length), 0, 0, 0, protoICMPv6}, icmp)
	binary.BigEndian.PutUint16(icmp[2:], ^sum(pseudo))
	ip := []byte{0x60, 0, 0, 0, byte(length >> 8), byte(length), protoICMPv6, 255}
	return slices.Concat(ip, p.dst, p.src, icmp)
}

// quote is the beginning of a packet as an error has it: with a checksum of TCP or UDP that stays what it is if a
// device computes it once more. nil where that can't be done.
func quote(p *packet, from []byte, n int) []byte {
	q := slices.Clone(from[:n])
	at, ok := map[uint8]int{protoTCP: 16, protoUDP: 6}[p.protocol]
	if !ok {
		return q
	}
	header := len(p.bytes) - len(p.layer4)
	if header > abi.CsumMost || header&3 != 0 {
		return nil
	}
	field := q[header+at:][:2]
	copy(field, []byte{0, 0})
	t := uint32(sum(q[header:])) % 0xffff
	half := 0xffff - t/2
	if t&1 != 0 {
		half = (0xffff - t) / 2
	}
	binary.BigEndian.PutUint16(field, uint16(half))
	return q
}

// sum is the Internet's sum of an even number of bytes (RFC 1071).
func sum(b []byte) uint16 {
	n := uint32(0)
	for i := 0; i < len(b); i += 2 {
		n += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for n > 0xffff {
		n = n&0xffff + n>>16
	}
	return uint16(n)
}
