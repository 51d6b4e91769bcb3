package lldp

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"heddle/internal/plan"
)

// EtherType is LLDP's.
const EtherType = 0x88cc

// Groups are the addresses to which a LLDPDU is sent. The first, that of the nearest bridge, is the one we send to.
var Groups = []plan.MAC{{0x01, 0x80, 0xc2, 0, 0, 0x0e}, {0x01, 0x80, 0xc2, 0, 0, 0x03}, {0x01, 0x80, 0xc2, 0, 0, 0x00}}

// maxPDU is the longest LLDPDU: one Ethernet frame's payload, in bytes.
const maxPDU = 1500

// TLV types (802.1AB 8.4).
const (
	tlvEnd = iota
	tlvChassis
	tlvPort
	tlvTTL
	tlvPortDescription
	tlvSystemName
	tlvSystemDescription
	tlvCapabilities
	tlvManagement
	tlvOrg = 127
)

const (
	maxValue = 511 // a TLV's value, in bytes: its length has 9 bits
	maxText  = 255 // bytes of a description or name, and of an id without its subtype
)

// ByCDP is the By of what the Cisco Discovery Protocol says.
const ByCDP = "cdp"

// PDU is a LLDPDU. Its texts are unchanged and may contain any bytes: see Clean.
type PDU struct {
	// By is another protocol by which the same was said; "" for LLDP.
	By                string
	Chassis           ChassisID
	Port              PortID
	TTL               uint16 // validity in seconds; 0: the sender says goodbye
	PortDescription   string
	SystemName        string
	SystemDescription string
	Capabilities      *Capabilities // nil: not in the PDU
	Management        []Management
	Org               []Org
	// Unread counts optional TLVs that are malformed or of an unknown type: they are left out.
	Unread int
}

// Capabilities are the functions that the sender has, such as bridge or router, and those that are enabled.
type Capabilities struct{ Has, Enabled Capability }

// Management is an address at which the sender can be managed.
type Management struct {
	Address   Address
	Interface uint8  // numbering: 1 unknown, 2 ifIndex, 3 system port number
	Number    uint32 // of the interface
	OID       []byte // object identifier, unchanged; often empty
}

// Org is an organisation's own TLV, unchanged.
type Org struct {
	OUI     [3]byte
	Subtype uint8
	Value   []byte
}

// Decode decodes the bytes after the Ethernet header of a frame of EtherType. Chassis, port and TTL come first and
// once; optional TLVs that are malformed are left out and counted (802.1AB 9.2.7.7). The result shares no memory with
// b.
func Decode(b []byte) (*PDU, error) {
	p := &PDU{}
	at := 0
	for n := 0; at < len(b); n++ {
		kind, v, err := tlv(b, at)
		if err != nil {
			return nil, err
		}
		if n < 3 {
			if err := p.mandatory(n, at, kind, v); err != nil {
				return nil, err
			}
		} else if kind == tlvEnd {
			return p, nil
		} else if kind <= tlvTTL {
			return nil, fmt.Errorf("LLDPDU: offset %d: TLV type %d a second time", at, kind)
		} else if !p.optional(kind, v) {
			p.Unread++
		}
		at += 2 + len(v)
		if n == 2 && p.TTL == 0 { // what follows is ignored
			return p, nil
		}
		if n >= 2 && at == len(b) { // the end TLV may be missing
			return p, nil
		}
	}
	return nil, fmt.Errorf("LLDPDU: offset %d: it ends here, without chassis, port and time to live", len(b))
}

// tlv returns type and value of the TLV at an offset.
func tlv(b []byte, at int) (kind int, v []byte, err error) {
	if len(b)-at < 2 {
		return 0, nil, fmt.Errorf("LLDPDU: offset %d: it ends within a TLV's header", at)
	}
	head := binary.BigEndian.Uint16(b[at:])
	kind, n := int(head>>9), int(head&maxValue)
	if n > len(b)-at-2 {
		return 0, nil, fmt.Errorf("LLDPDU: offset %d: TLV type %d has %d bytes, %d are there", at, kind, n, len(b)-at-2)
	}
	return kind, b[at+2 : at+2+n], nil
}

func (p *PDU) mandatory(n, at, kind int, v []byte) error {
	want := [3]int{tlvChassis, tlvPort, tlvTTL}[n]
	switch {
	case kind != want:
		return fmt.Errorf("LLDPDU: offset %d: TLV type %d, want %d", at, kind, want)
	case want != tlvTTL && (len(v) < 2 || len(v) > 1+maxText):
		return fmt.Errorf("LLDPDU: offset %d: id of %d bytes, want 2 to %d", at, len(v), 1+maxText)
	case want == tlvTTL && len(v) < 2:
		return fmt.Errorf("LLDPDU: offset %d: time to live of %d bytes, want 2", at, len(v))
	}
	switch want {
	case tlvChassis:
		p.Chassis = ChassisID{Subtype: v[0], Value: bytes.Clone(v[1:])}
	case tlvPort:
		p.Port = PortID{Subtype: v[0], Value: bytes.Clone(v[1:])}
	default:
		p.TTL = binary.BigEndian.Uint16(v)
	}
	return nil
}

// optional reads an optional TLV; false if it is malformed. Of texts and capabilities that occur twice the first
// counts.
func (p *PDU) optional(kind int, v []byte) bool {
	switch kind {
	case tlvPortDescription:
		return once(&p.PortDescription, v)
	case tlvSystemName:
		return once(&p.SystemName, v)
	case tlvSystemDescription:
		return once(&p.SystemDescription, v)
	case tlvCapabilities:
		if len(v) != 4 || p.Capabilities != nil {
			return false
		}
		p.Capabilities = &Capabilities{Capability(binary.BigEndian.Uint16(v)),
			Capability(binary.BigEndian.Uint16(v[2:]))}
		return true
	case tlvManagement:
		m, ok := readManagement(v)
		if ok {
			p.Management = append(p.Management, m)
		}
		return ok
	case tlvOrg:
		if len(v) < 4 {
			return false
		}
		p.Org = append(p.Org, Org{OUI: [3]byte(v), Subtype: v[3], Value: bytes.Clone(v[4:])})
		return true
	}
	return false
}

func once(s *string, v []byte) bool {
	if *s != "" || len(v) > maxText {
		return false
	}
	*s = string(v)
	return true
}

// readManagement reads, in this order: length of the address with its subtype, subtype, address, numbering, number,
// length of the OID, OID.
func readManagement(v []byte) (Management, bool) {
	if len(v) < 1 {
		return Management{}, false
	}
	n := int(v[0])
	if n < 2 || n > 32 || len(v) < 1+n+6 {
		return Management{}, false
	}
	rest := v[1+n:]
	m := Management{Address: Address{Family: v[1], Value: bytes.Clone(v[2 : 1+n])}, Interface: rest[0],
		Number: binary.BigEndian.Uint32(rest[1:])}
	oid := int(rest[5])
	if oid > 128 || len(rest) != 6+oid {
		return Management{}, false
	}
	if oid > 0 {
		m.OID = bytes.Clone(rest[6:])
	}
	return m, true
}
