package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heddle/internal/flow"
	"heddle/internal/ipfix"
)

const (
	// codecMessage is the longest message on a link of MTU 1500 under IPv4 and UDP, in bytes.
	codecMessage = 1500 - 20 - 8
	// codecFlows is how many different records are written in turn.
	codecFlows = 4096
)

// codecShape is a layout of records and how a flow's record is written in it.
type codecShape struct {
	name     string
	template *ipfix.Template
	builder  *ipfix.Builder
	places   codecPlaces
	records  []flow.Record
	now      time.Time
}

// Fields of the shapes, in the order in which they are sent.
func codecFields() map[string][]string {
	vds := []string{"octetDeltaCount", "packetDeltaCount", "flowStartMilliseconds", "flowEndMilliseconds", "sourceTransportPort", "destinationTransportPort",
		"ingressInterface", "egressInterface", "layer2SegmentId", "protocolIdentifier", "flowEndReason", "tcpControlBits/1", "ipClassOfService", "maximumTTL",
		"flowDirection", "ingressInterfaceAttr", "egressInterfaceAttr", "vxlanExportRole", "paddingOctets/1"}
	standard := []string{"sourceTransportPort", "destinationTransportPort", "protocolIdentifier", "flowDirection", "sourceMacAddress", "destinationMacAddress", "vlanId",
		"ethernetType", "ingressInterface", "egressInterface", "observationPointId", "flowStartMilliseconds", "flowEndMilliseconds", "octetDeltaCount",
		"packetDeltaCount", "octetTotalCount", "packetTotalCount", "tcpControlBits", "ipClassOfService", "minimumTTL", "maximumTTL", "flowEndReason"}
	reverse := []string{"reverseFlowStartMilliseconds", "reverseFlowEndMilliseconds", "reverseOctetDeltaCount", "reversePacketDeltaCount",
		"reverseOctetTotalCount", "reversePacketTotalCount", "reverseTcpControlBits"}
	ipv4, ipv6 := []string{"sourceIPv4Address", "destinationIPv4Address"}, []string{"sourceIPv6Address", "destinationIPv6Address"}
	return map[string][]string{
		"standard IPv4": slices.Concat(ipv4, standard), "standard IPv6": slices.Concat(ipv6, standard),
		"standard IPv4, biflow": slices.Concat(ipv4, standard, reverse),
		"vds IPv4":              slices.Concat(ipv4, vds), "vds IPv6": slices.Concat(ipv6, vds),
	}
}

func codecShapes() (shapes []*codecShape, err error) {
	all := codecFields()
	for i, name := range []string{"standard IPv4", "standard IPv6", "standard IPv4, biflow", "vds IPv4", "vds IPv6"} {
		fields, err := ipfix.Fields(all[name]...)
		if err != nil {
			return nil, err
		}
		s := &codecShape{name: name, now: time.Unix(1700000000, 0)}
		if s.template, err = ipfix.NewTemplate(uint16(256+i), fields...); err != nil {
			return nil, err
		}
		if s.builder, err = ipfix.NewBuilder(1, 0, codecMessage); err != nil {
			return nil, err
		}
		s.places = placesOf(s.template)
		s.records = codecRecords(strings.HasSuffix(name, "IPv6"))
		shapes = append(shapes, s)
	}
	return shapes, nil
}

// codecPlaces are where a record has what is known of a flow; a shape lacks some.
type codecPlaces struct {
	src4, dst4, src6, dst6, srcPort, dstPort, protocol, direction, srcMAC, dstMAC, vlan, etherType, in, out, point, segment ipfix.Place
	inKind, outKind, reason, minTTL, maxTTL                                                                                 ipfix.Place
	forward, reverse                                                                                                        countPlaces
}

// countPlaces are those of one direction.
type countPlaces struct{ start, end, octets, packets, octetsTotal, packetsTotal, flags, tos ipfix.Place }

func placesOf(t *ipfix.Template) codecPlaces {
	return codecPlaces{
		src4: t.PlaceOf("sourceIPv4Address"), dst4: t.PlaceOf("destinationIPv4Address"), src6: t.PlaceOf("sourceIPv6Address"), dst6: t.PlaceOf("destinationIPv6Address"),
		srcPort: t.PlaceOf("sourceTransportPort"), dstPort: t.PlaceOf("destinationTransportPort"), protocol: t.PlaceOf("protocolIdentifier"),
		direction: t.PlaceOf("flowDirection"), srcMAC: t.PlaceOf("sourceMacAddress"), dstMAC: t.PlaceOf("destinationMacAddress"), vlan: t.PlaceOf("vlanId"),
		etherType: t.PlaceOf("ethernetType"), in: t.PlaceOf("ingressInterface"), out: t.PlaceOf("egressInterface"), point: t.PlaceOf("observationPointId"),
		segment: t.PlaceOf("layer2SegmentId"), inKind: t.PlaceOf("ingressInterfaceAttr"), outKind: t.PlaceOf("egressInterfaceAttr"), reason: t.PlaceOf("flowEndReason"),
		minTTL: t.PlaceOf("minimumTTL"), maxTTL: t.PlaceOf("maximumTTL"),
		forward: countPlaces{t.PlaceOf("flowStartMilliseconds"), t.PlaceOf("flowEndMilliseconds"), t.PlaceOf("octetDeltaCount"), t.PlaceOf("packetDeltaCount"),
			t.PlaceOf("octetTotalCount"), t.PlaceOf("packetTotalCount"), t.PlaceOf("tcpControlBits"), t.PlaceOf("ipClassOfService")},
		reverse: countPlaces{t.PlaceOf("reverseFlowStartMilliseconds"), t.PlaceOf("reverseFlowEndMilliseconds"), t.PlaceOf("reverseOctetDeltaCount"),
			t.PlaceOf("reversePacketDeltaCount"), t.PlaceOf("reverseOctetTotalCount"), t.PlaceOf("reversePacketTotalCount"), t.PlaceOf("reverseTcpControlBits"), ipfix.Place{}},
	}
}

func (p *codecPlaces) fill(rec []byte, r *flow.Record) {
	k := &r.Key
	p.src4.Bytes(rec, k.Src[:4])
	p.dst4.Bytes(rec, k.Dst[:4])
	p.src6.Bytes(rec, k.Src[:])
	p.dst6.Bytes(rec, k.Dst[:])
	p.srcPort.Unsigned(rec, uint64(k.SrcPort))
	p.dstPort.Unsigned(rec, uint64(k.DstPort))
	p.protocol.Unsigned(rec, uint64(k.Protocol))
	p.direction.Unsigned(rec, uint64(k.Direction))
	p.srcMAC.Bytes(rec, k.SrcMAC[:])
	p.dstMAC.Bytes(rec, k.DstMAC[:])
	p.vlan.Unsigned(rec, uint64(k.VLAN))
	p.etherType.Unsigned(rec, uint64(k.EtherType))
	p.point.Unsigned(rec, uint64(k.Point))
	p.segment.Unsigned(rec, uint64(k.VLAN))
	p.in.Unsigned(rec, uint64(r.Delta.In))
	p.out.Unsigned(rec, uint64(r.Delta.Out))
	p.inKind.Unsigned(rec, 2)
	p.outKind.Unsigned(rec, 1)
	p.reason.Unsigned(rec, uint64(r.Reason))
	p.minTTL.Unsigned(rec, uint64(r.Delta.MinTTL))
	p.maxTTL.Unsigned(rec, uint64(r.Delta.MaxTTL))
	p.forward.fill(rec, r.Start, &r.Delta, &r.Total)
	if r.Reverse != nil {
		p.reverse.fill(rec, r.Reverse.Start, &r.Reverse.Delta, &r.Reverse.Total)
	}
}

func (p *countPlaces) fill(rec []byte, start int64, delta, total *flow.Counts) {
	p.start.Unsigned(rec, uint64(start))
	p.end.Unsigned(rec, uint64(delta.Last))
	p.octets.Unsigned(rec, delta.Bytes)
	p.packets.Unsigned(rec, delta.Packets)
	p.octetsTotal.Unsigned(rec, total.Bytes)
	p.packetsTotal.Unsigned(rec, total.Packets)
	p.flags.Unsigned(rec, uint64(delta.TCPFlags))
	p.tos.Unsigned(rec, uint64(delta.TOS))
}

// codecRecords are records of different flows.
func codecRecords(ipv6 bool) []flow.Record {
	records := make([]flow.Record, codecFlows)
	for i := range records {
		n := uint64(i) * 0x9e3779b97f4a7c15 // spread over all bits
		c := flow.Counts{Packets: n >> 44, Bytes: n >> 34, First: 1700000000000 + int64(n>>50), Last: 1700000060000 + int64(n>>50), In: uint16(i), Out: 1,
			TCPFlags: uint16(n>>58) & 0x1f, MinTTL: 63, MaxTTL: 64}
		k := flow.Key{Point: uint16(i % 100), VLAN: uint16(i % 4000), EtherType: flow.IPv4, Direction: flow.Egress, Protocol: 6, SrcPort: uint16(n >> 40), DstPort: 443}
		binary.BigEndian.PutUint64(k.Src[:], n)
		binary.BigEndian.PutUint64(k.Dst[:], n*3)
		binary.BigEndian.PutUint32(k.SrcMAC[2:], uint32(n>>8))
		binary.BigEndian.PutUint32(k.DstMAC[2:], uint32(n>>16))
		if ipv6 {
			k.EtherType = flow.IPv6
		}
		records[i] = flow.Record{Key: k, Reason: flow.ActiveTimeout, Start: c.First, Delta: c, Total: c, Reverse: &flow.Reverse{Start: c.First, Delta: c, Total: c}}
	}
	return records
}

// encode writes so many records into messages and hands them over when they are full.
func (s *codecShape) encode(records int, send func([]byte) error) error {
	for i := range records {
		rec := s.builder.Record(s.template)
		if rec == nil {
			if err := send(s.builder.Message(s.now)); err != nil {
				return err
			}
			if rec = s.builder.Record(s.template); rec == nil {
				return errors.New("a record does not fit into an empty message")
			}
		}
		s.places.fill(rec, &s.records[i%codecFlows])
	}
	if m := s.builder.Message(s.now); m != nil {
		return send(m)
	}
	return nil
}

// codecMessages is a run of messages, the first of which has the template.
type codecMessages struct {
	messages [][]byte
	records  int
}

// messages are those of so many records.
func (s *codecShape) messages(records int) (all codecMessages, err error) {
	all.records = records
	if err := s.builder.Template(s.template); err != nil {
		return all, err
	}
	err = s.encode(records, func(m []byte) error { all.messages = append(all.messages, bytes.Clone(m)); return nil })
	return all, err
}

// decode reads messages again and again until so many records were read, and checks that they are all there.
func (s *codecShape) decode(records int, from codecMessages) error {
	d := ipfix.NewDecoder(ipfix.Limits{})
	session := ipfix.Session{Protocol: ipfix.UDP, Exporter: netip.MustParseAddrPort("127.0.0.1:1")}
	octets, packets, protocol := s.index("octetDeltaCount"), s.index("packetDeltaCount"), s.index("protocolIdentifier")
	read, sum := 0, uint64(0)
	visit := func(r *ipfix.Record) error {
		read++
		for _, i := range [...]int{octets, packets, protocol} {
			n, err := r.Value(i).Unsigned()
			if err != nil {
				return err
			}
			sum += n
		}
		return nil
	}
	for want := 0; read < records; want += from.records {
		for _, m := range from.messages {
			if _, err := d.Decode(session, s.now, m, visit); err != nil {
				return err
			}
		}
		if read != want+from.records {
			return fmt.Errorf("%d of %d records were read", read-want, from.records)
		}
	}
	if sum == 0 {
		return errors.New("the records are empty")
	}
	return nil
}

func (s *codecShape) index(name string) int {
	e, _ := ipfix.Named(name)
	return s.template.Index(e.PEN, e.ID)
}

// loopback is a pair of UDP sockets of this machine. What one sends, the other receives and forgets.
type loopback struct {
	sender   *net.UDPConn
	receiver *net.UDPConn
	done     chan struct{}
}

func newLoopback() (*loopback, error) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("a socket that receives: %w", err)
	}
	sender, err := net.DialUDP("udp4", nil, receiver.LocalAddr().(*net.UDPAddr))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a socket that sends: %w", err), receiver.Close())
	}
	l := &loopback{sender: sender, receiver: receiver, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		b := make([]byte, 1<<16)
		for {
			if _, err := l.receiver.Read(b); err != nil {
				return // closed
			}
		}
	}()
	return l, nil
}

func (l *loopback) send(m []byte) error {
	_, err := l.sender.Write(m)
	return err
}

func (l *loopback) close() error {
	err := errors.Join(l.sender.Close(), l.receiver.Close())
	<-l.done
	return err
}
