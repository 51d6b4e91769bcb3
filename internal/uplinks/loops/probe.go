package loops

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// EtherType of probes is one that the IEEE reserves for local experiments; others may use it too, which is why Magic
// follows.
const EtherType = abi.TypeProbe

// The payload, all integers big-endian:
//
//	 0  4  magic, "HdLp"
//	 4  4  1 if it was sent by an uplink, else 0
//	 8  4  number of the port or uplink that sent it
//	12  2  VLAN it was sent in, 0 = untagged
//	14  2  1 if that is an 802.1ad VLAN, else 0
//	16  8  round, counted by the sender
//	24 16  sender, random for every start of an agent
//	40 16  HMAC-SHA256 of everything before, cut to 16 bytes
const (
	probeLen = abi.ProbeBytes
	idAt     = 24
	macAt    = 40
)

// Sender is an agent's identity in probes: a public number, and a secret key.
type Sender struct {
	ID  [16]byte
	Key [32]byte
}

// Probe is the content of one probe.
type Probe struct {
	// Uplink: the probe was sent by an uplink, out of the host.
	Uplink bool
	Number uint32
	VLAN   uint16
	AD     bool
	Round  uint64
}

// Errors of Read.
var (
	// ErrForeign means that the probe is another agent's.
	ErrForeign = errors.New("another agent's probe")
	// ErrForged means that the probe claims to be this agent's and is not.
	ErrForged = errors.New("a forged probe")
)

// Frame returns the probe as a whole broadcast frame, with a tag if it is for a VLAN and the receiver accepts tags.
func (s *Sender) Frame(p Probe, tagged bool) []byte {
	vlan := p.VLAN
	if !tagged {
		vlan = 0
	}
	f := s.header(vlan, p.AD)
	start := len(f)
	f = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(f, abi.ProbeMagic), uint32(bit(p.Uplink)))
	f = binary.BigEndian.AppendUint32(f, p.Number)
	f = binary.BigEndian.AppendUint16(f, p.VLAN)
	f = binary.BigEndian.AppendUint16(f, bit(p.AD))
	f = binary.BigEndian.AppendUint64(f, p.Round)
	f = append(f, s.ID[:]...)
	return append(f, s.sign(f[start:])...)
}

// header returns everything before the payload; VLAN 0 is no tag.
func (s *Sender) header(vlan uint16, ad bool) []byte {
	f := append(make([]byte, 0, 80), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	mac := s.MAC()
	f = append(f, mac[:]...)
	if vlan != 0 {
		tpid := uint16(0x8100)
		if ad {
			tpid = 0x88a8
		}
		f = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(f, tpid), vlan)
	}
	return binary.BigEndian.AppendUint16(f, EtherType)
}

// MAC returns the source address of the agent's probes. Nobody else uses it, so that a guest that bridges learns
// nothing wrong from probes.
func (s *Sender) MAC() plan.MAC {
	m := plan.MAC(s.ID[:6])
	m[0] = m[0]&^1 | 2
	return m
}

// Read decodes a payload, the bytes after the EtherType. The error is ErrForeign or ErrForged.
func (s *Sender) Read(p []byte) (Probe, error) {
	if len(p) < probeLen || binary.BigEndian.Uint32(p) != abi.ProbeMagic || [16]byte(p[idAt:]) != s.ID {
		return Probe{}, ErrForeign
	}
	if !hmac.Equal(p[macAt:probeLen], s.sign(p[:macAt])) {
		return Probe{}, ErrForged
	}
	return Probe{
		Uplink: binary.BigEndian.Uint32(p[4:]) != 0, Number: binary.BigEndian.Uint32(p[8:]),
		VLAN: binary.BigEndian.Uint16(p[12:]),
		AD:   binary.BigEndian.Uint16(p[14:]) != 0, Round: binary.BigEndian.Uint64(p[16:]),
	}, nil
}

func bit(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}

func (s *Sender) sign(b []byte) []byte {
	h := hmac.New(sha256.New, s.Key[:])
	h.Write(b) // never fails
	return h.Sum(nil)[:probeLen-macAt]
}
