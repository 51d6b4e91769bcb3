package ipfix

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// FuzzDecode reads messages one after the other with one decoder: earlier messages decide how the next is read. The
// input is a series of messages, each preceded by a byte that selects its session and two with its length.
func FuzzDecode(f *testing.F) {
	whole := message(f, 0, rfcTemplateSet, rfcDataSet, rfcOptionsTemplateSet, rfcOptionsDataSet)
	variable := message(f, 0, `0002 0020 0100 0004  0052 ffff  81f4 ffff 00001ad7  0001 0003  8055 0002 00007279`,
		`0100 001c  04 65746830  02 cafe  010203 0405   00 ff 0001 ff  000001 0000  00`)
	f.Add(chain(0, whole))
	f.Add(chain(0, message(f, 0, rfcTemplateSet), message(f, 0, rfcDataSet), message(f, 1000, rfcDataSet)))
	f.Add(chain(1, whole, message(f, 5, `0002 0008 0002 0000`, `0003 0008 0003 0000`, rfcDataSet)))
	f.Add(chain(1, variable, message(f, 2, `0002 000c  0100 0001  0004 0001`, `0100 0008 01020304`)))
	f.Add(chain(2, template(f, 256, 60), template(f, 256, 40), template(f, 257, 30), template(f, 258, 3)))
	f.Fuzz(func(t *testing.T, input []byte) {
		limits := Limits{Domains: 3, Templates: 4, TemplateFields: 50, Fields: 120}
		d := NewDecoder(limits)
		for len(input) >= 3 {
			s := []Session{udp, tcp, exporter(7), exporter(8)}[input[0]&3]
			n := min(int(binary.BigEndian.Uint16(input[1:])), len(input)-3)
			one := input[3 : 3+n : 3+n]
			input = input[3+n:]
			read(t, d, s, one)
			bounded(t, d, limits)
		}
	})
}

// chain is an input of FuzzDecode.
func chain(session byte, messages ...[]byte) []byte {
	var b []byte
	for _, m := range messages {
		b = binary.BigEndian.AppendUint16(append(b, session), uint16(len(m)))
		b = append(b, m...)
	}
	return b
}

// read decodes a message and reads everything in the result.
func read(t *testing.T, d *Decoder, s Session, message []byte) {
	records, bytes := 0, 0
	result, err := d.Decode(s, noon, message, func(r *Record) error {
		records++
		bytes += len(r.Bytes)
		fields := 0
		for i := range r.Template.Len() {
			v := r.Value(i)
			_ = v.String()
			fields += len(v.Bytes)
		}
		if fields > len(r.Bytes) || (!r.Template.Variable() && fields != len(r.Bytes)) {
			t.Fatalf("a record of %d bytes has fields of %d", len(r.Bytes), fields)
		}
		return nil
	})
	if result.Records != records || bytes > len(message) {
		t.Fatalf("%+v, and %d records of %d bytes were handed over, of a message of %d", result, records, bytes,
			len(message))
	}
	var fault *Error
	if err != nil && (!errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(message)) {
		t.Fatalf("%v, of a message of %d bytes", err, len(message))
	}
}

// bounded checks the decoder's state against its limits and its own accounts.
func bounded(t *testing.T, d *Decoder, l Limits) {
	cost, used := 0, map[Session]usage{}
	for _, e := range d.domains {
		it := e.Value.(*domain)
		u := used[it.key.session]
		u.domains++
		if len(it.templates) > l.Templates {
			t.Fatalf("a domain has %d templates, of at most %d", len(it.templates), l.Templates)
		}
		for _, k := range it.templates {
			if k.Len() > l.TemplateFields {
				t.Fatalf("a template has %d fields, of at most %d", k.Len(), l.TemplateFields)
			}
			cost += k.cost()
			u.cost += k.cost()
		}
		used[it.key.session] = u
		if len(it.sequence.gaps) > rememberedGaps {
			t.Fatalf("%d gaps", len(it.sequence.gaps))
		}
	}
	for session, u := range used {
		if got := d.used[session]; got == nil || *got != u {
			t.Fatalf("a session uses %+v, and %+v is in the books", u, got)
		}
	}
	if cost != d.cost || len(used) != len(d.used) || cost > l.Fields || len(d.domains) > l.Domains ||
		d.recent.Len() != len(d.domains) {
		t.Fatalf("%d domains cost %d, and %d is in the books", len(d.domains), cost, d.cost)
	}
}

// FuzzRoundTrip builds messages of any templates and records and reads them again.
func FuzzRoundTrip(f *testing.F) { // Inputs that are too short for what is drawn from them are skipped; these are not.
	for seed := range uint64(4) {
		r, long := rand.New(rand.NewPCG(seed, 1)), make([]byte, 64<<10)
		for k := range long {
			long[k] = byte(r.Uint32())
		}
		f.Add(long)
	}
	f.Fuzz(rapid.MakeFuzz(roundTrip))
}

func TestRoundTrip(t *testing.T) { rapid.Check(t, roundTrip) }
