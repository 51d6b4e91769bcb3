package dataplane

import (
	"reflect"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// meaning is raised when tables of the same shape come to mean something else, such as a flag that is given to another
// use. Programs of two meanings never share tables.
const meaning = 1

// layout describes the pinned tables of one version of the program. It is pinned with them, so that any other
// version, older or newer, can recognise whether they are its own, and can take over what they hold.
type layout struct {
	Meaning int                    `json:"meaning"`
	Tables  map[string]tableLayout `json:"tables"`
}

// tableLayout is one table: sizes in bytes, and where each field of its records is.
type tableLayout struct {
	Type       ebpf.MapType `json:"type"`
	Flags      uint32       `json:"flags"`
	Key        uint32       `json:"key"`
	Value      uint32       `json:"value"`
	Entries    uint32       `json:"entries"`
	KeyFields  record       `json:"keyFields,omitempty"`
	ValueField record       `json:"valueFields,omitempty"`
	// Inner is what the tables in a table of tables look like; their number of entries is their own.
	Inner *tableLayout `json:"inner,omitempty"`
}

// record lists the fields of a record; a plain number has none.
type record []recordField

type recordField struct {
	Name string `json:"name"`
	At   uint32 `json:"at"`
	Size uint32 `json:"size"`
}

// layoutOf describes the pinned tables of a built-in program.
func layoutOf(spec *ebpf.CollectionSpec) layout {
	l := layout{Meaning: meaning, Tables: map[string]tableLayout{}}
	for name, m := range spec.Maps {
		if pinned(name) {
			l.Tables[name] = tableLayoutOf(m)
		}
	}
	return l
}

func tableLayoutOf(m *ebpf.MapSpec) tableLayout {
	t := tableLayout{Type: m.Type, Flags: m.Flags, Key: m.KeySize, Value: m.ValueSize, Entries: m.MaxEntries,
		KeyFields: fieldsOf(m.Key), ValueField: fieldsOf(m.Value)}
	if m.InnerMap != nil {
		inner := tableLayoutOf(m.InnerMap)
		inner.Entries = 0
		t.Inner = &inner
	}
	return t
}

func (l layout) same(as layout) bool { return reflect.DeepEqual(l, as) }

func fieldsOf(t btf.Type) record {
	if a, ok := btf.UnderlyingType(t).(*btf.Array); ok {
		t = a.Type
	}
	s, ok := btf.UnderlyingType(t).(*btf.Struct)
	if !ok {
		return nil
	}
	var r record
	for _, m := range s.Members {
		if size, err := btf.Sizeof(m.Type); err == nil {
			r = append(r, recordField{Name: m.Name, At: m.Offset.Bytes(), Size: uint32(size)})
		}
	}
	return r
}

// convert makes a record of one layout one of another: fields of the same name are kept, as far as both have room,
// others are zero. Plain numbers are kept as they are.
func convert(b []byte, from, to record, size uint32) []byte {
	out := make([]byte, size)
	if from == nil || to == nil {
		copy(out, b)
		return out
	}
	old := make(map[string]recordField, len(from))
	for _, f := range from {
		old[f.Name] = f
	}
	for _, f := range to {
		if was, ok := old[f.Name]; ok {
			n := min(f.Size, was.Size)
			copy(out[f.At:f.At+n], b[was.At:was.At+n])
		}
	}
	return out
}
