package trace

import (
	"encoding/binary"
	"fmt"
	"heddle/internal/diagnose"
	"net/netip"

	"heddle/internal/plan"
)

// Numbers of protocols in frames.
const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeQ    = 0x8100
	typeIPv6 = 0x86dd
	typeAD   = 0x88a8
	// typeExperimental is IEEE 802's for local experiments.
	typeExperimental = 0x88b5

	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// minFrame is the shortest frame on a wire, without FCS, in bytes.
const minFrame = 60

// packet has the fields of a frame, all filled in.
type packet struct {
	dst, src plan.MAC
	tags     []uint32 // type << 16 | TCI, outermost first
	fields   *diagnose.Fields
	reply    bool       // of ARP
	target   netip.Addr // of an IPv6 neighbour solicitation; invalid for everything else
}

// bytes encodes the frame; it is padded with zeros to the requested length, or to the shortest possible one.
func (p *packet) bytes() ([]byte, error) {
	b := append(append([]byte{}, p.dst[:]...), p.src[:]...)
	for _, t := range p.tags {
		b = binary.BigEndian.AppendUint32(b, t)
	}
	head := len(b) + 2
	shortest, err := p.payload(0)
	if err != nil {
		return nil, err
	}
	want := p.fields.Length
	if want == 0 {
		want = minFrame
	}
	if p.fields.Length > 0 && want < head+len(shortest.bytes) {
		return nil, fmt.Errorf("a frame of %d bytes is too short for its headers: they take %d", want, head+
			len(shortest.bytes))
	}
	body := shortest
	if p.fields.Length > 0 {
		if body, err = p.payload(want - head - len(shortest.bytes)); err != nil {
			return nil, err
		}
	}
	b = binary.BigEndian.AppendUint16(b, body.etherType)
	b = append(b, body.bytes...)
	for len(b) < want {
		b = append(b, 0)
	}
	return b, nil
}

// body is what follows the tags.
type body struct {
	etherType uint16
	bytes     []byte
}

// payload returns the packet with that many bytes of data.
func (p *packet) payload(data int) (body, error) {
	f := p.fields
	switch {
	case f.ARP != nil:
		return body{typeARP, p.arp()}, nil
	case f.IP != nil && f.IP.Dst.Is4():
		return body{typeIPv4, p.ipv4(data)}, nil
	case f.IP != nil:
		return body{typeIPv6, p.ipv6(data)}, nil
	case f.EtherType != nil:
		return body{*f.EtherType, nil}, nil
	}
	return body{typeExperimental, nil}, nil
}

// arp returns a request, or a reply, as RFC 826 defines it.
func (p *packet) arp() []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	target := plan.MAC{}
	if p.reply {
		b[7], target = 2, p.dst
	}
	src, dst := p.fields.ARP.Src.As4(), p.fields.ARP.Dst.As4()
	b = append(append(b, p.src[:]...), src[:]...)
	return append(append(b, target[:]...), dst[:]...)
}

func (p *packet) ipv4(data int) []byte {
	src, dst := p.fields.IP.Src.As4(), p.fields.IP.Dst.As4()
	protocol, inner := p.transport(data, append(append([]byte{}, src[:]...), dst[:]...))
	h := make([]byte, 20)
	h[0], h[8], h[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(inner)))
	copy(h[12:], src[:])
	copy(h[16:], dst[:])
	binary.BigEndian.PutUint16(h[10:], checksum(h))
	return append(h, inner...)
}

func (p *packet) ipv6(data int) []byte {
	src, dst := p.fields.IP.Src.As16(), p.fields.IP.Dst.As16()
	protocol, inner := p.transport(data, append(append([]byte{}, src[:]...), dst[:]...))
	h := make([]byte, 40)
	h[0], h[6], h[7] = 0x60, protocol, 64
	if p.target.IsValid() {
		h[7] = 255
	}
	binary.BigEndian.PutUint16(h[4:], uint16(len(inner)))
	copy(h[8:], src[:])
	copy(h[24:], dst[:])
	return append(h, inner...)
}

// transport returns the content of an IP packet, and its protocol; addresses are the packet's source and destination.
func (p *packet) transport(data int, addresses []byte) (byte, []byte) {
	v6 := len(addresses) == 32
	switch f := p.fields; {
	case f.TCP != nil:
		h := make([]byte, 20+data)
		ports(h, f.TCP)
		h[12], h[13] = 5<<4, 2 // SYN
		binary.BigEndian.PutUint16(h[14:], 64240)
		return protoTCP, summed(h, 16, addresses, protoTCP)
	case f.UDP != nil:
		h := make([]byte, 8+data)
		ports(h, f.UDP)
		binary.BigEndian.PutUint16(h[4:], uint16(len(h)))
		return protoUDP, summed(h, 6, addresses, protoUDP)
	case p.target.IsValid(): // RFC 4861 §4.3
		target := p.target.As16()
		h := append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, target[:]...)
		h = append(append(h, 1, 1), p.src[:]...)
		return protoICMPv6, summed(h, 2, addresses, protoICMPv6)
	case v6:
		return protoICMPv6, summed(append([]byte{128, 0, 0, 0, 0, 1, 0, 1}, make([]byte, data)...), 2, addresses,
			protoICMPv6)
	}
	h := append([]byte{8, 0, 0, 0, 0, 1, 0, 1}, make([]byte, data)...)
	binary.BigEndian.PutUint16(h[2:], checksum(h))
	return protoICMP, h
}

func ports(h []byte, p *diagnose.Ports) {
	binary.BigEndian.PutUint16(h, p.Src)
	binary.BigEndian.PutUint16(h[2:], p.Dst)
}

// summed writes the checksum over the pseudo-header and h to offset at of h.
func summed(h []byte, at int, addresses []byte, protocol byte) []byte {
	pseudo := append([]byte{}, addresses...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(h)))
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(protocol))
	binary.BigEndian.PutUint16(h[at:], checksum(append(pseudo, h...)))
	return h
}

// checksum returns the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// groupMAC returns the MAC for packets to a multicast or broadcast address (RFC 1112, RFC 2464).
func groupMAC(a netip.Addr) (plan.MAC, bool) {
	switch {
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return broadcast, true
	case a.Is4() && a.IsMulticast():
		b := a.As4()
		return plan.MAC{1, 0, 0x5e, b[1] & 0x7f, b[2], b[3]}, true
	case a.IsMulticast():
		b := a.As16()
		return plan.MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}, true
	}
	return plan.MAC{}, false
}

var broadcast = plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
