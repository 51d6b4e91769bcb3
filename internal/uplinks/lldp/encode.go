package lldp

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Encode returns the PDU as it follows the Ethernet header. Texts longer than 255 bytes are cut. An id, an address or
// an organisation's value that does not fit a TLV is an error, and so is a PDU longer than one frame. With TTL 0 it is
// the goodbye: ids and TTL alone.
func (p PDU) Encode() ([]byte, error) {
	var e encoder
	e.id(tlvChassis, p.Chassis.Subtype, p.Chassis.Value)
	e.id(tlvPort, p.Port.Subtype, p.Port.Value)
	e.tlv(tlvTTL, binary.BigEndian.AppendUint16(nil, p.TTL))
	if p.TTL > 0 {
		e.text(tlvPortDescription, p.PortDescription)
		e.text(tlvSystemName, p.SystemName)
		e.text(tlvSystemDescription, p.SystemDescription)
		if c := p.Capabilities; c != nil {
			e.tlv(tlvCapabilities, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(c.Has)),
				uint16(c.Enabled)))
		}
		for _, m := range p.Management {
			e.management(m)
		}
		for _, o := range p.Org {
			e.tlv(tlvOrg, append(append(o.OUI[:len(o.OUI):len(o.OUI)], o.Subtype), o.Value...))
		}
	}
	e.tlv(tlvEnd, nil)
	if e.err == nil && len(e.b) > maxPDU {
		e.err = fmt.Errorf("LLDPDU of %d bytes: a frame holds %d", len(e.b), maxPDU)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.b, nil
}

// encoder appends TLVs and keeps the first error.
type encoder struct {
	b   []byte
	err error
}

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *encoder) tlv(kind int, v []byte) {
	if len(v) > maxValue {
		e.fail("TLV type %d of %d bytes: %d is the most", kind, len(v), maxValue)
		return
	}
	e.b = append(binary.BigEndian.AppendUint16(e.b, uint16(kind<<9|len(v))), v...)
}

func (e *encoder) id(kind int, subtype uint8, v []byte) {
	if len(v) < 1 || len(v) > maxText {
		e.fail("id of %d bytes in TLV type %d: it has 1 to %d", len(v), kind, maxText)
	}
	e.tlv(kind, append([]byte{subtype}, v...))
}

func (e *encoder) text(kind int, s string) {
	if s != "" {
		e.tlv(kind, []byte(cut(s, maxText)))
	}
}

func (e *encoder) management(m Management) {
	if n := len(m.Address.Value); n < 1 || n > 31 {
		e.fail("management address of %d bytes: it has 1 to 31", n)
		return
	}
	if len(m.OID) > 128 {
		e.fail("object identifier of %d bytes: 128 is the most", len(m.OID))
		return
	}
	v := append([]byte{byte(1 + len(m.Address.Value)), m.Address.Family}, m.Address.Value...)
	v = binary.BigEndian.AppendUint32(append(v, m.Interface), m.Number)
	e.tlv(tlvManagement, append(append(v, byte(len(m.OID))), m.OID...))
}

// cut shortens a text to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
