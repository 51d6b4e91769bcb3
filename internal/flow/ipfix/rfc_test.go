package ipfix

import (
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The messages and sets of RFC 7011 appendix A. Its export time, sequence number and domain are left open there; these
// are ours.
const (
	rfcTemplateSet = `0002 001c  0100 0005  0008 0004  000c 0004  000f 0004  0002 0004  0001 0004` // A.2.1
	rfcDataSet     = `0100 0040
		c000020c c00002fe c0000201 00001391 00518c81
		c000021b c0000217 c0000202 000002ec 0005ef46
		c0000238 c0000241 c0000203 00000005 00001986` // A.3
	rfcOptionsTemplateSet = `0003 0018  0102 0003 0001  008d 0004  0029 0002  002a 0002  0000` // A.4.1
	rfcOptionsDataSet     = `0102 0014  00000001 0159 27d9  00000002 02b2 4fb2`                // A.4.4
	rfcHeader             = `000a 0098  6553f100  0000002a  0000007b`                          // A.1
)

func rfcTemplates(t testing.TB) (flows, options *Template) {
	return must(t, 256, 0, "sourceIPv4Address", "destinationIPv4Address", "ipNextHopIPv4Address", "packetDeltaCount/4",
			"octetDeltaCount/4"),
		must(t, 258, 1, "lineCardId", "exportedMessageTotalCount/2", "exportedFlowRecordTotalCount/2")
}

func TestRFC7011AppendixA_MessageOfTemplatesDataAndOptions(t *testing.T) {
	flows, options := rfcTemplates(t)
	b := builder(t, 123, 42, 1400)
	check(t, b.Template(flows))
	for _, r := range []struct {
		source, destination, hop string
		packets, octets          uint64
	}{
		{"192.0.2.12", "192.0.2.254", "192.0.2.1", 5009, 5344385},
		{"192.0.2.27", "192.0.2.23", "192.0.2.2", 748, 388934},
		{"192.0.2.56", "192.0.2.65", "192.0.2.3", 5, 6534},
	} {
		t.Run(r.source, func(t *testing.T) {
			rec := b.Record(flows)
			flows.PlaceOf("sourceIPv4Address").Bytes(rec, netip.MustParseAddr(r.source).AsSlice())
			flows.PlaceOf("destinationIPv4Address").Bytes(rec, netip.MustParseAddr(r.destination).AsSlice())
			flows.PlaceOf("ipNextHopIPv4Address").Bytes(rec, netip.MustParseAddr(r.hop).AsSlice())
			flows.PlaceOf("packetDeltaCount").Unsigned(rec, r.packets)
			flows.PlaceOf("octetDeltaCount").Unsigned(rec, r.octets)
		})
	}
	check(t, b.Template(options))
	for _, r := range [][3]uint64{{1, 345, 10201}, {2, 690, 20402}} {
		rec := b.Record(options)
		for i, v := range r {
			options.Place(IANA, options.Field(i).ID).Unsigned(rec, v)
		}
	}
	if b.Records() != 5 {
		t.Errorf("%d records, want 5: options records count too", b.Records())
	}
	got := b.Message(time.Unix(0x6553f100, 0))
	want := unhex(t, rfcHeader+rfcTemplateSet+rfcDataSet+rfcOptionsTemplateSet+rfcOptionsDataSet)
	if hex.EncodeToString(got) != hex.EncodeToString(want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	if b.Sequence() != 47 {
		t.Errorf("next sequence number %d, want 47", b.Sequence())
	}
}

// set is the one set of a message of what add adds.
func set(t *testing.T, add func(*Builder) error) string {
	t.Helper()
	b := builder(t, 0, 0, 2000)
	check(t, add(b))
	return hex.EncodeToString(b.Message(time.Unix(0, 0))[headerLength:])
}

func TestRFC7011AppendixA_EnterpriseElements(t *testing.T) {
	const pen = 32473 // for documentation, RFC 5612; the appendix leaves it open
	for name, c := range map[string]struct {
		want   string
		id     uint16
		scope  int
		fields []Field
	}{
		"A.2.2": {`0002 0020  0101 0005  0008 0004  000c 0004  800f 0004 00007ed9  0002 0004  0001 0004`, 257, 0,
			[]Field{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {PEN: pen, ID: 15, Length: 4}, {ID: 2, Length: 4},
				{ID: 1, Length: 4}}},
		"A.4.2": {`0003 001c  0103 0003 0001  008d 0004  0029 0002  802a 0002 00007ed9  0000`, 259, 1,
			[]Field{{ID: 141, Length: 4}, {ID: 41, Length: 2}, {PEN: pen, ID: 42, Length: 2}}},
		"A.4.3": {`0003 001c  0104 0003 0001  808d 0004 00007ed9  0029 0002  002a 0002  0000`, 260, 1,
			[]Field{{PEN: pen, ID: 141, Length: 4}, {ID: 41, Length: 2}, {ID: 42, Length: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			tpl, err := newChecked(c.id, c.scope, c.fields)
			check(t, err)
			if got, want := set(t, func(b *Builder) error { return b.Template(tpl) }), hex.EncodeToString(
				unhex(t, c.want)); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		})
	}
}

func TestRFC7011AppendixA5_VariableLength(t *testing.T) {
	short, long := AppendVariable(nil, "12345"), AppendVariable(nil, make([]byte, 1000))
	if got := hex.EncodeToString(short); got != "05"+hex.EncodeToString([]byte("12345")) {
		t.Errorf("5 octets: %s", got)
	}
	if len(long) != 1003 || hex.EncodeToString(long[:3]) != "ff03e8" {
		t.Errorf("1000 octets begin %x and take %d bytes", long[:3], len(long))
	}
	for n, want := range map[int]int{0: 1, 254: 255, 255: 258, 65535: 65538, 65536: 65538} {
		if got := len(AppendVariable(nil, make([]byte, n))); got != want {
			t.Errorf("a value of %d bytes takes %d, want %d", n, got, want)
		}
	}
}

func TestRFC7011_8_1_Withdrawals(t *testing.T) {
	flows, options := rfcTemplates(t)
	for want, add := range map[string]func(*Builder) error{
		"0002 0008 0100 0000": func(b *Builder) error { return b.Withdraw(flows) },
		"0003 0008 0102 0000": func(b *Builder) error { return b.Withdraw(options) },
		"0002 0008 0002 0000": func(b *Builder) error { return b.WithdrawAll(false) },
		"0003 0008 0003 0000": func(b *Builder) error { return b.WithdrawAll(true) },
		"0002 0008 0100 0000" + rfcTemplateSet: func(b *Builder) error {
			check(t, b.Withdraw(flows))
			return b.Template(flows)
		},
	} {
		if got := set(t, add); got != hex.EncodeToString(unhex(t, want)) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A biflow as RFC 5103 §6 has it: the fields of the other direction have the same numbers and PEN 29305.
func TestRFC5103_BiflowRecord(t *testing.T) {
	tpl := must(t, 256, 0, "sourceIPv4Address", "destinationIPv4Address", "sourceTransportPort",
		"destinationTransportPort", "protocolIdentifier",
		"flowStartSeconds", "octetTotalCount/4", "packetTotalCount/4", "reverseFlowStartSeconds",
		"reverseOctetTotalCount/4", "reversePacketTotalCount/4")
	b := builder(t, 123, 0, 1400)
	check(t, b.Template(tpl))
	rec := b.Record(tpl)
	for name, v := range map[string]uint64{"sourceTransportPort": 32770, "destinationTransportPort": 80,
		"protocolIdentifier": 6, "flowStartSeconds": 1700000000,
		"octetTotalCount": 18000, "packetTotalCount": 65, "reverseFlowStartSeconds": 1700000001,
		"reverseOctetTotalCount": 128000, "reversePacketTotalCount": 110} {
		t.Run(name, func(t *testing.T) {
			tpl.PlaceOf(name).Unsigned(rec, v)
		})
	}
	tpl.PlaceOf("sourceIPv4Address").Bytes(rec, []byte{192, 0, 2, 2})
	tpl.PlaceOf("destinationIPv4Address").Bytes(rec, []byte{192, 0, 2, 3})
	m := b.Message(noon)
	want := hex.EncodeToString(unhex(t,
		`0002 0040  0100 000b  0008 0004  000c 0004  0007 0002  000b 0002  0004 0001  0096 0004
		0055 0004  0056 0004  8096 0004 00007279  8055 0004 00007279  8056 0004 00007279
		0100 002c  c0000202 c0000203 8002 0050 06 6553f100 00004650 00000041 6553f101 0001f400 0000006e 000000`))
	if got := hex.EncodeToString(m[headerLength:]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, got, err := lines(NewDecoder(Limits{}), udp, noon, m)
	check(t, err)
	wantLine := []string{"256 sourceIPv4Address=192.0.2.2 destinationIPv4Address=192.0.2.3 sourceTransportPort=32770 " +
		"destinationTransportPort=80 protocolIdentifier=6 " +
		"flowStartSeconds=2023-11-14T22:13:20Z octetTotalCount=18000 packetTotalCount=65 " +
		"reverseFlowStartSeconds=2023-11-14T22:13:21Z reverseOctetTotalCount=128000 reversePacketTotalCount=110"}
	if d := cmp.Diff(wantLine, got); d != "" {
		t.Error(d)
	}
}
