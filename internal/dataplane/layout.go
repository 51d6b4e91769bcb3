package dataplane

import (
	"reflect"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// meaning is raised when tables of the same shape get another meaning, for example when a flag is reused. Programs of
// two meanings never share tables.
const meaning = 1

// layout describes the pinned tables of one version of the program. It is pinned with them, so that any other version,
// older or newer, can tell whether they equal its own, and can copy their content.
type layout struct {
	Meaning int                    `json:"meaning"`
	Tables  map[string]tableLayout `json:"tables"`
}

// tableLayout is one table: sizes in bytes, and the offset of each field of its records.
type tableLayout struct {
	Type       ebpf.MapType `json:"type"`
	Flags      uint32       `json:"flags"`
	Key        uint32       `json:"key"`
	Value      uint32       `json:"value"`
	Entries    uint32       `json:"entries"`
	KeyFields  record       `json:"keyFields,omitempty"`
	ValueField record       `json:"valueFields,omitempty"`
	// Inner is the layout of the inner tables of a table of tables; each has its own number of entries.
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

// convert turns a record of one layout into one of another: fields of the same name are copied, as far as both have
// space, others are zero. Plain numbers stay as they are.
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
