package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// FieldValue is a policy field's value in the type that the field has: a truth value, a whole number, a word, a list of
// words, a duration or a VLAN policy. Its zero value is one of a kind that is not known here, as a newer agent may
// have.
type FieldValue struct{ v any }

// UnitSeconds is the unit of a duration.
const UnitSeconds = "seconds"

// typed is a type that a field's value can have.
type typed interface {
	bool | int | string | []string | time.Duration | VLAN
}

// FieldValueOf is v as a field's value.
func FieldValueOf[T typed](v T) FieldValue { return FieldValue{v} }

// Any is the value: a bool, int, string, []string, time.Duration or VLAN; nil where its kind is not known.
func (f FieldValue) Any() any { return f.v }

// Equal says whether type and value are the same.
func (f FieldValue) Equal(o FieldValue) bool { return reflect.DeepEqual(f.v, o.v) }

// String is the value in the words of the configuration file: "reject", "10m", "access 100", "uplink1, uplink2".
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
	}
	return "?"
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
	// Unit is what a number counts: "seconds", "MACs".
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

// UnmarshalJSON is the inverse of what is written: the unit tells a duration from a number.
func (r *Row) UnmarshalJSON(b []byte) error {
	var j struct {
		Policy string          `json:"policy"`
		Value  json.RawMessage `json:"value"`
		Unit   string          `json:"unit"`
		From   Source          `json:"from"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	v, err := readFieldValue(j.Value, j.Unit)
	if err != nil {
		return fmt.Errorf("%s: %w", j.Policy, err)
	}
	*r = Row{Policy: j.Policy, Value: v, Unit: j.Unit, From: j.From}
	return nil
}

func readFieldValue(b json.RawMessage, unit string) (f FieldValue, err error) {
	switch first := strings.TrimSpace(string(b)) + " "; {
	case first[0] == 't' || first[0] == 'f':
		return readAs[bool](b)
	case first[0] == '"':
		return readAs[string](b)
	case first[0] == '[':
		return readAs[[]string](b)
	case first[0] == '{':
		return readAs[VLAN](b)
	case first == "null " || first == " ":
		return FieldValue{}, nil
	case unit == UnitSeconds:
		var seconds float64
		err = json.Unmarshal(b, &seconds)
		return FieldValueOf(time.Duration(seconds * float64(time.Second))), err
	}
	return readAs[int](b)
}

func readAs[T typed](b json.RawMessage) (FieldValue, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return FieldValueOf(v), err
}
