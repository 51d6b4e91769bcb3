package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/spec"
)

// Kind is the type of a policy field's values, and how they are written.
type Kind uint8

// The kinds of policy fields.
const (
	KindTruth    Kind = iota // true or false
	KindAnswer               // accept or reject
	KindNumber               // a whole number
	KindDuration             // a duration such as 10m
	KindChoice               // one of several words
	KindList                 // a list of words
	KindVLAN                 // the VLAN policy, which is inherited as a whole
)

// Field describes one policy field, except for the stages that act on it. Fields returns the table of them.
type Field struct {
	// Path is the field's place in the configuration file: security.macLearning.limit.
	Path string
	// Flag is the flag of "heddle port connect" that sets the field at a port, Usage its help text. The VLAN policy has
	// three flags of its own.
	Flag, Usage string
	// VSphere is the name of the setting in vSphere; "" if it has none.
	VSphere string
	// Values and Default are the cells of the reference page: the possible values, and the value that applies if no
	// level sets the field.
	Values, Default string
	// Meaning says in a sentence or two what the field does, for who asks for it by name.
	Meaning string
	// OfUplinks: uplinks have the field too, and do not inherit it.
	OfUplinks bool
	// Unit is the unit of a number.
	Unit string
	// Reasons are the reasons for drops and refusals that the field can cause.
	Reasons []abi.Reason

	access
}

// access reads and writes a field in its three forms: the value that a level of the file sets, a port's effective
// value, and text.
type access struct {
	Kind Kind
	// words are the possible values, or the possible items of a list, if there are only a few.
	words   []string
	builtIn func(*Effective, *spec.Switch)
	inherit func(*Effective, *spec.Policy, Level)
	value   func(*Effective) FieldValue
	from    func(*Effective) Level
	own     func(*spec.Policy) (string, bool)
	parse   func(*spec.Policy, string) error
}

// form converts the values of a field: S is the type in the file, whose zero value means "inherited", T the type in the
// plan.
type form[S comparable, T any] struct {
	read  func(S) (T, bool) // false: the level does not set the field
	typed func(T) FieldValue
	write func(S) string
	parse func(string) (S, error)
}

// accessTo makes the access to a field from the functions that return pointers to it in both types.
func accessTo[S comparable, T any](k Kind, f form[S, T], otherwise func(*spec.Switch) T, in func(*Effective) *Value[T],
	at func(*spec.Policy) *S) access {
	return access{
		Kind:    k,
		builtIn: func(e *Effective, s *spec.Switch) { *in(e) = Value[T]{otherwise(s), FromBuiltIn} },
		inherit: func(e *Effective, p *spec.Policy, from Level) {
			if v, set := f.read(*at(p)); set {
				*in(e) = Value[T]{v, from}
			}
		},
		value: func(e *Effective) FieldValue { return f.typed(in(e).V) },
		from:  func(e *Effective) Level { return in(e).From },
		own: func(p *spec.Policy) (string, bool) {
			var unset S
			if s := *at(p); s != unset {
				return f.write(s), true
			}
			return "", false
		},
		parse: func(p *spec.Policy, text string) (err error) {
			*at(p), err = f.parse(text)
			return err
		},
	}
}

// always returns a default that is the same on every switch.
func always[T any](v T) func(*spec.Switch) T { return func(*spec.Switch) T { return v } }

func truth(otherwise bool, in func(*Effective) *Value[bool], at func(*spec.Policy) **bool) access {
	return wordsOf([]string{"true", "false"},
		accessTo(KindTruth, form[*bool, bool]{read: pointed[bool], typed: FieldValueOf[bool], write: written(yesNo),
			parse: toPointer(strconv.ParseBool)}, always(otherwise), in, at))
}

func verdict(otherwise spec.Answer, in func(*Effective) *Value[bool], at func(*spec.Policy) *spec.Answer) access {
	read := func(a spec.Answer) (bool, bool) { return a == spec.Accept, a != "" }
	return wordsOf([]string{string(spec.Accept), string(spec.Reject)},
		accessTo(KindAnswer, form[spec.Answer, bool]{read: read, typed: func(v bool) FieldValue {
			return FieldValueOf(answer(v))
		}, write: text[spec.Answer], parse: asWord[spec.Answer]},
			always(otherwise == spec.Accept), in, at))
}

func number(otherwise int, in func(*Effective) *Value[int], at func(*spec.Policy) **int) access {
	return accessTo(KindNumber, form[*int, int]{read: pointed[int], typed: FieldValueOf[int],
		write: written(strconv.Itoa), parse: toPointer(strconv.Atoi)}, always(otherwise), in, at)
}

// period returns the access to a duration; read parses the texts that are valid for the field.
func period(otherwise time.Duration, read func(string) (time.Duration, bool), in func(*Effective) *Value[time.Duration],
	at func(*spec.Policy) *string) access {
	return accessTo(KindDuration, form[string, time.Duration]{read: read, typed: FieldValueOf[time.Duration],
		write: text[string], parse: asWord[string]}, always(otherwise), in, at)
}

// choice returns the access to one of several words.
func choice[S ~string](otherwise S, in func(*Effective) *Value[S], at func(*spec.Policy) *S, all ...S) access {
	list := make([]string, len(all))
	for i, w := range all {
		list[i] = string(w)
	}
	read := func(s S) (S, bool) { return s, s != "" }
	return wordsOf(list, accessTo(KindChoice, form[S, S]{read: read, typed: func(v S) FieldValue {
		return FieldValueOf(string(v))
	}, write: text[S], parse: asWord[S]}, always(otherwise), in, at))
}

// wordsOf returns the access to a field whose values are a few words.
func wordsOf(list []string, a access) access {
	a.words = list
	return a
}

func list(otherwise func(*spec.Switch) []string, in func(*Effective) *Value[[]string],
	at func(*spec.Policy) **[]string) access {
	read := func(p *[]string) ([]string, bool) {
		if p == nil {
			return nil, false
		}
		return append([]string{}, *p...), true
	}
	joined := func(l []string) string { return strings.Join(l, ",") }
	return accessTo(KindList, form[*[]string, []string]{read: read, typed: FieldValueOf[[]string],
		write: written(joined), parse: toPointer(split)}, otherwise, in, at)
}

// vlanPolicy returns the access to the VLAN policy, which has no text form of its own: it is written as one of three
// fields.
func vlanPolicy(in func(*Effective) *Value[VLAN], at func(*spec.Policy) **spec.VLAN) access {
	read := func(w *spec.VLAN) (VLAN, bool) {
		if w == nil {
			return VLAN{}, false
		}
		return vlan(w), true
	}
	write := func(w *spec.VLAN) string { return vlan(w).String() }
	parse := func(string) (*spec.VLAN, error) {
		return nil, fmt.Errorf("a VLAN policy is given as none, access or trunk")
	}
	return accessTo(KindVLAN, form[*spec.VLAN, VLAN]{read: read, typed: FieldValueOf[VLAN], write: write, parse: parse},
		always(VLAN{Mode: VLANNone}), in, at)
}

func pointed[T any](p *T) (T, bool) {
	if p == nil {
		var unset T
		return unset, false
	}
	return *p, true
}

func written[T any](write func(T) string) func(*T) string {
	return func(p *T) string { return write(*p) }
}

func toPointer[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(text string) (*T, error) {
		v, err := parse(text)
		if err != nil {
			return nil, err
		}
		return &v, nil
	}
}

func asWord[S ~string](text string) (S, error) { return S(text), nil }

func split(text string) ([]string, error) {
	if text == "" {
		return []string{}, nil
	}
	return strings.Split(text, ","), nil
}

// Fields returns all policy fields, in the order in which they are shown.
func Fields() []Field { return slices.Clone(policyFields) }

// FieldOfFlag returns the policy field that a flag of the command line sets; false if there is none.
func FieldOfFlag(flag string) (Field, bool) {
	i := slices.IndexFunc(policyFields, func(f Field) bool { return f.Flag == flag && flag != "" })
	if i < 0 {
		return Field{}, false
	}
	return policyFields[i], true
}

// FieldOf returns the policy field at a path of the configuration file; false if there is none.
func FieldOf(path string) (Field, bool) {
	i := slices.IndexFunc(policyFields, func(f Field) bool { return f.Path == path })
	if i < 0 {
		return Field{}, false
	}
	return policyFields[i], true
}

// PortOnly reports whether the field describes a single port. It is set only there, and the port group need not allow
// it.
func (f Field) PortOnly() bool { return spec.PortOnly(f.Path) }

// Category returns the permission that a port needs from its port group to set the field for itself (S9); "" for none.
func (f Field) Category() string {
	if f.PortOnly() {
		return ""
	}
	category, _, _ := strings.Cut(f.Path, ".")
	return category
}

// Words returns the possible values, or the possible items of a list, if there are only a few; else none.
func (f Field) Words() []string { return slices.Clone(f.words) }

// Parse sets the field in p to the value of text, in the form of a flag: lists are separated by commas.
func (f Field) Parse(p *spec.Policy, text string) error { return f.parse(p, text) }

// Own returns the value of the field in p, in the form that Parse reads; false if p does not set it.
func (f Field) Own(p *spec.Policy) (text string, set bool) { return f.own(p) }

// Value returns the field's effective value.
func (f Field) Value(e *Effective) FieldValue { return f.value(e) }

// Level returns the level that set the field's effective value.
func (f Field) Level(e *Effective) Level { return f.from(e) }

// Counts returns the unit of the field's number, "" if it is not a number.
func (f Field) Counts() string {
	if f.Kind == KindDuration {
		return UnitSeconds
	}
	return f.Unit
}

// BuiltIn returns the field's value on a switch if no level sets it, in the form of the file: a list in brackets.
func (f Field) BuiltIn(s *spec.Switch) string {
	var e Effective
	f.builtIn(&e, s)
	v := f.value(&e).String()
	switch {
	case f.Kind != KindList:
		return v
	case v == names(nil):
		v = ""
	}
	return "[" + v + "]"
}
