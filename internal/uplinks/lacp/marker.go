package lacp

import (
	"encoding/binary"
	"fmt"

	"heddle/internal/plan"
)

// TLV types of a marker PDU and their length (802.1AX 6.5.3).
const (
	tlvMarker, tlvMarkerResponse, lenMarker = 1, 2, 16
)

// Marker asks whether every frame sent before it has arrived, or is the answer to that.
type Marker struct {
	Response    bool // it answers a request
	Port        uint16
	System      plan.MAC
	Transaction uint32
}

// Answer returns the response to a request: the same content, with another TLV type (802.1AX 6.5.4.2).
func (m Marker) Answer() Marker {
	m.Response = true
	return m
}

// Encode returns the PDU as it follows the Ethernet header: Size bytes.
func (m Marker) Encode() []byte {
	b := make([]byte, Size)
	b[0], b[1], b[2], b[3] = SubtypeMarker, 1, tlvMarker, lenMarker
	if m.Response {
		b[2] = tlvMarkerResponse
	}
	binary.BigEndian.PutUint16(b[4:], m.Port)
	copy(b[6:12], m.System[:])
	binary.BigEndian.PutUint32(b[12:], m.Transaction)
	return b
}

func decodeMarker(b []byte) (*Marker, error) {
	switch {
	case len(b) < Size:
		return nil, fmt.Errorf("marker PDU: offset %d: it ends here, %d bytes are needed", len(b), Size)
	case b[2] != tlvMarker && b[2] != tlvMarkerResponse:
		return nil, fmt.Errorf("marker PDU: offset 2: TLV type %d, want %d or %d", b[2], tlvMarker, tlvMarkerResponse)
	case b[3] != lenMarker:
		return nil, fmt.Errorf("marker PDU: offset 3: TLV length %d, want %d", b[3], lenMarker)
	}
	return &Marker{Response: b[2] == tlvMarkerResponse, Port: binary.BigEndian.Uint16(b[4:]), System: plan.MAC(b[6:12]),
		Transaction: binary.BigEndian.Uint32(b[12:])}, nil
}
