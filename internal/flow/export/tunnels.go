package export

import (
	"net/netip"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
)

// tunnelPlaces are the positions of what a record says about the way of its frames to another host.
type tunnelPlaces struct {
	hop4, hop6 ipfix.Place // the other host's endpoint
	// The inner packet, in a record whose other fields are the outer one's.
	tenantSource, tenantDestination         ipfix.Place
	tenantSourcePort, tenantDestinationPort ipfix.Place
	tenantProtocol                          ipfix.Place
	tenantLength                            int // bytes of an inner address
}

func (t *tunnelPlaces) find(at func(string) ipfix.Place) {
	*t = tunnelPlaces{hop4: at("ipNextHopIPv4Address"), hop6: at("ipNextHopIPv6Address"),
		tenantSource: at("tenantSourceIPv4"), tenantDestination: at("tenantDestIPv4"), tenantLength: 4,
		tenantSourcePort: at("tenantSourcePort"), tenantDestinationPort: at("tenantDestPort"),
		tenantProtocol: at("tenantProtocol")}
	if t.tenantSource == (ipfix.Place{}) {
		t.tenantSource, t.tenantDestination, t.tenantLength = at("tenantSourceIPv6"), at("tenantDestIPv6"), 16
	}
}

// What outer packets have in common.
const (
	outerTTL = 64
	// outerPort is the source port of a record's outer packets: the kernel derives it from the inner flow, and it is
	// not known here.
	outerPort = 0
)

// fill writes the way of a flow's frames. The inner packet takes the place of the tenant's, and the outer one that of
// the packet itself. The traffic class of both is the same (RFC 2983, uniform model).
func (t *tunnelPlaces) fill(rec []byte, k *flow.Key, ends flow.Ends, l *layout) {
	t.hop4.Bytes(rec, as4(ends.Remote))
	t.hop6.Bytes(rec, ends.Remote.AsSlice())
	if t.tenantProtocol == (ipfix.Place{}) {
		return
	}
	t.tenantSource.Bytes(rec, k.Src[:t.tenantLength])
	t.tenantDestination.Bytes(rec, k.Dst[:t.tenantLength])
	t.tenantSourcePort.Unsigned(rec, uint64(k.SrcPort))
	t.tenantDestinationPort.Unsigned(rec, uint64(k.DstPort))
	t.tenantProtocol.Unsigned(rec, uint64(k.Protocol))
	l.source.Bytes(rec, as4(ends.Local))
	l.destination.Bytes(rec, as4(ends.Remote))
	l.sourcePort.Unsigned(rec, outerPort)
	l.destinationPort.Unsigned(rec, uint64(ends.Port))
	l.protocol.Unsigned(rec, protoUDP)
	l.forward.maxTTL.Unsigned(rec, outerTTL)
}

// as4 is an IPv4 address of 4 bytes: zeros for another one, and for one that is not known.
func as4(a netip.Addr) []byte {
	if !a.Is4() {
		return make([]byte, 4)
	}
	b := a.As4()
	return b[:]
}
