package ipfix

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/netsampler/goflow2/v2/decoders/netflow"

	"heddle/internal/test/testkit"
)

// filled is a record whose fields have different bytes, all valid for their types.
func filled(tpl *Template, seed byte) []byte {
	var record []byte
	for i, f := range tpl.fields {
		n := int(f.Length)
		if f.Length == Variable {
			n = []int{0, 4, 300}[int(seed)%3]
		}
		v := make([]byte, n)
		for k := range v {
			switch f.Element().Type {
			case String:
				v[k] = 'a' + (seed+byte(i+k))%26
			case DateTimeSeconds, DateTimeMilliseconds, DateTimeMicroseconds, DateTimeNanoseconds:
				v[k] = seed % 3 // a year that every program can show
			default:
				v[k] = seed*16 + byte(i*5+k)
			}
		}
		if f.Length == Variable {
			record = AppendVariable(record, v)
		} else {
			record = append(record, v...)
		}
	}
	return record
}

// interopMessages are messages with all that we send: enterprise and reverse elements, options, reduced sizes, variable
// lengths.
func interopMessages(t *testing.T) [][]byte {
	ipv6 := slices.Concat([]string{"sourceIPv6Address", "destinationIPv6Address"}, vdsIPv4[2:])
	templates := []*Template{
		must(t, 256, 0, vdsIPv4...), must(t, 258, 0, ipv6...),
		must(t, 300, 0, "sourceMacAddress", "destinationMacAddress", "vlanId", "ethernetType", "octetDeltaCount/5",
			"packetDeltaCount/4", "flowStartMicroseconds",
			"icmpTypeCodeIPv4", "tcpControlBits", "reverseOctetDeltaCount", "reversePacketDeltaCount/3",
			"reverseFlowStartMilliseconds", "biflowDirection"),
		must(t, 301, 1, "ingressInterface", "interfaceName", "interfaceDescription"),
		must(t, 302, 2, "meteringProcessId", "selectorId", "samplingPacketInterval", "samplingPacketSpace",
			"ignoredPacketTotalCount"),
	}
	b := builder(t, 99, 4294967200, 1400)
	var messages [][]byte
	add := func(try func() error) {
		err := try()
		if errors.Is(err, ErrFull) {
			messages = append(messages, bytes.Clone(b.Message(noon)))
			err = try()
		}
		check(t, err)
	}
	for _, tpl := range templates {
		add(func() error { return b.Template(tpl) })
	}
	for seed := range byte(12) {
		for _, tpl := range templates {
			add(func() error { return b.Append(tpl, filled(tpl, seed)) })
		}
	}
	return append(messages, bytes.Clone(b.Message(noon)))
}

// TestGoflow2ReadsEveryField decodes what we send with an independent program, and compares every field.
func TestGoflow2ReadsEveryField(t *testing.T) {
	templates := netflow.CreateTemplateSystem()
	ours := NewDecoder(Limits{})
	records := 0
	for _, m := range interopMessages(t) {
		var packet netflow.IPFIXPacket
		if err := netflow.DecodeMessageVersion(bytes.NewBuffer(m), templates, nil, &packet); err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, set := range packet.FlowSets {
			got = append(got, goflow2Records(t, set)...)
		}
		_, err := ours.Decode(udp, noon, m, func(r *Record) error {
			records++
			want = append(want, flat(r))
			return nil
		})
		check(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Error("goflow2 reads +, we -:", d)
		}
	}
	if records != 60 {
		t.Errorf("%d records, want 60", records)
	}
}

// flat is a record as numbers and bytes of its fields.
func flat(r *Record) string {
	var s strings.Builder
	for i := range r.Template.Len() {
		v := r.Value(i)
		fmt.Fprintf(&s, "%d/%d=%x ", v.Field.PEN, v.Field.ID, v.Bytes)
	}
	return s.String()
}

func goflow2Records(t *testing.T, set any) (records []string) {
	one := func(fields []netflow.DataField) string {
		var s strings.Builder
		for _, f := range fields {
			fmt.Fprintf(&s, "%d/%d=%x ", f.Pen, f.Type, f.Value)
		}
		return s.String()
	}
	switch set := set.(type) {
	case netflow.DataFlowSet:
		for _, r := range set.Records {
			records = append(records, one(r.Values))
		}
	case netflow.OptionsDataFlowSet:
		for _, r := range set.Records {
			records = append(records, one(slices.Concat(r.ScopesValues, r.OptionsValues)))
		}
	case netflow.RawFlowSet:
		t.Error("goflow2 knows no template for a set")
	}
	return records
}

// TestTsharkReadsEveryField makes tshark dissect our messages: at the position of every field it must see one, with the
// same bytes.
func TestTsharkReadsEveryField(t *testing.T) {
	messages := interopMessages(t)
	var frames [][]byte
	for _, m := range messages {
		frames = append(frames, datagram(m))
	}
	packets := pdml(t, testkit.Tshark(t, frames, "-d", "udp.port==4739,cflow", "-T", "pdml"))
	if len(packets) != len(messages) {
		t.Fatalf("%d packets of %d", len(packets), len(messages))
	}
	ours := NewDecoder(Limits{})
	for i, m := range messages {
		if packets[i].faults != "" {
			t.Errorf("message %d: tshark says %s", i, packets[i].faults)
		}
		_, err := ours.Decode(udp, noon, m, func(r *Record) error {
			for k := range r.Template.Len() {
				if v := r.Value(k); len(v.Bytes) > 0 {
					at := offset(m, v.Bytes) + datagramHeader
					if got := packets[i].values[at]; !slices.ContainsFunc(got, func(s string) bool {
						return sees(v, s)
					}) {
						t.Errorf("message %d, byte %d, %s: tshark sees %v, want %x", i, at, v.Element(), got, v.Bytes)
					}
				}
			}
			return nil
		})
		check(t, err)
	}
}

// sees reports whether tshark's bytes are the value. For times in the format of NTP, and for reverse elements of such
// times, it only marks the first half.
func sees(v Value, shown string) bool {
	want := hex.EncodeToString(v.Bytes)
	half := v.Field.PEN == Reverse || v.Element().Type == DateTimeMicroseconds
	return shown == want || (half && v.Field.Length == 8 && shown == want[:8])
}

// offset is where a part of a message begins.
func offset(message, part []byte) int {
	for i := range message {
		if &message[i] == &part[0] {
			return i
		}
	}
	return -1
}

// datagramHeader is how many bytes are before the message in a datagram.
const datagramHeader = 14 + 20 + 8

// datagram puts a message into an Ethernet frame of UDP over IPv4.
func datagram(message []byte) []byte {
	b := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0},
		binary.BigEndian.AppendUint16(nil, uint16(28+len(message)))...)
	b = append(b, 0, 0, 0, 0, 64, 17, 0, 0)
	b = append(append(b, netip.MustParseAddr("192.0.2.1").AsSlice()...), netip.MustParseAddr("192.0.2.2").AsSlice()...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, 40000), 4739)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(8+len(message))), 0)
	return append(b, message...)
}

// dissected is what tshark found in a packet.
type dissected struct {
	values map[int][]string // by their offset in the frame, in hexadecimal
	faults string           // what it complains about
}

// pdml reads tshark's XML.
func pdml(t *testing.T, text []byte) (packets []dissected) {
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return packets
		}
		check(t, err)
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		a := map[string]string{}
		for _, x := range start.Attr {
			a[x.Name.Local] = x.Value
		}
		switch {
		case start.Name.Local == "packet":
			packets = append(packets, dissected{values: map[int][]string{}})
		case len(packets) == 0:
		case a["name"] == "_ws.expert.message" || a["name"] == "_ws.malformed":
			packets[len(packets)-1].faults += fmt.Sprintln(slices.Sorted(maps.Values(a)))
		case strings.HasPrefix(a["name"], "cflow."):
			at, err := strconv.Atoi(a["pos"])
			check(t, err)
			packets[len(packets)-1].values[at] = append(packets[len(packets)-1].values[at], a["value"])
		}
	}
}
