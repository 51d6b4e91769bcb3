package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

const (
	// codecMessage is the longest message on a link of MTU 1500 under IPv4 and UDP, in bytes.
	codecMessage = 1500 - 20 - 8
	// codecFlows is how many different records are written in turn.
	codecFlows = 4096
)

// codecShape is a layout of records and how a flow's record is encoded in it.
type codecShape struct {
	name     string
	shape    export.Shape
	biflow   bool
	template *ipfix.Template
	builder  *ipfix.Builder
	places   codecPlaces
	records  []flow.Record
	now      time.Time
}

// codecShapes are the layouts that most records have, as the exporter sends them.
func codecShapes() (shapes []*codecShape, err error) {
	for _, s := range []*codecShape{
		{name: "standard IPv4", shape: export.Standard}, {name: "standard IPv6", shape: export.Standard},
		{name: "standard IPv4, biflow", shape: export.Standard, biflow: true},
		{name: "vds IPv4", shape: export.VDS}, {name: "vds IPv6", shape: export.VDS},
	} {
		s.now = time.Unix(1700000000, 0)
		s.records = codecRecords(strings.HasSuffix(s.name, "IPv6"), s.biflow)
		if s.template, err = exportedTemplate(s.shape, s.records[:1]); err != nil {
			return nil, fmt.Errorf("the layout of %s: %w", s.name, err)
		}
		if s.builder, err = ipfix.NewBuilder(1, 0, codecMessage); err != nil {
			return nil, err
		}
		s.places = placesOf(s.template)
		shapes = append(shapes, s)
	}
	return shapes, nil
}

// exportedTemplate is the template of a record that the exporter sends.
func exportedTemplate(shape export.Shape, record []flow.Record) (found *ipfix.Template, err error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	now := meter.Instant{Wall: time.Unix(1700000000, 0), Up: time.Hour}
	to := export.Collector{Address: "127.0.0.1", Port: conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(), Shape: shape}
	x, err := export.New(now, export.Config{Collectors: []export.Collector{to}})
	if err != nil {
		return nil, err
	}
	x.Export(now, codecPoints(), record)
	x.Close(now)
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return nil, err
	}
	d, b := ipfix.NewDecoder(ipfix.Limits{}), make([]byte, 1<<16)
	for found == nil {
		n, err := conn.Read(b)
		if err != nil {
			return nil, err
		}
		if _, err := d.Decode(ipfix.Session{}, now.Wall, b[:n], func(r *ipfix.Record) error {
			if _, ok := r.Named("flowEndReason"); ok {
				found = r.Template
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// codecPlaces are the positions of a flow's fields in a record; a shape lacks some.
type codecPlaces struct {
	srcMAC, dstMAC, src4, dst4, src6, dst6 ipfix.Place
	key                                    [10]ipfix.Place
	forward, reverse                       [11]ipfix.Place
}

// codecCounts are the elements of the counts in one direction, in the order of fillCounts.
func codecCounts() [11]string {
	return [...]string{"flowStartMilliseconds", "flowEndMilliseconds", "octetDeltaCount", "packetDeltaCount",
		"layer2OctetDeltaCount", "octetTotalCount",
		"packetTotalCount", "layer2OctetTotalCount", "tcpControlBits", "minimumTTL", "maximumTTL"}
}

func placesOf(t *ipfix.Template) codecPlaces {
	p := codecPlaces{srcMAC: t.PlaceOf("sourceMacAddress"), dstMAC: t.PlaceOf("destinationMacAddress"),
		src4: t.PlaceOf("sourceIPv4Address"),
		dst4: t.PlaceOf("destinationIPv4Address"), src6: t.PlaceOf("sourceIPv6Address"),
		dst6: t.PlaceOf("destinationIPv6Address")}
	for i, name := range [...]string{"sourceTransportPort", "destinationTransportPort", "protocolIdentifier",
		"flowDirection", "vlanId", "layer2SegmentId",
		"ethernetType", "ingressInterface", "egressInterface", "flowEndReason"} {
		p.key[i] = t.PlaceOf(name)
	}
	for i, name := range codecCounts() {
		p.forward[i], p.reverse[i] = t.PlaceOf(name), t.PlaceOf("reverse"+strings.ToUpper(name[:1])+name[1:])
	}
	return p
}

func (p *codecPlaces) fill(rec []byte, r *flow.Record) {
	k := &r.Key
	p.srcMAC.Bytes(rec, k.SrcMAC[:])
	p.dstMAC.Bytes(rec, k.DstMAC[:])
	p.src4.Bytes(rec, k.Src[:4])
	p.dst4.Bytes(rec, k.Dst[:4])
	p.src6.Bytes(rec, k.Src[:])
	p.dst6.Bytes(rec, k.Dst[:])
	for i, v := range [...]uint64{uint64(k.SrcPort), uint64(k.DstPort), uint64(k.Protocol), uint64(k.Direction),
		uint64(k.VLAN), uint64(k.VLAN),
		uint64(k.EtherType), uint64(r.Delta.In), uint64(r.Delta.Out), uint64(r.Reason)} {
		p.key[i].Unsigned(rec, v)
	}
	fillCounts(rec, &p.forward, r.Start, &r.Delta, &r.Total)
	if r.Reverse != nil {
		fillCounts(rec, &p.reverse, r.Reverse.Start, &r.Reverse.Delta, &r.Reverse.Total)
	}
}

func fillCounts(rec []byte, places *[11]ipfix.Place, start int64, delta, total *flow.Counts) {
	for i, v := range [...]uint64{uint64(start), uint64(delta.Last), delta.Bytes, delta.Packets, delta.FrameBytes,
		total.Bytes, total.Packets, total.FrameBytes,
		uint64(delta.TCPFlags), uint64(delta.MinTTL), uint64(delta.MaxTTL)} {
		places[i].Unsigned(rec, v)
	}
}

// codecRecords are records of different flows.
func codecRecords(ipv6, biflow bool) []flow.Record {
	records := make([]flow.Record, codecFlows)
	for i := range records {
		n := uint64(i) * 0x9e3779b97f4a7c15 // spread over all bits
		c := flow.Counts{Packets: n>>44 | 1, Bytes: n>>34 | 64, First: 1700000000000 + int64(n>>50),
			Last: 1700000060000 + int64(n>>50), In: 1, Out: 2,
			TCPFlags: uint16(n>>58) & 0x1f, MinTTL: 63, MaxTTL: 64}
		k := flow.Key{Point: 1, VLAN: uint16(i % 4000), EtherType: flow.IPv4, Direction: flow.Egress, Protocol: 6,
			SrcPort: uint16(n >> 40), DstPort: 443}
		binary.BigEndian.PutUint64(k.Src[:], n)
		binary.BigEndian.PutUint64(k.Dst[:], n*3)
		binary.BigEndian.PutUint32(k.SrcMAC[2:], uint32(n>>8))
		binary.BigEndian.PutUint32(k.DstMAC[2:], uint32(n>>16))
		if ipv6 {
			k.EtherType = flow.IPv6
		}
		records[i] = flow.Record{Key: k, Reason: flow.ActiveTimeout, Start: c.First, Delta: c, Total: c}
		if biflow {
			records[i].Reverse = &flow.Reverse{Start: c.First, Delta: c, Total: c}
		}
	}
	return records
}

// encode encodes n records into messages and passes these to send when they are full.
func (s *codecShape) encode(records int, send func([]byte) error) (int, error) {
	for i := range records {
		rec := s.builder.Record(s.template)
		if rec == nil {
			if err := send(s.builder.Message(s.now)); err != nil {
				return i, err
			}
			if rec = s.builder.Record(s.template); rec == nil {
				return i, errors.New("a record does not fit into an empty message")
			}
		}
		s.places.fill(rec, &s.records[i%codecFlows])
	}
	if m := s.builder.Message(s.now); m != nil {
		return records, send(m)
	}
	return records, nil
}

// codecMessages is a run of messages, the first of which has the template.
type codecMessages struct {
	messages [][]byte
	records  int
}

// messages are the messages of n records.
func (s *codecShape) messages(records int) (all codecMessages, err error) {
	all.records = records
	if err := s.builder.Template(s.template); err != nil {
		return all, err
	}
	_, err = s.encode(records, func(m []byte) error { all.messages = append(all.messages, bytes.Clone(m)); return nil })
	return all, err
}

// decode reads messages again and again until n records were read, and checks that they are all there.
func (s *codecShape) decode(records int, from codecMessages) (read int, err error) {
	d := ipfix.NewDecoder(ipfix.Limits{})
	session := ipfix.Session{Protocol: ipfix.UDP, Exporter: netip.MustParseAddrPort("127.0.0.1:1")}
	octets, packets, protocol := s.index("octetDeltaCount"), s.index("packetDeltaCount"), s.index("protocolIdentifier")
	sum := uint64(0)
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
				return read, err
			}
		}
		if read != want+from.records {
			return read, fmt.Errorf("%d of %d records were read", read-want, from.records)
		}
	}
	if sum == 0 {
		return read, errors.New("the records are empty")
	}
	return read, nil
}

func (s *codecShape) index(name string) int {
	e, _ := ipfix.Named(name)
	return s.template.Index(e.PEN, e.ID)
}
