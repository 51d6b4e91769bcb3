package ipfix

import (
	"bytes"
	"errors"
	"fmt"

	"pgregory.net/rapid"
)

// drawnTemplate is any template of up to 12 fields, with lengths that the types of registered elements allow.
func drawnTemplate(t *rapid.T, id uint16) *Template {
	var fields []Field
	for range rapid.IntRange(1, 12).Draw(t, "fields") {
		f := Field{PEN: rapid.SampledFrom([]uint32{IANA, IANA, VMware, Reverse, 6871}).Draw(t, "pen"),
			ID: rapid.Uint16Range(1, 1000).Draw(t, "id")}
		least, greatest := f.Element().Type.Lengths()
		f.Length = uint16(rapid.IntRange(least, min(greatest, 40)).Draw(t, "length"))
		if greatest > 40 && rapid.Bool().Draw(t, "variable") {
			f.Length = Variable
		}
		if f.Element().Type == Float64 {
			f.Length &= 12 // 4 or 8
		}
		fields = append(fields, f)
	}
	fields = append(fields, Field{ID: 4, Length: 1}) // lest all be empty
	scope := rapid.IntRange(0, len(fields)).Draw(t, "scope")
	made, err := newChecked(id, scope, fields)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// drawnRecord is any record of the template, and its values.
func drawnRecord(t *rapid.T, tpl *Template) (record []byte, values [][]byte) {
	for _, f := range tpl.fields {
		n := int(f.Length)
		if f.Length == Variable {
			n = rapid.SampledFrom([]int{0, 1, 7, 100, 254, 255, 256, 300}).Draw(t, "n")
		}
		v := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
		values = append(values, v)
		if f.Length == Variable {
			record = AppendVariable(record, v)
		} else {
			record = append(record, v...)
		}
	}
	return record, values
}

// roundTrip adds templates and records to a builder, by both of its ways, and reads the messages.
func roundTrip(t *rapid.T) {
	sequence := rapid.Uint32().Draw(t, "sequence")
	b, err := NewBuilder(rapid.Uint32().Draw(t, "domain"), sequence, rapid.IntRange(8000, 9000).Draw(t, "bound"))
	if err != nil {
		t.Fatal(err)
	}
	var templates []*Template
	for i := range rapid.IntRange(1, 4).Draw(t, "templates") {
		templates = append(templates, drawnTemplate(t, firstDataSet+uint16(i)))
	}
	d := NewDecoder(Limits{})
	var want, got []string
	send := func() {
		m := b.Message(noon)
		if len(m) > b.bound {
			t.Fatalf("%d bytes, bound %d", len(m), b.bound)
		}
		r, err := d.Decode(udp, noon, m, func(r *Record) error { got = append(got, shown(r)); return nil })
		if err != nil || r.Unknown+r.Refused+r.Reserved != 0 || r.Lost != 0 {
			t.Fatalf("%+v: %v, of %x", r, err, m)
		}
	}
	add := func(try func() error) {
		err := try()
		if errors.Is(err, ErrFull) {
			send()
			err = try()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tpl := range templates {
		add(func() error { return b.Template(tpl) })
	}
	for range rapid.IntRange(0, 60).Draw(t, "records") {
		tpl := rapid.SampledFrom(templates).Draw(t, "template")
		record, values := drawnRecord(t, tpl)
		want = append(want, fmt.Sprintf("%d %x", tpl.id, values))
		add(func() error { return addRecord(b, tpl, record) })
	}
	send()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
	if lost, restarts := d.Lost(udp, b.domain); lost+restarts != 0 || b.Sequence() != sequence+uint32(len(want)) {
		t.Fatalf("lost %d, restarts %d, sequence %d after %d from %d", lost, restarts, b.Sequence(), len(want),
			sequence)
	}
}

// addRecord adds a record of fixed length by its bytes, another whole.
func addRecord(b *Builder, tpl *Template, record []byte) error {
	if tpl.Variable() {
		return b.Append(tpl, record)
	}
	to := b.Record(tpl)
	if to == nil {
		return ErrFull
	}
	copy(to, record)
	return nil
}

// shown is a record as roundTrip compares it.
func shown(r *Record) string {
	var values [][]byte
	for i := range r.Template.Len() {
		values = append(values, r.Value(i).Bytes)
	}
	return fmt.Sprintf("%d %x", r.Template.ID(), values)
}
