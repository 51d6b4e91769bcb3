package export

import (
	"slices"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
)

// shape chooses the template of each record.
type shape interface {
	// templates are all templates that records can have.
	templates() []*ipfix.Template
	// of is the layout of a record, the record in the form in which the shape shows it, and the endpoints between which
	// its frames leave for another host, if any; nil if the shape has no template for it.
	of(r *flow.Record, ports *ports) (*layout, *flow.Record, flow.Ends)
	// options says whether collectors of the shape get options records.
	options() bool
}

// Template ids of the standard shape: family plus kind, plus biflowOffset for both directions.
const (
	idEther      = 300
	idIPv4       = 310
	idIPv6       = 320
	withPorts    = 1
	withICMP     = 2
	withAllFlags = 3 // with ports, and TCP flags in two bytes
	biflowOffset = 50
	hopOffset    = 200 // to an endpoint of IPv4; twice as much to one of IPv6
)

// standard is the shape of public elements. It has templates for IPv4 and IPv6, each with ports, with ICMP and with
// neither, and one for flows identified by MACs alone; all of them for one direction and for both. TCP flags have one
// byte (RFC 7125 allows it), because some collectors read no other length; records with a flag beyond that byte have
// templates of their own; so have records of frames that leave for another host by a tunnel, with the endpoint there as
// the next hop.
type standard struct {
	ether, four, six [3][2][4]*layout // [no hop, IPv4, IPv6][both directions][none, ports, ICMP, all flags]
	all              []*ipfix.Template
}

// Fields of the standard shape, in order.
var (
	// Totals are before deltas: some collectors have one field for both, in which the last one counts.
	standardPoint = []string{"flowStartMilliseconds", "flowEndMilliseconds", "octetTotalCount", "packetTotalCount",
		"layer2OctetTotalCount",
		"octetDeltaCount", "packetDeltaCount", "layer2OctetDeltaCount", "ingressInterface", "egressInterface",
		"flowDirection",
		"flowEndReason", "flowId", "sourceMacAddress", "destinationMacAddress", "vlanId", "postVlanId", "dot1qVlanId",
		"layer2SegmentId", "ethernetType"}
	standardIP      = []string{"protocolIdentifier", "ipClassOfService", "minimumTTL", "maximumTTL"}
	standardPorts   = []string{"sourceTransportPort", "destinationTransportPort"}
	standardReverse = []string{"biflowDirection", "reverseFlowStartMilliseconds", "reverseFlowEndMilliseconds",
		"reverseOctetTotalCount",
		"reversePacketTotalCount", "reverseLayer2OctetTotalCount", "reverseOctetDeltaCount", "reversePacketDeltaCount",
		"reverseLayer2OctetDeltaCount"}
	standardReverseIP = []string{"reverseIpClassOfService", "reverseMinimumTTL", "reverseMaximumTTL"}
)

func newStandard() (*standard, error) {
	s := &standard{}
	for hop, field := range []string{"", "ipNextHopIPv4Address", "ipNextHopIPv6Address"} {
		for both := range 2 {
			if err := s.layouts(hop, field, both); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(s.all, func(a, b *ipfix.Template) int { return int(a.ID()) - int(b.ID()) })
	return s, nil
}

// layouts makes those of one kind of next hop, which has a field of its own unless that is "".
func (s *standard) layouts(hop int, field string, both int) (err error) {
	for kind := range 4 {
		if s.four[hop][both][kind], err = s.layout(idIPv4+hop*hopOffset, field, both, kind, "sourceIPv4Address",
			"destinationIPv4Address", "icmpTypeCodeIPv4"); err != nil {
			return err
		}
		if s.six[hop][both][kind], err = s.layout(idIPv6+hop*hopOffset, field, both, kind, "sourceIPv6Address",
			"destinationIPv6Address", "icmpTypeCodeIPv6"); err != nil {
			return err
		}
	}
	s.ether[hop][both][0], err = s.layout(idEther+hop*hopOffset, field, both, 0, "", "", "")
	return err
}

func (s *standard) layout(id int, hop string, both, kind int, source, destination, icmp string) (*layout, error) {
	fields := slices.Clone(standardPoint)
	if hop != "" {
		fields = append(fields, hop)
	}
	if source != "" {
		fields = append(append(fields, source, destination), standardIP...)
	}
	flags := map[int]string{withPorts: "cpControlBits/1", withAllFlags: "cpControlBits"}[kind]
	switch kind {
	case withPorts, withAllFlags:
		fields = append(append(fields, standardPorts...), "t"+flags)
	case withICMP:
		fields = append(fields, icmp)
	}
	if both == 1 {
		id += biflowOffset
		fields = append(fields, standardReverse...)
		if source != "" {
			fields = append(fields, standardReverseIP...)
		}
		if flags != "" {
			fields = append(fields, "reverseT"+flags)
		}
	}
	l, err := newLayout(uint16(id+kind), fields...)
	if err == nil {
		s.all = append(s.all, l.t)
	}
	return l, err
}

func (s *standard) templates() []*ipfix.Template { return s.all }
func (s *standard) options() bool                { return true }

func (s *standard) of(r *flow.Record, ports *ports) (*layout, *flow.Record, flow.Ends) {
	both := 0
	if r.Reverse != nil {
		both = 1
	}
	hop := 0
	ends, ok := ports.leaves(r)
	switch {
	case ok && ends.Remote.Is4():
		hop = 1
	case ok:
		hop = 2
	}
	switch r.Key.EtherType {
	case flow.IPv4:
		return s.four[hop][both][kindWithFlags(r)], r, ends
	case flow.IPv6:
		return s.six[hop][both][kindWithFlags(r)], r, ends
	}
	return s.ether[hop][both][0], r, ends
}

// Protocols with ports in a flow.Key, and those of ICMP.
const (
	protoICMP    = 1
	protoTCP     = 6
	protoUDP     = 17
	protoDCCP    = 33
	protoICMPv6  = 58
	protoSCTP    = 132
	protoUDPLite = 136
)

// kindWithFlags is the kind of the flow's template, with regard to the TCP flags of the record.
func kindWithFlags(r *flow.Record) int {
	kind := kindOf(&r.Key)
	if kind == withPorts && (r.Delta.TCPFlags > 0xff || r.Reverse != nil && r.Reverse.Delta.TCPFlags > 0xff) {
		return withAllFlags
	}
	return kind
}

// kindOf is the kind of the flow's template: what the flow has beside its addresses.
func kindOf(k *flow.Key) int {
	switch k.Protocol {
	case protoTCP, protoUDP, protoDCCP, protoSCTP, protoUDPLite:
		return withPorts
	case protoICMP:
		if k.EtherType == flow.IPv4 {
			return withICMP
		}
	case protoICMPv6:
		if k.EtherType == flow.IPv6 {
			return withICMP
		}
	}
	return 0
}
