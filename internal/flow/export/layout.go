package export

import (
	"fmt"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
)

// layout is a template of flow records with the position of each field. Writing a field that the template does not have
// does nothing.
type layout struct {
	t                                     *ipfix.Template
	sourceMAC, destinationMAC             ipfix.Place
	vlan, postVLAN, dot1q, etherType      ipfix.Place
	segment                               ipfix.Place
	source, destination                   ipfix.Place
	protocol, sourcePort, destinationPort ipfix.Place
	icmp, direction, reason, biflow, id   ipfix.Place
	ingress, egress                       ipfix.Place
	ingressAttr, egressAttr               ipfix.Place
	tunnel                                tunnelPlaces
	forward, reverse                      measures
	addressLength                         int
	flagsMask                             uint64
}

// measures are the positions of the counts of one direction.
type measures struct {
	start, end                       ipfix.Place
	octets, packets, frames          ipfix.Place
	allOctets, allPackets, allFrames ipfix.Place
	flags, tos, minTTL, maxTTL       ipfix.Place
}

func newLayout(id uint16, names ...string) (*layout, error) {
	fields, err := ipfix.Fields(names...)
	if err != nil {
		return nil, fmt.Errorf("template %d: %w", id, err)
	}
	t, err := ipfix.NewTemplate(id, fields...)
	if err != nil {
		return nil, err
	}
	at := t.PlaceOf
	l := &layout{t: t, sourceMAC: at("sourceMacAddress"), destinationMAC: at("destinationMacAddress"),
		vlan: at("vlanId"), segment: at("layer2SegmentId"),
		postVLAN: at("postVlanId"), dot1q: at("dot1qVlanId"), id: at("flowId"),
		etherType: at("ethernetType"), source: at("sourceIPv4Address"), destination: at("destinationIPv4Address"),
		protocol: at("protocolIdentifier"), sourcePort: at("sourceTransportPort"),
		destinationPort: at("destinationTransportPort"),
		direction:       at("flowDirection"), reason: at("flowEndReason"), biflow: at("biflowDirection"),
		ingress: at("ingressInterface"),
		egress:  at("egressInterface"), ingressAttr: at("ingressInterfaceAttr"), egressAttr: at("egressInterfaceAttr"),
		addressLength: 4, flagsMask: 0xffff}
	if l.source == (ipfix.Place{}) {
		l.source, l.destination, l.addressLength = at("sourceIPv6Address"), at("destinationIPv6Address"), 16
	}
	l.tunnel.find(at)
	if l.icmp = at("icmpTypeCodeIPv4"); l.icmp == (ipfix.Place{}) {
		l.icmp = at("icmpTypeCodeIPv6")
	}
	if i := t.Index(ipfix.IANA, 6); i >= 0 && t.Field(i).Length == 1 {
		l.flagsMask = 0xff
	}
	l.forward = measuresAt(func(name string) ipfix.Place { return at(name) })
	l.reverse = measuresAt(func(name string) ipfix.Place { return at("reverse" + string(name[0]-'a'+'A') + name[1:]) })
	return l, nil
}

func measuresAt(at func(string) ipfix.Place) measures {
	m := measures{start: at("flowStartMilliseconds"), end: at("flowEndMilliseconds"), octets: at("octetDeltaCount"),
		packets: at("packetDeltaCount"),
		frames:  at("layer2OctetDeltaCount"), allOctets: at("octetTotalCount"), allPackets: at("packetTotalCount"),
		allFrames: at("layer2OctetTotalCount"), flags: at("tcpControlBits"), tos: at("ipClassOfService"),
		minTTL: at("minimumTTL"),
		maxTTL: at("maximumTTL")}
	return m
}

// fill writes a record of the flow, whose frames cross between these endpoints; its reverse direction is left out
// unless the layout has it.
func (l *layout) fill(rec []byte, r *flow.Record, ports *ports, ends flow.Ends) {
	k := &r.Key
	l.sourceMAC.Bytes(rec, k.SrcMAC[:])
	l.destinationMAC.Bytes(rec, k.DstMAC[:])
	vlan, segment := ports.of(k.Point).segment(k.VLAN)
	l.vlan.Unsigned(rec, uint64(vlan))
	l.postVLAN.Unsigned(rec, uint64(vlan))
	l.dot1q.Unsigned(rec, uint64(vlan))
	l.segment.Unsigned(rec, segment)
	l.etherType.Unsigned(rec, uint64(k.EtherType))
	l.source.Bytes(rec, k.Src[:l.addressLength])
	l.destination.Bytes(rec, k.Dst[:l.addressLength])
	l.protocol.Unsigned(rec, uint64(k.Protocol))
	l.sourcePort.Unsigned(rec, uint64(k.SrcPort))
	l.destinationPort.Unsigned(rec, uint64(k.DstPort))
	l.icmp.Unsigned(rec, uint64(k.DstPort))
	l.direction.Unsigned(rec, uint64(k.Direction))
	l.reason.Unsigned(rec, uint64(r.Reason))
	in, out := r.Total.In, r.Total.Out
	if k.Direction == flow.Ingress {
		in = k.Point
	} else {
		out = k.Point
	}
	from, to := ports.of(in), ports.of(out)
	l.ingress.Unsigned(rec, uint64(from.number))
	l.egress.Unsigned(rec, uint64(to.number))
	l.ingressAttr.Unsigned(rec, uint64(from.kind))
	l.egressAttr.Unsigned(rec, uint64(to.kind))
	if l.id != (ipfix.Place{}) {
		l.id.Unsigned(rec, flowID(k, ports.of(k.Point).number, r.Start))
	}
	l.forward.fill(rec, &r.Delta, &r.Total, l)
	l.tunnel.fill(rec, k, ends, l)
	if r.Reverse != nil {
		l.reverse.fill(rec, &r.Reverse.Delta, &r.Reverse.Total, l)
		l.biflow.Unsigned(rec, initiator)
	}
}

// initiator is the value of biflowDirection: the source is who began the conversation (RFC 5103 §6.3).
const initiator = 1

// fill writes a record's counts. Its start is the first packet in them, not that of the flow, because collectors divide
// the deltas by the time from start to end.
func (m *measures) fill(rec []byte, delta, total *flow.Counts, l *layout) {
	m.start.Unsigned(rec, uint64(max(delta.First, 0)))
	m.end.Unsigned(rec, uint64(max(delta.Last, 0)))
	m.octets.Unsigned(rec, delta.Bytes)
	m.packets.Unsigned(rec, delta.Packets)
	m.frames.Unsigned(rec, delta.FrameBytes)
	m.allOctets.Unsigned(rec, total.Bytes)
	m.allPackets.Unsigned(rec, total.Packets)
	m.allFrames.Unsigned(rec, total.FrameBytes)
	m.flags.Unsigned(rec, uint64(delta.TCPFlags)&l.flagsMask)
	m.tos.Unsigned(rec, uint64(delta.TOS))
	m.minTTL.Unsigned(rec, uint64(delta.MinTTL))
	m.maxTTL.Unsigned(rec, uint64(delta.MaxTTL))
}
