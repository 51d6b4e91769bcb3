package lldp

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// Subtypes of ids that we send (802.1AB 8.5.2.2, 8.5.3.2).
const (
	ChassisMAC = 4
	PortMAC    = 3
	PortIfName = 5
)

// ChassisID identifies the sender.
type ChassisID struct {
	Subtype uint8  `json:"subtype"`
	Value   []byte `json:"value"` // 1–255 bytes
}

// PortID identifies the sender's port.
type PortID struct {
	Subtype uint8  `json:"subtype"`
	Value   []byte `json:"value"` // 1–255 bytes
}

// String returns the id in a form for people.
func (i ChassisID) String() string { return idText(i.Value, i.Subtype == ChassisMAC, i.Subtype == 5) }

// String returns the id in a form for people.
func (i PortID) String() string { return idText(i.Value, i.Subtype == PortMAC, i.Subtype == 4) }

func idText(v []byte, isMAC, isAddress bool) string {
	switch {
	case isMAC && len(v) == 6:
		return net.HardwareAddr(v).String()
	case isAddress && len(v) > 1:
		return Address{Family: v[0], Value: v[1:]}.String()
	case isMAC || isAddress:
		return hex.EncodeToString(v)
	}
	return Clean(string(v))
}

// Clean makes a stranger's text fit for a terminal: what cannot be printed becomes U+FFFD.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// Address is a network address.
type Address struct {
	Family uint8 // IANA address family number: 1 IPv4, 2 IPv6, 6 MAC
	Value  []byte
}

// String returns the address in the usual notation of its family.
func (a Address) String() string {
	switch n := len(a.Value); {
	case a.Family == 1 && n == 4, a.Family == 2 && n == 16:
		ip, _ := netip.AddrFromSlice(a.Value)
		return ip.String()
	case a.Family == 6 && n == 6:
		return net.HardwareAddr(a.Value).String()
	}
	return fmt.Sprintf("%s (address family %d)", hex.EncodeToString(a.Value), a.Family)
}

// Capability is a set of functions of a system.
type Capability uint16

// The capabilities (802.1AB 8.5.8.1).
const (
	Other Capability = 1 << iota
	Repeater
	Bridge
	AccessPoint
	Router
	Telephone
	DOCSIS
	Station
	CVLAN
	SVLAN
	TwoPortRelay
)

// Words returns the names of the set capabilities, in the order of the bits.
func (c Capability) Words() []string {
	words := []string{}
	for i, w := range []string{"other", "repeater", "bridge", "access-point", "router", "telephone", "docsis",
		"station", "c-vlan", "s-vlan", "two-port-relay"} {
		if c&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return words
}

// Organisations' TLVs that are decoded.
var (
	oui8021 = [3]byte{0x00, 0x80, 0xc2}
	oui8023 = [3]byte{0x00, 0x12, 0x0f}
)

const (
	subtypePVID     = 1 // of oui8021 (802.1Q D.2.1)
	subtypeVLANName = 3 // of oui8021 (802.1Q D.2.3)
	subtypeMaxFrame = 4 // of oui8023 (802.3 79.3.4)
)

// PVID returns the VLAN of untagged frames on the sender's port; ok is false if it is not announced.
func (p *PDU) PVID() (vlan uint16, ok bool) { return p.word(oui8021, subtypePVID) }

// MaxFrame returns the longest frame that the sender's port accepts, in bytes with header and checksum; ok is false if
// it is not announced.
func (p *PDU) MaxFrame() (bytes uint16, ok bool) { return p.word(oui8023, subtypeMaxFrame) }

// VLAN is one that the sender's port is a member of, with the name it gives it, which may be empty.
type VLAN struct {
	ID   uint16
	Name string // as it came in, see Clean
}

// The highest VLAN id, and the longest name of a VLAN (802.1Q D.2.3.4).
const (
	maxVLAN     = 4094
	maxVLANName = 32
)

// VLANs are those that the sender announces for its port by VLAN name TLVs, in the order of their ids; empty if it
// announces none. Of one that comes twice the first counts; one whose id or length cannot be is left out.
func (p *PDU) VLANs() (list []VLAN) {
	for _, o := range p.Org {
		if o.OUI != oui8021 || o.Subtype != subtypeVLANName || len(o.Value) < 3 {
			continue
		}
		id, n := binary.BigEndian.Uint16(o.Value), int(o.Value[2])
		if id == 0 || id > maxVLAN || n > maxVLANName || len(o.Value) != 3+n {
			continue
		}
		list = append(list, VLAN{ID: id, Name: string(o.Value[3:])})
	}
	slices.SortStableFunc(list, func(a, b VLAN) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b VLAN) bool { return a.ID == b.ID })
}

func (p *PDU) word(oui [3]byte, subtype uint8) (uint16, bool) {
	for _, o := range p.Org {
		if o.OUI == oui && o.Subtype == subtype && len(o.Value) == 2 {
			return binary.BigEndian.Uint16(o.Value), true
		}
	}
	return 0, false
}

// WithMaxFrame adds the longest frame that the port accepts, in bytes with header and checksum.
func (p PDU) WithMaxFrame(size uint16) PDU { return p.withWord(oui8023, subtypeMaxFrame, size) }

// WithPVID adds the VLAN of untagged frames on the port.
func (p PDU) WithPVID(vlan uint16) PDU { return p.withWord(oui8021, subtypePVID, vlan) }

func (p PDU) withWord(oui [3]byte, subtype uint8, value uint16) PDU {
	p.Org = append(p.Org[:len(p.Org):len(p.Org)], Org{OUI: oui, Subtype: subtype,
		Value: binary.BigEndian.AppendUint16(nil, value)})
	return p
}
