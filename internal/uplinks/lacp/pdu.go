package lacp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"heddle/internal/plan"
)

// EtherType is that of the slow protocols (802.3 annex 57A).
const EtherType = 0x8809

// Destination is the slow protocols' group address. No bridge forwards it.
var Destination = plan.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x02}

// Subtypes of the slow protocols: the first byte after the EtherType.
const (
	SubtypeLACP   = 1
	SubtypeMarker = 2
)

// Size is the length of a LACPDU and of a marker PDU after the Ethernet header, in bytes.
const Size = 110

// version is the LACPDU version that we send. Later versions add TLVs after those of version 1, which keep their
// positions.
const version = 1

// TLV types and lengths of a LACPDU, in their fixed order.
const (
	tlvActor, tlvPartner, lenInfo = 1, 2, 20
	tlvCollector, lenCollector    = 3, 16
)

// Offsets of the TLVs of a LACPDU.
const (
	atActor     = 2
	atPartner   = atActor + lenInfo
	atCollector = atPartner + lenInfo
)

// State is the set of eight flags of an actor or partner.
type State uint8

// The flags of a State (802.1AX 6.4.2.3).
const (
	Activity        State = 1 << iota // sends unasked
	ShortTimeout                      // wants a PDU every second; its timeout is 3 s
	Aggregation                       // may be one of several links; otherwise individual
	Synchronization                   // attached to the right aggregator
	Collecting                        // takes frames
	Distributing                      // sends frames
	Defaulted                         // uses configured values, because it has received no PDU from its partner
	Expired                           // has received no PDU from its partner in time
)

// Words returns the names of the set flags, in the order of the bits; the timeout and aggregation bits always have a
// word.
func (s State) Words() []string {
	words := []string{}
	for _, f := range []struct {
		flag    State
		set, no string
	}{
		{Activity, "active", "passive"}, {ShortTimeout, "fast", "slow"}, {Aggregation, "aggregatable", "individual"},
		{Synchronization, "in-sync", ""}, {Collecting, "collecting", ""}, {Distributing, "distributing", ""},
		{Defaulted, "defaulted", ""}, {Expired, "expired", ""},
	} {
		switch {
		case s&f.flag != 0:
			words = append(words, f.set)
		case f.no != "":
			words = append(words, f.no)
		}
	}
	return words
}

func (s State) String() string { return strings.Join(s.Words(), " ") }

func (s State) has(f State) bool { return s&f == f }

// with returns the state with a flag set or cleared.
func (s State) with(f State, on bool) State {
	if on {
		return s | f
	}
	return s &^ f
}

// System identifies a device that aggregates links. Smaller values have priority.
type System struct {
	Priority uint16   `json:"priority"`
	MAC      plan.MAC `json:"mac"`
}

// String returns the usual notation: priority,MAC.
func (s System) String() string { return fmt.Sprintf("%d,%s", s.Priority, s.MAC) }

// Port identifies a port of a system.
type Port struct {
	Priority uint16 `json:"priority"`
	Number   uint16 `json:"number"`
}

// Info is the part of a LACPDU about one side of a link.
type Info struct {
	System System `json:"system"`
	Key    uint16 `json:"key"`
	Port   Port   `json:"port"`
	State  State  `json:"state"`
}

// PDU is a LACPDU.
type PDU struct {
	Actor   Info // the sender of the PDU
	Partner Info // what the sender knows of its receiver
	// MaxDelay is how long the sender may take to deliver a frame, in tens of microseconds.
	MaxDelay uint16
}

// Encode returns the PDU as it follows the Ethernet header: Size bytes.
func (p PDU) Encode() []byte {
	b := make([]byte, Size)
	b[0], b[1] = SubtypeLACP, version
	p.Actor.put(b[atActor:], tlvActor)
	p.Partner.put(b[atPartner:], tlvPartner)
	c := b[atCollector:]
	c[0], c[1] = tlvCollector, lenCollector
	binary.BigEndian.PutUint16(c[2:], p.MaxDelay)
	return b // a terminator, type 0 and length 0, and reserved bytes
}

func (i Info) put(b []byte, tlv byte) {
	b[0], b[1] = tlv, lenInfo
	binary.BigEndian.PutUint16(b[2:], i.System.Priority)
	copy(b[4:10], i.System.MAC[:])
	binary.BigEndian.PutUint16(b[10:], i.Key)
	binary.BigEndian.PutUint16(b[12:], i.Port.Priority)
	binary.BigEndian.PutUint16(b[14:], i.Port.Number)
	b[16] = byte(i.State)
}

func readInfo(b []byte) Info {
	return Info{
		System: System{Priority: binary.BigEndian.Uint16(b[2:]), MAC: plan.MAC(b[4:10])},
		Key:    binary.BigEndian.Uint16(b[10:]),
		Port:   Port{Priority: binary.BigEndian.Uint16(b[12:]), Number: binary.BigEndian.Uint16(b[14:])},
		State:  State(b[16]),
	}
}

// errEmpty: the frame ends with its Ethernet header.
var errEmpty = errors.New("slow protocol frame: offset 0: no subtype")

// Decode decodes the bytes after the Ethernet header of a frame of EtherType. Exactly one of its first two results is
// not nil. Other subtypes of the slow protocols (such as OAM) are ignored: then all three results are nil. Bytes after
// Size and reserved bytes are not checked: they are for later versions.
func Decode(b []byte) (*PDU, *Marker, error) {
	if len(b) == 0 {
		return nil, nil, errEmpty
	}
	switch b[0] {
	case SubtypeLACP:
		p, err := decodePDU(b)
		return p, nil, err
	case SubtypeMarker:
		m, err := decodeMarker(b)
		return nil, m, err
	}
	return nil, nil, nil
}

// decodePDU checks the fixed layout. A receiver need not check the version or the reserved fields (802.1AX 6.4.2.4),
// and must not check the terminator.
func decodePDU(b []byte) (*PDU, error) {
	if len(b) < Size {
		return nil, fmt.Errorf("LACPDU: offset %d: it ends here, %d bytes are needed", len(b), Size)
	}
	for _, t := range []struct {
		at        int
		kind, len byte
	}{{atActor, tlvActor, lenInfo}, {atPartner, tlvPartner, lenInfo}, {atCollector, tlvCollector, lenCollector}} {
		if b[t.at] != t.kind {
			return nil, fmt.Errorf("LACPDU: offset %d: TLV type %d, want %d", t.at, b[t.at], t.kind)
		}
		if b[t.at+1] != t.len {
			return nil, fmt.Errorf("LACPDU: offset %d: TLV length %d, want %d", t.at+1, b[t.at+1], t.len)
		}
	}
	return &PDU{Actor: readInfo(b[atActor:]), Partner: readInfo(b[atPartner:]),
		MaxDelay: binary.BigEndian.Uint16(b[atCollector+2:])}, nil
}
