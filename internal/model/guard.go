package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// What the guards look for in a packet.
const (
	typeARP   = 0x0806
	protoIGMP = 2

	listenerQuery, listenerReport, listenerDone, listenerReport2 = 130, 131, 132, 143
	routerSolicitation, routerAdvertisement                      = 133, 134
	neighbourSolicitation, neighbourAdvertisement                = 135, 136

	dhcpServer, dhcpClient, dhcpClient6 = 67, 68, 546

	typeHealthProbe = 0x8922
	mostTags        = 8
)

// guard decides whether a port's owner uses an address that is not its own, acts as a server or router where it may
// not, or sends what looks like a probe between hosts (frame-rules §1, The guards).
func guard(r *run) abi.Reason {
	pol, k := r.from.Policy, &r.head.packet
	addresses, server, router := pol.AddressGuard.Enabled.V, !pol.DHCPServer.V, !pol.RouterAdvertisements.V
	isIP, is6 := k.kind == typeIPv4 || k.kind == typeIPv6, k.kind == typeIPv6
	switch {
	case r.sw.plan.HealthCheck && looksLikeHealthProbe(r.head.raw): // S109
		return abi.ReasonGuestHealthProbe
	case !addresses && !server && !router:
		return abi.ReasonNone
	case k.hidden() && addresses:
		return abi.ReasonIPSourceNotAllowed
	case k.hidden() && router:
		return abi.ReasonGuestRouterAdvertisement
	case k.hidden():
		return abi.ReasonGuestDHCPServer
	case k.kind == typeARP && addresses && !r.from.mayARP(k.bytes): // S108
		return abi.ReasonARPSenderNotAllowed
	case !isIP:
		return abi.ReasonNone
	case addresses && !r.from.maySend(k): // S86, S108
		return abi.ReasonIPSourceNotAllowed
	case router && is6 && (k.unreadable() || k.message() == routerAdvertisement):
		return abi.ReasonGuestRouterAdvertisement
	// S108
	case addresses && is6 && (k.unreadable() || k.message() == neighbourAdvertisement &&
		!r.from.mayAdvertise(k.layer4)):
		return abi.ReasonNDTargetNotAllowed
	case server && (k.unreadable() || k.udpTo() == dhcpClient && !is6 || k.udpTo() == dhcpClient6 && is6): // S87
		return abi.ReasonGuestDHCPServer
	}
	return abi.ReasonNone
}

// looksLikeHealthProbe reports whether the type behind all tags of a frame is that of probes between hosts; one behind
// more than mostTags may be.
func looksLikeHealthProbe(frame []byte) bool {
	rest := frame[12:]
	for range mostTags {
		if !isTag(binary.BigEndian.Uint16(rest)) {
			break
		}
		if len(rest) < 6 {
			return false // it ends within the tag
		}
		rest = rest[4:]
	}
	kind := binary.BigEndian.Uint16(rest)
	return kind == typeHealthProbe || isTag(kind)
}

// hidden reports whether the frame's type is behind more tags than are read, or in an LLC header.
func (p *packet) hidden() bool {
	if p.kind >= 0x600 || len(p.bytes) < 6 {
		return isTag(p.kind)
	}
	snap := [6]byte(p.bytes)
	return snap == [6]byte{0xaa, 0xaa, 3, 0, 0, 0} || snap == [6]byte{0xaa, 0xaa, 3, 0, 0, 0xf8}
}

// unreadable reports whether the packet may be what a guard looks for, but cannot be read.
func (p *packet) unreadable() bool {
	switch {
	case p.version == 0 || p.later:
		return false
	case p.protocol == protoUDP:
		return p.ports == nil
	case p.version == 4:
		return false
	case p.protocol == protoICMPv6:
		return p.message() == 0
	}
	_, more := extension(p.protocol, make([]byte, 8))
	return more
}

// message is the type of an ICMPv6 message; 0 when the packet is none, or its type cannot be read.
func (p *packet) message() uint8 {
	if p.version != 6 || p.later || p.protocol != protoICMPv6 || p.icmp == nil {
		return 0
	}
	return p.icmp[0]
}

// udpTo is the destination port of UDP; 0 when the packet is not UDP, or its port cannot be read.
func (p *packet) udpTo() uint16 {
	if p.protocol != protoUDP || p.later || p.ports == nil {
		return 0
	}
	return binary.BigEndian.Uint16(p.ports[2:])
}

// owns reports whether an address is one of the port's.
func (p *port) owns(a netip.Addr) bool {
	return slices.ContainsFunc(p.addresses, func(own netip.Prefix) bool { return own.Contains(a) }) ||
		!p.mac.IsZero() && a == linkLocalOf(p.mac)
}

// linkLocalOf is the link-local address that a MAC gives (RFC 4291, appendix A).
func linkLocalOf(m plan.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

func (p *port) mayARP(b []byte) bool {
	if len(b) < 28 || [6]byte(b) != [6]byte{0, 1, 8, 0, 6, 4} {
		return false
	}
	sender := netip.AddrFrom4([4]byte(b[14:]))
	probe := sender.IsUnspecified() && binary.BigEndian.Uint16(b[6:]) == 1
	return probe || p.owns(sender)
}

func (p *port) maySend(k *packet) bool {
	switch {
	case k.version == 0:
		return false
	case p.owns(addressOf(k.src)):
		return true
	case k.version == 4:
		return k.protocol == protoIGMP && k.dst[0]>>4 == 14 || addressOf(k.src).IsUnspecified() && !k.fragment &&
			k.udpTo() == dhcpServer
	case k.fragment:
		return false
	}
	switch k.message() {
	case listenerQuery, listenerReport, listenerDone, listenerReport2:
		return k.dst[0] == 0xff
	case routerSolicitation, neighbourSolicitation:
		return addressOf(k.src).IsUnspecified()
	}
	return false
}

// mayAdvertise reports whether a neighbour advertisement's target is the port's own.
func (p *port) mayAdvertise(message []byte) bool {
	return len(message) >= 24 && p.owns(addressOf(message[8:24]))
}

func addressOf(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// guardAddresses are the addresses listed at a port, and a host port's own.
func guardAddresses(p *plan.Port) (list []netip.Prefix) {
	for _, s := range p.Policy.AddressGuard.Addresses.V {
		if own, err := spec.ParseGuardAddress(s); err == nil {
			list = append(list, own)
		}
	}
	for _, s := range p.Addresses {
		if own, err := netip.ParsePrefix(s); err == nil {
			list = append(list, netip.PrefixFrom(own.Addr(), own.Addr().BitLen()))
		}
	}
	return list
}

// ClaimedAddress is the sender's address according to the frame: the sender's address of ARP, the target of a neighbour
// advertisement, else the packet's source. false when no address can be read.
func ClaimedAddress(frame []byte) (netip.Addr, bool) {
	if _, ok := read(frame); !ok {
		return netip.Addr{}, false
	}
	k := readPacket(frame)
	switch {
	case k.kind == typeARP && len(k.bytes) >= 18:
		return addressOf(k.bytes[14:18]), true
	case k.message() == neighbourAdvertisement && len(k.layer4) >= 24:
		return addressOf(k.layer4[8:24]), true
	case k.version == 0:
		return netip.Addr{}, false
	}
	return addressOf(k.src), true
}
