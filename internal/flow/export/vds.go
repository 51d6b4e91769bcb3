package export

import (
	"slices"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
)

// vds is the shape of vSphere's distributed switches: records of IPv4 and IPv6 frames that leave by a port, in
// templates 256–259 and 264–268. What leaves by a tunnel over IPv4 to an endpoint that is known has the outer packet
// and the inner one, as the tenant's, in templates 260–263.
type vds struct {
	byFamily [2]vdsFamily
	tunnels  [2][2]*layout // by the inner family, with and without ports
	all      []*ipfix.Template
}

type vdsFamily struct{ tcp, udp, ports, icmp, other *layout }

// vdsFields are the fields of a template, in the order of a VDS. Elements of VMware end it.
func vdsFields(source, destination string, ports bool) []string {
	fields := []string{source, destination, "octetDeltaCount", "packetDeltaCount", "flowStartMilliseconds",
		"flowEndMilliseconds"}
	if ports {
		return append(fields, "sourceTransportPort", "destinationTransportPort", "ingressInterface", "egressInterface",
			"layer2SegmentId",
			"protocolIdentifier", "flowEndReason", "tcpControlBits/1", "ipClassOfService", "maximumTTL",
			"flowDirection",
			"ingressInterfaceAttr", "egressInterfaceAttr", "vxlanExportRole", "paddingOctets/1")
	}
	return append(fields, "ingressInterface", "egressInterface", "protocolIdentifier", "flowEndReason",
		"ipClassOfService", "maximumTTL",
		"flowDirection", "layer2SegmentId", "ingressInterfaceAttr", "egressInterfaceAttr", "vxlanExportRole",
		"paddingOctets/2")
}

// vdsTunnelFields are the fields of a template for packets in a tunnel, in the order of a VDS.
func vdsTunnelFields(id uint16) []string {
	six, ports := id >= 262, id%2 == 0
	fields := []string{"sourceIPv4Address", "destinationIPv4Address", "octetDeltaCount", "packetDeltaCount",
		"flowStartMilliseconds", "flowEndMilliseconds", "sourceTransportPort", "destinationTransportPort",
		"ingressInterface", "egressInterface", "protocolIdentifier"}
	switch {
	case ports:
		fields = append(fields, "flowEndReason", "tcpControlBits/1", "ipClassOfService", "maximumTTL", "flowDirection")
	case six:
		fields = append(fields, "ipClassOfService", "maximumTTL", "flowDirection", "flowEndReason")
	default:
		fields = append(fields, "flowEndReason", "ipClassOfService", "maximumTTL", "flowDirection")
	}
	fields = append(fields, "layer2SegmentId")
	if six {
		fields = append(fields, "tenantSourceIPv6", "tenantDestIPv6")
	} else {
		fields = append(fields, "tenantSourceIPv4", "tenantDestIPv4")
	}
	if ports {
		fields = append(fields, "tenantSourcePort", "tenantDestPort")
	}
	fields = append(fields, "tenantProtocol", "ingressInterfaceAttr", "egressInterfaceAttr", "vxlanExportRole")
	if !ports {
		fields = append(fields, "paddingOctets/1")
	}
	return fields
}

func newVDS() (*vds, error) {
	v := &vds{}
	four, six := &v.byFamily[0], &v.byFamily[1]
	for _, x := range []struct {
		id    uint16
		to    *(*layout)
		six   bool
		ports bool
	}{{256, &four.ports, false, true}, {257, &four.other, false, false}, {258, &six.ports, true, true},
		{259, &six.other, true, false},
		{264, &four.tcp, false, true}, {265, &six.tcp, true, true}, {266, &four.udp, false, true},
		{267, &six.udp, true, true},
		{268, &four.icmp, false, false}} {
		source, destination := "sourceIPv4Address", "destinationIPv4Address"
		if x.six {
			source, destination = "sourceIPv6Address", "destinationIPv6Address"
		}
		l, err := newLayout(x.id, vdsFields(source, destination, x.ports)...)
		if err != nil {
			return nil, err
		}
		*x.to, v.all = l, append(v.all, l.t)
	}
	six.icmp = six.other
	for id := uint16(260); id <= 263; id++ {
		l, err := newLayout(id, vdsTunnelFields(id)...)
		if err != nil {
			return nil, err
		}
		v.tunnels[(id-260)/2][id%2], v.all = l, append(v.all, l.t)
	}
	slices.SortFunc(v.all, func(a, b *ipfix.Template) int { return int(a.ID()) - int(b.ID()) })
	return v, nil
}

func (v *vds) templates() []*ipfix.Template { return slices.Clone(v.all) }
func (v *vds) options() bool                { return false }

// of returns, for a conversation, the direction that leaves by the port; for a record of incoming frames there is no
// template (S63).
func (v *vds) of(r *flow.Record, ports *ports) (*layout, *flow.Record, flow.Ends) {
	r = leaving(r)
	if r == nil {
		return nil, nil, flow.Ends{}
	}
	family := 0
	switch r.Key.EtherType {
	case flow.IPv4:
	case flow.IPv6:
		family = 1
	default:
		return nil, nil, flow.Ends{}
	}
	if ports.of(r.Key.Point).kind == tunnelPort {
		if ends, ok := ports.leaves(r); ok && ends.Remote.Is4() {
			plain := 1
			if kindOf(&r.Key) == withPorts {
				plain = 0
			}
			return v.tunnels[family][plain], r, ends
		}
	}
	return v.byFamily[family].of(r), r, flow.Ends{}
}

func (f *vdsFamily) of(r *flow.Record) *layout {
	switch kindOf(&r.Key) {
	case withICMP:
		return f.icmp
	case withPorts:
		switch r.Key.Protocol {
		case protoTCP:
			return f.tcp
		case protoUDP:
			return f.udp
		}
		return f.ports
	}
	return f.other
}

// leaving is the egress direction of a record, nil when it has none.
func leaving(r *flow.Record) *flow.Record {
	if r.Key.Direction == flow.Egress {
		return r
	}
	if r.Reverse == nil {
		return nil
	}
	k := r.Key
	k.Direction = flow.Egress
	k.SrcMAC, k.DstMAC, k.Src, k.Dst = k.DstMAC, k.SrcMAC, k.Dst, k.Src
	if kindOf(&k) == withPorts {
		k.SrcPort, k.DstPort = k.DstPort, k.SrcPort
	}
	return &flow.Record{Key: k, Reason: r.Reason, Start: r.Reverse.Start, Delta: r.Reverse.Delta,
		Total: r.Reverse.Total}
}
