package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// FieldValue is a field's value in the field's own type: a truth value, a whole number, a word, a list of words, a
// duration or a VLAN policy; a field that is not a policy may also be an object, or a list of objects. Its zero value
// is no value, or a value of an unknown type, which a newer agent may send.
type FieldValue struct{ v any }

// Members are the fields of an object of the configuration file, such as a LAG, in the file's order.
type Members []Member

// Member is a field of an object.
type Member struct {
	Name  string
	Value FieldValue
}

// UnitSeconds is the unit of a duration.
const UnitSeconds = "seconds"

// typed is a type that a field's value can have.
type typed interface {
	bool | int | string | []string | time.Duration | VLAN | Members | []Members
}

// FieldValueOf returns v as a field's value.
func FieldValueOf[T typed](v T) FieldValue { return FieldValue{v} }

// Any returns the value: a bool, int, string, []string, time.Duration, VLAN, Members or []Members; nil if its type is
// not known.
func (f FieldValue) Any() any { return f.v }

// Equal reports whether type and value are the same.
func (f FieldValue) Equal(o FieldValue) bool { return reflect.DeepEqual(f.v, o.v) }

// String returns the value in the words of the configuration file: "reject", "10m", "access 100", "uplink1, uplink2".
func (f FieldValue) String() string {
	switch v := f.v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case string:
		return v
	case []string:
		return names(v)
	case time.Duration:
		return duration(v)
	case VLAN:
		return v.String()
	case Members, []Members:
		return f.Flow()
	}
	return "?"
}

// Flow returns the value as one line of YAML, with lists in brackets: "[{name: lag1, uplinks: [u2, u3]}]".
func (f FieldValue) Flow() string {
	switch v := f.v.(type) {
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	case Members:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = m.Name + ": " + m.Value.Flow()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []Members:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = FieldValueOf(m).Flow()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return f.String()
}

// MarshalJSON writes the value in its type; a duration is a number of seconds.
func (f FieldValue) MarshalJSON() ([]byte, error) {
	if d, ok := f.v.(time.Duration); ok {
		return json.Marshal(d.Seconds())
	}
	return json.Marshal(f.v)
}

// Row is one effective value of a port.
type Row struct {
	// Policy is the field, as a path of the configuration file: security.macLearning.limit.
	Policy string `json:"policy"`
	// Value is the effective value, in the field's own type.
	Value FieldValue `json:"value"`
	// Unit is the unit of a number: "seconds", "MACs".
	Unit string `json:"unit,omitempty"`
	// From is where the value comes from.
	From Source `json:"from"`
}

// Source is where an effective value comes from: a level, and the name of its object; the built-in default has none.
type Source struct {
	Level Level  `json:"level"`
	Name  string `json:"name,omitempty"`
}

// String names the object: "switch lab", "port group web", "port vm1/eth0", "built-in default".
func (s Source) String() string {
	if s.Name == "" {
		return string(s.Level)
	}
	return string(s.Level) + " " + s.Name
}

// UnmarshalJSON reads what MarshalJSON writes: the unit distinguishes a duration from a number.
func (r *Row) UnmarshalJSON(b []byte) error {
	type plain Row
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return fmt.Errorf("policy row: %w", err)
	}
	r.Value = r.Value.In(r.Unit)
	return nil
}

// In returns the value of a field that has that unit: a number of seconds becomes a duration.
func (f FieldValue) In(unit string) FieldValue {
	if n, whole := f.v.(int); whole && unit == UnitSeconds {
		return FieldValueOf(time.Duration(n) * time.Second)
	}
	return f
}

// UnmarshalJSON reads what MarshalJSON writes; only In can tell a duration of whole seconds from a number.
func (f *FieldValue) UnmarshalJSON(b []byte) (err error) {
	switch first := strings.TrimSpace(string(b)) + " "; {
	case first == "null ":
		*f = FieldValue{}
	case first[0] == 't' || first[0] == 'f':
		*f, err = readAs[bool](b)
	case first[0] == '"':
		*f, err = readAs[string](b)
	case first[0] == '[' && strings.HasPrefix(strings.TrimSpace(first[1:]), "{"):
		*f, err = readAs[[]Members](b)
	case first[0] == '[':
		*f, err = readAs[[]string](b)
	case first[0] == '{':
		*f, err = readAs[VLAN](b)
	case strings.ContainsAny(first, ".eE"):
		var seconds float64
		err = json.Unmarshal(b, &seconds)
		*f = FieldValueOf(time.Duration(seconds * float64(time.Second)))
	default:
		*f, err = readAs[int](b)
	}
	return err
}

func readAs[T typed](b json.RawMessage) (FieldValue, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return FieldValueOf(v), err
}

// MarshalJSON writes an object with its fields in their order.
func (m Members) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range m {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Members) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%s is no object of the configuration file", b)
	}
	*m = Members{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		f := Member{Name: fmt.Sprint(name)}
		if raw[0] == '{' { // an object of the file, and not a VLAN policy
			f.Value, err = readAs[Members](raw)
		} else {
			err = json.Unmarshal(raw, &f.Value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		*m = append(*m, f)
	}
	return nil
}
