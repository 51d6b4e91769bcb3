package stp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"heddle/internal/plan"
)

// Group is the address to which bridges send.
var Group = plan.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x00}

// LLC is what a frame begins with after its length, and the protocol's identifier.
var LLC = []byte{0x42, 0x42, 0x03, 0x00}

// Types of BPDUs, and the flags of the rapid one (802.1D-2004 section 9.3).
const (
	typeConfiguration = 0x00
	typeRapid         = 0x02

	flagRole       = 0x0c
	roleDesignated = 0x0c
	flagForwarding = 0x20
)

// Bridge is a bridge's identifier: its priority, with the tree's number, and MAC.
type Bridge struct {
	Priority uint16
	MAC      plan.MAC
}

// String is the usual form of an identifier.
func (b Bridge) String() string { return fmt.Sprintf("%d,%s", b.Priority, b.MAC) }

// Port is what a bridge says of its port. It leaves out what differs from one BPDU to the next.
type Port struct {
	Root, Bridge Bridge
	// Number is that of the bridge's port, with its priority.
	Number uint16
	// Rapid: the bridge speaks the rapid protocol, which alone says whether a port forwards.
	Rapid bool
	// Discards: the bridge means the port to serve this link, and does not forward by it yet.
	Discards bool
}

// longest is the length of a configuration BPDU with its LLC, in bytes.
const longest = 3 + 35

// Decode reads the bytes after the Ethernet header: a configuration BPDU or a rapid one. What else bridges say, such as
// that the topology has changed, is an error: it says nothing of the port.
func Decode(b []byte) (Port, error) {
	if len(b) < longest || string(b[:len(LLC)]) != string(LLC) || b[4] != 0 {
		return Port{}, errors.New("this is no BPDU of a port")
	}
	kind, flags := b[6], b[7]
	if kind != typeConfiguration && kind != typeRapid {
		return Port{}, errors.New("this BPDU says nothing of a port")
	}
	p := Port{Root: bridge(b[8:]), Bridge: bridge(b[20:]), Number: binary.BigEndian.Uint16(b[28:]),
		Rapid: kind == typeRapid}
	p.Discards = p.Rapid && flags&flagRole == roleDesignated && flags&flagForwarding == 0
	return p, nil
}

func bridge(b []byte) Bridge {
	return Bridge{Priority: binary.BigEndian.Uint16(b), MAC: plan.MAC(b[2:8])}
}
