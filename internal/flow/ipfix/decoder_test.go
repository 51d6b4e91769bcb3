package ipfix

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	udp = Session{Protocol: UDP, Exporter: netip.MustParseAddrPort("192.0.2.1:1000"),
		Collector: netip.MustParseAddrPort("192.0.2.2:4739")}
	tcp  = Session{Protocol: TCP, Exporter: udp.Exporter, Collector: udp.Collector}
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// lines reads a message and shows every record as one line: the template and the named values.
func lines(d *Decoder, s Session, at time.Time, message []byte) (Result, []string, error) {
	var got []string
	r, err := d.Decode(s, at, message, func(r *Record) error {
		words := []string{fmt.Sprint(r.Template.ID())}
		for i := range r.Template.Len() {
			v := r.Value(i)
			words = append(words, fmt.Sprintf("%s=%s", v.Element(), v))
		}
		got = append(got, strings.Join(words, " "))
		return nil
	})
	return r, got, err
}

// message puts a header before sets in hexadecimal.
func message(t testing.TB, sequence uint32, sets ...string) []byte {
	t.Helper()
	body := unhex(t, strings.Join(sets, ""))
	b := AppendUnsigned(AppendUnsigned(nil, version, 2), uint64(headerLength+len(body)), 2)
	b = AppendUnsigned(AppendUnsigned(AppendUnsigned(b, 1700000000, 4), uint64(sequence), 4), 123, 4)
	return append(b, body...)
}

func TestRFC7011AppendixA_IsRead(t *testing.T) {
	d := NewDecoder(Limits{})
	r, got, err := lines(d, udp, noon, unhex(t, rfcHeader+rfcTemplateSet+rfcDataSet+rfcOptionsTemplateSet+
		rfcOptionsDataSet))
	check(t, err)
	want := []string{
		"256 sourceIPv4Address=192.0.2.12 destinationIPv4Address=192.0.2.254 ipNextHopIPv4Address=192.0.2.1 " +
			"packetDeltaCount=5009 octetDeltaCount=5344385",
		"256 sourceIPv4Address=192.0.2.27 destinationIPv4Address=192.0.2.23 ipNextHopIPv4Address=192.0.2.2 " +
			"packetDeltaCount=748 octetDeltaCount=388934",
		"256 sourceIPv4Address=192.0.2.56 destinationIPv4Address=192.0.2.65 ipNextHopIPv4Address=192.0.2.3 " +
			"packetDeltaCount=5 octetDeltaCount=6534",
		"258 lineCardId=1 exportedMessageTotalCount=345 exportedFlowRecordTotalCount=10201",
		"258 lineCardId=2 exportedMessageTotalCount=690 exportedFlowRecordTotalCount=20402",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	wantResult := Result{Header: Header{152, time.Unix(0x6553f100, 0).UTC(), 42, 123}, Records: 5, Templates: 2}
	if d := cmp.Diff(wantResult, r); d != "" {
		t.Error(d)
	}
}

func TestDataBeforeItsTemplateIsCountedAndDropped(t *testing.T) {
	d := NewDecoder(Limits{})
	r, got, err := lines(d, udp, noon, message(t, 0, rfcDataSet))
	if err != nil || r.Unknown != 1 || r.Records != 0 || got != nil {
		t.Errorf("without template: %+v, %v, %v", r, got, err)
	}
	r, got, err = lines(d, udp, noon, message(t, 3, rfcTemplateSet, rfcDataSet))
	if err != nil || r.Unknown != 0 || len(got) != 3 || r.Lost != 0 {
		t.Errorf("with template: %+v, %v, %v", r, got, err)
	}
	for name, other := range map[string]Session{"another address": {UDP, netip.MustParseAddrPort("192.0.2.3:1000"),
		udp.Collector}, "another transport": tcp} {
		t.Run(name, func(t *testing.T) {
			if r, _, err := lines(d, other, noon, message(t, 0, rfcDataSet)); err != nil || r.Unknown != 1 {
				t.Errorf("%s has a session of its own: %+v, %v", name, r, err)
			}
		})
	}
}

func TestTemplatesAgeOverUDPAlone(t *testing.T) {
	d := NewDecoder(Limits{Lifetime: time.Minute})
	for _, s := range []Session{udp, tcp} {
		for i, c := range []struct {
			after   time.Duration
			sets    string
			records int
		}{{0, rfcTemplateSet, 0}, {time.Minute, rfcDataSet, 3}, {time.Minute, rfcTemplateSet, 0},
			{2 * time.Minute, rfcDataSet, 3}, {2*time.Minute + 1, rfcDataSet, 0}} {
			want := c.records
			if s == tcp && i == 4 {
				want = 3
			}
			if r, _, err := lines(d, s, noon.Add(c.after), message(t, 0, c.sets)); err != nil || r.Records != want {
				t.Errorf("protocol %d, step %d: %+v, %v, want %d records", s.Protocol, i, r, err, want)
			}
		}
	}
}

func TestTemplateIsRedefinedAndWithdrawn(t *testing.T) {
	const other = `0002 000c  0100 0001  0004 0001`
	for _, c := range []struct {
		name      string
		session   Session
		sets      string
		records   int
		redefined int
		withdrawn int
	}{
		{"the same again", udp, rfcTemplateSet + rfcTemplateSet + rfcDataSet, 3, 0, 0},
		{"another layout", udp, rfcTemplateSet + other + `0100 0008 01020304`, 4, 1, 0},
		{"withdrawn", tcp, rfcTemplateSet + `0002 0008 0100 0000` + rfcDataSet, 0, 0, 1},
		{"withdrawn over UDP", udp, rfcTemplateSet + `0002 0008 0100 0000` + rfcDataSet, 3, 0, 0},
		{"all withdrawn", tcp, rfcTemplateSet + rfcOptionsTemplateSet + `0002 0008 0002 0000` + rfcDataSet +
			rfcOptionsDataSet, 2, 0, 1},
		{"all options withdrawn", tcp, rfcTemplateSet + rfcOptionsTemplateSet + `0003 0008 0003 0000` + rfcDataSet +
			rfcOptionsDataSet, 3, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := lines(NewDecoder(Limits{}), c.session, noon, message(t, 0, c.sets))
			if err != nil || r.Records != c.records || r.Redefined != c.redefined || r.Withdrawn != c.withdrawn {
				t.Errorf("%s: %+v, %v", c.name, r, err)
			}
		})
	}
}

func TestFaultsNameTheirByte(t *testing.T) {
	whole := message(t, 0, rfcTemplateSet, rfcDataSet)
	for _, c := range []struct {
		name    string
		message []byte
		offset  int
		says    string
	}{
		{"nothing", nil, 0, "header of 16 bytes"},
		{"half a header", whole[:9], 9, "there are 9"},
		{"NetFlow 9", append([]byte{0, 9}, whole[2:]...), 0, "version 9, want 10"},
		{"cut", whole[:40], 2, "says it has 108 bytes, and there are 40"},
		{"more than said", append(whole[:len(whole):len(whole)], 0), 2, "and there are 109"},
		{"length 5", append([]byte{0, 10, 0, 5}, whole[4:]...), 2, "want at least 16"},
		{"set of 3 bytes", message(t, 0, `0100 0003`), 18, "want 4–4"},
		{"set longer than the message", message(t, 0, `0100 0009 00000000`), 18, "want 4–8"},
		{"half a set header", message(t, 0, `0100 0004 01`), 20, "1 are left"},
		{"template id 255", message(t, 0, `0002 000c 00ff 0001 0001 0004`), 20, "template id 255"},
		{"template of 64 k fields", message(t, 0, `0002 000c 0100 ffff 0001 0004`), 22,
			"65535 fields take at least 262140 bytes, and 4 are left"},
		{"field cut", message(t, 0, `0002 0010 0100 0002 8001 0004 00001ae0`), 24 + 8, "field 1 of 2"},
		{"enterprise number cut", message(t, 0, `0002 000c 0100 0001 8001 0004`), 24, "field 0 of 1"},
		{"empty records", message(t, 0, `0002 000c 0100 0001 0001 0000`), 20, "have 0 bytes"},
		{"records longer than messages", message(t, 0, `0002 0010 0100 0002 0001 fff0 0001 0010`), 20,
			"have 65536 bytes"},
		{"no scope", message(t, 0, `0003 000e 0100 0001 0000 0001 0004`), 24, "0 of 1 fields are its scope"},
		{"too much scope", message(t, 0, `0003 000e 0100 0001 0002 0001 0004`), 24, "2 of 1 fields are its scope"},
		{"scope cut", message(t, 0, `0003 0008 0100 0001`), 24, "0 are left"},
		{"variable value cut", message(t, 0, `0002 000c 0100 0001 0052 ffff`, `0100 0008 03 616263  0100 0007 03 6162`),
			28 + 8 + 4, "a value of 3 bytes where 2 are left"},
		{"long variable length cut", message(t, 0, `0002 000c 0100 0001 0052 ffff`, `0100 0006 ff 00`), 32,
			"field 0, interfaceName"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := lines(NewDecoder(Limits{}), udp, noon, c.message)
			var fault *Error
			if !errors.As(err, &fault) || fault.Offset != c.offset || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want byte %d: … %s", c.name, err, c.offset, c.says)
			}
		})
	}
}

func TestNothingIsTakenFromAMessageWhoseSetsLie(t *testing.T) {
	d := NewDecoder(Limits{})
	r, got, err := lines(d, udp, noon, message(t, 0, rfcTemplateSet, rfcDataSet, `0100 0100`))
	if err == nil || got != nil || r.Templates != 0 {
		t.Errorf("%+v, %v, %v", r, got, err)
	}
	if r, _, _ := lines(d, udp, noon, message(t, 0, rfcDataSet)); r.Unknown != 1 {
		t.Errorf("its template was kept: %+v", r)
	}
}

func TestVisitEndsTheReading(t *testing.T) {
	stop := errors.New("enough")
	seen := 0
	_, err := NewDecoder(Limits{}).Decode(udp, noon, message(t, 0, rfcTemplateSet, rfcDataSet), func(*Record) error {
		seen++
		return stop
	})
	if err != stop || seen != 1 {
		t.Errorf("%v after %d records", err, seen)
	}
}

func TestReservedSetsAndPaddingAreSkipped(t *testing.T) {
	r, got, err := lines(NewDecoder(Limits{}), udp, noon, message(t, 0, `0000 0005 01`, `00ff 0004`, rfcTemplateSet,
		`0100 0020
		c000020c c00002fe c0000201 00001391 00518c81  00000000 00000000`))
	if err != nil || r.Reserved != 2 || len(got) != 1 {
		t.Errorf("%+v, %v, %v", r, got, err)
	}
}

func TestVariableValuesAndUnknownElements(t *testing.T) {
	_, got, err := lines(NewDecoder(Limits{}), udp, noon,
		message(t, 0, `0002 0020 0100 0004  0052 ffff  81f4 ffff 00001ad7  0001 0003  8055 0002 00007279`,
			`0100 001c  04 65746830  02 cafe  010203 0405   00 ff 0001 ff  000001 0000  00`))
	check(t, err)
	want := []string{
		`256 interfaceName="eth0" 6871/500=0xcafe octetDeltaCount=66051 reverseOctetTotalCount=1029`,
		`256 interfaceName="" 6871/500=0xff octetDeltaCount=1 reverseOctetTotalCount=0`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRecordsAreReadByName(t *testing.T) {
	var kept []*Record
	_, err := NewDecoder(Limits{}).Decode(udp, noon, message(t, 0, rfcOptionsTemplateSet, rfcOptionsDataSet,
		`0002 000c 0100 0001 0052 ffff`, `0100 0009 04 65746830`),
		func(r *Record) error { kept = append(kept, r.Clone()); return nil })
	check(t, err)
	if got := kept[1].Template.Scope(); got != 1 {
		t.Errorf("%d fields are scope", got)
	}
	if v, ok := kept[1].Named("exportedFlowRecordTotalCount"); !ok || v.String() != "20402" {
		t.Errorf("%v, %v", v, ok)
	}
	if v, ok := kept[2].Named("interfaceName"); !ok || v.String() != `"eth0"` {
		t.Errorf("%v, %v", v, ok)
	}
	for _, name := range []string{"octetDeltaCount", "nonsense"} {
		if v, ok := kept[2].Named(name); ok {
			t.Errorf("%s is %v", name, v)
		}
	}
}

func TestASequenceForEachCollector(t *testing.T) {
	d := NewDecoder(Limits{})
	for i, sequence := range []uint32{7, 10, 20} {
		m := message(t, 0, rfcTemplateSet, rfcDataSet)
		SetSequence(m, sequence)
		if r, _, err := lines(d, udp, noon, m); err != nil || r.Header.Sequence != sequence ||
			r.Lost != []int64{0, 0, 7}[i] {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if lost, restarts := d.Lost(udp, 123); lost != 7 || restarts != 0 {
		t.Errorf("lost %d, restarts %d", lost, restarts)
	}
	if lost, restarts := d.Lost(tcp, 123); lost+restarts != 0 {
		t.Errorf("of a session that was not heard: lost %d, restarts %d", lost, restarts)
	}
}
