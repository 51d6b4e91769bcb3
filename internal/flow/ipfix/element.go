package ipfix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ./gen registry/ipfix-information-elements.csv registry/enterprise-elements.csv elements_gen.go

// Enterprise numbers (PEN): who defined an element.
const (
	IANA    = 0     // elements of the public registry
	VMware  = 6876  // elements of the vds record shape
	Reverse = 29305 // the public elements seen from the other direction of a biflow (RFC 5103 §6.1)
)

// Type is an abstract data type (RFC 7012 §3.1; structured ones RFC 6313), with the number of
// informationElementDataType (RFC 5610 §3.1).
type Type uint8

// The abstract data types.
const (
	OctetArray Type = iota // bytes; also the type of an element that the registry does not know
	Unsigned8
	Unsigned16
	Unsigned32
	Unsigned64
	Signed8
	Signed16
	Signed32
	Signed64
	Float32
	Float64
	Boolean
	MACAddress
	String
	DateTimeSeconds
	DateTimeMilliseconds
	DateTimeMicroseconds
	DateTimeNanoseconds
	IPv4Address
	IPv6Address
	BasicList
	SubTemplateList
	SubTemplateMultiList
)

var typeNames = [...]string{"octetArray", "unsigned8", "unsigned16", "unsigned32", "unsigned64", "signed8", "signed16",
	"signed32", "signed64",
	"float32", "float64", "boolean", "macAddress", "string", "dateTimeSeconds", "dateTimeMilliseconds",
	"dateTimeMicroseconds", "dateTimeNanoseconds",
	"ipv4Address", "ipv6Address", "basicList", "subTemplateList", "subTemplateMultiList"}

// String is the name that IANA has for the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Lengths are the least and the greatest number of bytes of a value on the wire (RFC 7011 §6.1), where the least is
// that of reduced-size encoding (§6.2). Types whose values can have any length return 0 and 65534.
func (t Type) Lengths() (least, greatest int) {
	switch t {
	case Unsigned8, Signed8, Boolean:
		return 1, 1
	case Unsigned16, Signed16:
		return 1, 2
	case Unsigned32, Signed32:
		return 1, 4
	case Unsigned64, Signed64:
		return 1, 8
	case Float32, DateTimeSeconds, IPv4Address:
		return 4, 4
	case Float64:
		return 4, 8
	case DateTimeMilliseconds, DateTimeMicroseconds, DateTimeNanoseconds:
		return 8, 8
	case MACAddress:
		return 6, 6
	case IPv6Address:
		return 16, 16
	}
	return 0, Variable - 1
}

// fits reports whether a field of the type may have the length. A float64 is either a double or, reduced, a single
// (RFC 7011 §6.2).
func (t Type) fits(length uint16) bool {
	least, greatest := t.Lengths()
	if length == Variable {
		return greatest == Variable-1
	}
	return int(length) >= least && int(length) <= greatest && !(t == Float64 && length != 4 && length != 8)
}

// Semantics say how the values of an element may be used (RFC 7012 §3.2), with the numbers of
// informationElementSemantics (RFC 5610 §3.6).
type Semantics uint8

// The semantics of values.
const (
	Default Semantics = iota
	Quantity
	TotalCounter
	DeltaCounter
	Identifier
	Flags
	List
	SNMPCounter
	SNMPGauge
)

// Element is an information element.
type Element struct {
	PEN        uint32
	ID         uint16 // 1–32767
	Name       string // empty when the registry does not know the element
	Type       Type
	Semantics  Semantics
	Units      string // as IANA has them, such as "octets"; mostly empty
	Deprecated bool
}

// String is the element's name, or PEN/number when it has none.
func (e Element) String() string {
	if e.Name != "" {
		return e.Name
	}
	return fmt.Sprintf("%d/%d", e.PEN, e.ID)
}

// Lookup finds an element by its numbers. A reverse element (RFC 5103) is its forward one with PEN Reverse and the name
// reverseXxx, unless that has no direction. For an unknown one Lookup returns the numbers, type OctetArray, and false.
func Lookup(pen uint32, id uint16) (Element, bool) {
	if pen == Reverse {
		e, ok := Lookup(IANA, id)
		if !ok || !reversible(id) {
			return Element{PEN: pen, ID: id}, false
		}
		e.PEN, e.Name = Reverse, "reverse"+strings.ToUpper(e.Name[:1])+e.Name[1:]
		return e, true
	}
	at, ok := slices.BinarySearchFunc(table[:], Element{PEN: pen, ID: id}, func(e, want Element) int {
		return cmp.Or(cmp.Compare(e.PEN, want.PEN), cmp.Compare(e.ID, want.ID))
	})
	if !ok {
		return Element{PEN: pen, ID: id}, false
	}
	return table[at], true
}

// Named finds an element by its name, which is as in the registry, or reverseXxx for the reverse of xxx.
func Named(name string) (Element, bool) {
	at, ok := slices.BinarySearchFunc(byName[:], name, func(place uint16, want string) int {
		return cmp.Compare(table[place].Name, want)
	})
	if ok {
		return table[byName[at]], true
	}
	forward, ok := strings.CutPrefix(name, "reverse")
	if !ok || forward == "" {
		return Element{}, false
	}
	e, ok := Named(strings.ToLower(forward[:1]) + forward[1:])
	if !ok || e.PEN != IANA {
		return Element{}, false
	}
	e, ok = Lookup(Reverse, e.ID)
	return e, ok && e.Name == name
}
