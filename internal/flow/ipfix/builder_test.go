package ipfix

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

// must is a template of the named fields.
func must(t testing.TB, id uint16, scope int, names ...string) *Template {
	t.Helper()
	fields, err := Fields(names...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := NewTemplate(id, fields...)
	if scope > 0 {
		made, err = NewOptionsTemplate(id, scope, fields...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func builder(t testing.TB, domain, sequence uint32, bound int) *Builder {
	t.Helper()
	b, err := NewBuilder(domain, sequence, bound)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unhex reads hexadecimal bytes with spaces and line ends between them.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBuilderFillsMessagesToTheirBound(t *testing.T) {
	b := builder(t, 7, 4294967290, MinMessage)
	tpl := must(t, 300, 0, "sourceIPv4Address", "protocolIdentifier") // 5 bytes
	at := time.Unix(1700000000, 999e6)
	sent, messages := 0, 0
	for sent < 1000 {
		rec := b.Record(tpl)
		if rec == nil {
			m := b.Message(at)
			if len(m) > MinMessage || len(m) < MinMessage-5-3 {
				t.Fatalf("a message of %d bytes, bound %d", len(m), MinMessage)
			}
			if got, want := uint32(m[8])<<24|uint32(m[9])<<16|uint32(m[10])<<8|uint32(m[11]), uint32(
				(4294967290+messages*((MinMessage-20)/5))%(1<<32)); got != want {
				t.Fatalf("message %d has sequence %d, want %d", messages, got, want)
			}
			messages++
			continue
		}
		sent++
	}
	if b.Message(at) == nil || b.Message(at) != nil {
		t.Error("the last message comes once")
	}
}

func TestRecordsAreZeroUntilFilled(t *testing.T) {
	b := builder(t, 1, 0, 1400)
	tpl := must(t, 256, 0, "octetDeltaCount")
	for range 3 {
		rec := b.Record(tpl)
		if got := hex.EncodeToString(rec); got != "0000000000000000" {
			t.Fatalf("a new record is %s", got)
		}
		tpl.PlaceOf("octetDeltaCount").Unsigned(rec, 0xffffffffffffffff)
		b.Message(time.Unix(0, 0))
	}
}

func TestPaddingIsNeverAsLongAsARecord(t *testing.T) {
	one, three := must(t, 256, 0, "protocolIdentifier"), must(t, 257, 0, "protocolIdentifier", "sourceTransportPort")
	b := builder(t, 1, 0, 1400)
	b.Record(three)[0] = 17
	b.Record(one)[0] = 6
	got := b.Message(time.Unix(0, 0))[headerLength:]
	if want := unhex(t, "0101 0008 110000 00  0100 0005 06"); hex.EncodeToString(got) != hex.EncodeToString(want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestNumbersTooLargeForAFieldAreTheLargest(t *testing.T) {
	for length, want := range map[string]string{"1": "ff", "2": "ffff", "3": "ffffff", "4": "ffffffff",
		"7": "ffffffffffffff", "8": "0123456789abcdef"} {
		t.Run(length, func(t *testing.T) {
			tpl := must(t, 256, 0, "octetDeltaCount/"+length)
			rec := make([]byte, tpl.RecordLength())
			tpl.PlaceOf("octetDeltaCount").Unsigned(rec, 0x0123456789abcdef)
			if got := hex.EncodeToString(rec); got != want {
				t.Errorf("in %s bytes: %s, want %s", length, got, want)
			}
			tpl.PlaceOf("octetDeltaCount").Unsigned(rec, 5)
			if rec[len(rec)-1] != 5 || (len(rec) > 1 && rec[0] != 0) {
				t.Errorf("5 in %s bytes is %x", length, rec)
			}
		})
	}
}

func TestAPlaceThatATemplateLacksWritesNothing(t *testing.T) {
	tpl := must(t, 256, 0, "interfaceName", "octetDeltaCount") // no fixed place behind a variable field
	for _, name := range []string{"packetDeltaCount", "octetDeltaCount", "interfaceName", "nonsense"} {
		p := tpl.PlaceOf(name)
		if p != (Place{}) {
			t.Errorf("%s has place %v", name, p)
		}
		p.Unsigned(nil, 7)
		p.Bytes(nil, []byte{1})
	}
}

func TestBuilderRefuses(t *testing.T) {
	tpl := must(t, 256, 0, "interfaceName", "octetDeltaCount")
	b := builder(t, 1, 0, MinMessage)
	if b.Record(tpl) != nil {
		t.Error("Record gives no bytes for a template with variable fields")
	}
	for name, record := range map[string][]byte{
		"too short": AppendVariable(nil, "eth0"),
		"too long":  append(AppendUnsigned(AppendVariable(nil, "eth0"), 1, 8), 0),
		"too large": AppendUnsigned(AppendVariable(nil, strings.Repeat("x", MinMessage)), 1, 8),
	} {
		t.Run(name, func(t *testing.T) {
			if err := b.Append(tpl, record); err == nil || errors.Is(err, ErrFull) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	record := AppendUnsigned(AppendVariable(nil, strings.Repeat("x", 300)), 1, 8)
	check(t, b.Append(tpl, record))
	if err := b.Append(tpl, record); !errors.Is(err, ErrFull) {
		t.Errorf("a second record of 311 bytes: %v", err)
	}
	for _, bound := range []int{0, MinMessage - 1, 65536} {
		if _, err := NewBuilder(0, 0, bound); err == nil {
			t.Errorf("messages of %d bytes are allowed", bound)
		}
	}
}

func TestTemplatesRefuse(t *testing.T) {
	for want, make := range map[string]func() (*Template, error){
		"want an id of 256":   func() (*Template, error) { return NewTemplate(255, Field{ID: 1, Length: 8}) },
		"not in 1–32767":      func() (*Template, error) { return NewTemplate(256, Field{ID: 32768, Length: 8}) },
		"cannot have 9 bytes": func() (*Template, error) { return NewTemplate(256, Field{ID: 1, Length: 9}) },
		"cannot have 65535 bytes": func() (*Template, error) {
			return NewTemplate(256, Field{ID: 8, Length: Variable})
		},
		"cannot have 5 bytes": func() (*Template, error) { return NewTemplate(256, Field{ID: 320, Length: 5}) },
		"records are empty":   func() (*Template, error) { return NewTemplate(256) },
		"does not fit":        func() (*Template, error) { return NewTemplate(256, Field{ID: 210, Length: 65534}) },
		"0 of 1 fields": func() (*Template, error) {
			return NewOptionsTemplate(256, 0, Field{ID: 1, Length: 8})
		},
		"2 of 1 fields": func() (*Template, error) {
			return NewOptionsTemplate(256, 2, Field{ID: 1, Length: 8})
		},
		"with its 16384 fields": func() (*Template, error) { return NewTemplate(256, manyFields(16384)...) },
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want an error with %q, got %v", want, err)
			}
		})
	}
	if _, err := Fields("octetDeltaCount", "nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := Fields("octetDeltaCount/x"); err == nil {
		t.Error("a length that is no number is taken")
	}
}

func manyFields(n int) []Field {
	fields := make([]Field, n)
	for i := range fields {
		fields[i] = Field{ID: 4, Length: 1}
	}
	return fields
}

func BenchmarkRecord(b *testing.B) {
	tpl := must(b, 256, 0, vdsIPv4...)
	places := make([]Place, tpl.Len())
	for i := range places {
		places[i] = tpl.Place(tpl.Field(i).PEN, tpl.Field(i).ID)
	}
	builder := builder(b, 1, 0, 1472)
	address := []byte{192, 0, 2, 1}
	b.ReportAllocs()
	for i := range b.N {
		rec := builder.Record(tpl)
		if rec == nil {
			builder.Message(time.Unix(0, 0))
			rec = builder.Record(tpl)
		}
		places[0].Bytes(rec, address)
		places[1].Bytes(rec, address)
		for _, p := range places[2:] {
			p.Unsigned(rec, uint64(i))
		}
	}
}

// vdsIPv4 are the fields of templates 256, 264 and 266 of the vds shape (docs/reference/ipfix.md).
var vdsIPv4 = []string{"sourceIPv4Address", "destinationIPv4Address", "octetDeltaCount", "packetDeltaCount",
	"flowStartMilliseconds", "flowEndMilliseconds",
	"sourceTransportPort", "destinationTransportPort", "ingressInterface", "egressInterface", "layer2SegmentId",
	"protocolIdentifier", "flowEndReason",
	"tcpControlBits/1", "ipClassOfService", "maximumTTL", "flowDirection", "ingressInterfaceAttr",
	"egressInterfaceAttr", "vxlanExportRole", "paddingOctets/1"}

func TestEndSetBeginsAnother(t *testing.T) {
	tpl := must(t, 256, 0, "octetDeltaCount")
	for ends, want := range map[bool]int{false: 16 + 4 + 2*8, true: 16 + 2*(4+8)} {
		b := builder(t, 1, 0, 1400)
		for range 2 {
			check(t, b.Template(tpl))
			if ends {
				b.EndSet()
			}
		}
		b.EndSet() // of no set does nothing
		if got := len(b.Message(noon)); got != want {
			t.Errorf("ended %v: a message of %d bytes, want %d", ends, got, want)
		}
	}
}
