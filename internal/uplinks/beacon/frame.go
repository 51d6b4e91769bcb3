package beacon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"heddle/internal/plan"
)

// EtherType of beacons; vSphere's beacons use it as well.
const EtherType = 0x8922

// The payload, all integers big-endian:
//
//	 0  4  magic "HdlB"
//	 4  1  version, 1
//	 5  1  0
//	 6  2  VLAN the beacon is sent in, 0 = untagged
//	 8  8  round, counted by the sender
//	16 16  sender, random for every start of an agent
//	32  1  length of the switch's name, then the name
//	    1  length of the uplink's name, then the name
//	   16  HMAC-SHA256 of everything before, cut to 16 bytes
const (
	magic   = 0x48646c42 // "HdlB"
	version = 1
	fixed   = 32
	macLen  = 16
	// SenderOffset is the offset of the sender, and MinSize the length of the shortest beacon, both in bytes after the
	// EtherType.
	SenderOffset = 16
	MinSize      = fixed + 2 + macLen
)

// Destination is the broadcast address: a beacon finds out whether the network carries the frames of guests.
var Destination = plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Head returns the bytes with which every beacon begins.
func Head() []byte { return append(binary.BigEndian.AppendUint32(nil, magic), version) }

// Sender is an agent's identity in beacons: a public number, and the secret key with which it signs its beacons. An
// agent makes both at its start and never reveals the key, so that neither a guest nor a neighbour can forge a beacon.
type Sender struct {
	ID  [16]byte
	Key [32]byte
}

// Beacon is the content of one beacon.
type Beacon struct {
	Uplink plan.PortID // that sent it
	VLAN   uint16      // 0 = untagged
	Round  uint64
}

// Errors of Read.
var (
	// ErrForeign means that the beacon is another agent's, or not a beacon at all. This is normal.
	ErrForeign = errors.New("another agent's beacon")
	// ErrForged means that the beacon claims to be this agent's and is not.
	ErrForged = errors.New("a forged beacon")
)

// Frame returns the beacon as a whole Ethernet frame from the uplink device's own MAC, with an 802.1Q tag in a VLAN.
// Names are at most 255 bytes.
func (s *Sender) Frame(b Beacon, device plan.MAC) []byte {
	f := append(make([]byte, 0, 128), Destination[:]...)
	f = append(f, device[:]...)
	if b.VLAN != 0 {
		f = binary.BigEndian.AppendUint16(append(f, 0x81, 0x00), b.VLAN)
	}
	f = binary.BigEndian.AppendUint16(f, EtherType)
	start := len(f)
	f = binary.BigEndian.AppendUint32(f, magic)
	f = append(f, version, 0)
	f = binary.BigEndian.AppendUint16(f, b.VLAN)
	f = binary.BigEndian.AppendUint64(f, b.Round)
	f = append(f, s.ID[:]...)
	for _, name := range []string{b.Uplink.Switch, b.Uplink.Name} {
		f = append(append(f, byte(len(name))), name...)
	}
	return append(f, s.mac(f[start:])...)
}

// Read decodes a payload, the bytes after the EtherType; what follows the beacon is padding. The error is ErrForeign or
// ErrForged. The cheap checks come first, so that a flood of foreign frames costs little.
func (s *Sender) Read(p []byte) (Beacon, error) {
	if len(p) < fixed || binary.BigEndian.Uint32(p) != magic || p[4] != version || [16]byte(p[SenderOffset:]) != s.ID {
		return Beacon{}, ErrForeign
	}
	b := Beacon{VLAN: binary.BigEndian.Uint16(p[6:]), Round: binary.BigEndian.Uint64(p[8:])}
	at := fixed
	for _, name := range []*string{&b.Uplink.Switch, &b.Uplink.Name} {
		if at >= len(p) || at+1+int(p[at]) > len(p) {
			return Beacon{}, ErrForged
		}
		*name = string(p[at+1 : at+1+int(p[at])])
		at += 1 + len(*name)
	}
	if at+macLen > len(p) || !hmac.Equal(p[at:at+macLen], s.mac(p[:at])) {
		return Beacon{}, ErrForged
	}
	return b, nil
}

func (s *Sender) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.Key[:])
	h.Write(b) // never fails
	return h.Sum(nil)[:macLen]
}
