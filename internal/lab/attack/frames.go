package attack

import (
	"encoding/binary"
	"slices"

	"heddle/internal/plan"
	"heddle/internal/uplinks/beacon"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/lldp"
)

// protocol is a link protocol that the attacker speaks.
type protocol struct {
	name    string
	group   plan.MAC
	payload func(from plan.MAC) []byte // preceded by its EtherType or length
}

// protocols are those by which a guest could harm a host or its physical switch.
func protocols() []protocol {
	return []protocol{
		{"lacp", lacp.Destination, lacpdu},
		{"lldp", lldp.Groups[0], lldpdu},
		{"beacon", beacon.Destination, probe},
		{"pause", plan.MAC{0x01, 0x80, 0xc2, 0, 0, 0x01}, pause},
		{"bpdu", plan.MAC{0x01, 0x80, 0xc2, 0, 0, 0x00}, bpdu},
	}
}

// lacpdu is a message of a partner that is ready to bundle.
func lacpdu(from plan.MAC) []byte {
	state := lacp.Activity | lacp.Aggregation | lacp.Synchronization | lacp.Collecting | lacp.Distributing
	p := lacp.PDU{Actor: lacp.Info{System: lacp.System{Priority: 1, MAC: from}, Key: 1, Port: lacp.Port{Number: 1},
		State: state}}
	return append(binary.BigEndian.AppendUint16(nil, lacp.EtherType), p.Encode()...)
}

// lldpdu is a message of a neighbour that does not exist.
func lldpdu(from plan.MAC) []byte {
	p := lldp.PDU{Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: from[:]},
		Port: lldp.PortID{Subtype: lldp.PortMAC, Value: from[:]},
		TTL:  600, SystemName: "core-switch-1"}
	b, err := p.Encode()
	if err != nil {
		panic(err) // its fields are fixed and within their limits
	}
	return append(binary.BigEndian.AppendUint16(nil, lldp.EtherType), b...)
}

// probe is a beacon of another sender.
func probe(from plan.MAC) []byte {
	s := beacon.Sender{ID: [16]byte{0xbb}}
	return s.Frame(beacon.Beacon{Uplink: plan.PortID{Switch: "lab", Name: "uplink1"}, Round: 1}, from)[12:]
}

// pause requests the longest pause (802.3 annex 31B).
func pause(plan.MAC) []byte {
	return append([]byte{0x88, 0x08, 0x00, 0x01, 0xff, 0xff}, make([]byte, 42)...)
}

// bpdu claims the root of the spanning tree.
func bpdu(from plan.MAC) []byte {
	b := slices.Concat([]byte{0, 38, 0x42, 0x42, 0x03, 0, 0, 0, 0, 0}, []byte{0, 0}, from[:], make([]byte, 4),
		[]byte{0, 0}, from[:])
	return append(b, 0x80, 0x01, 0, 0, 20, 0, 2, 0, 15, 0, 0, 0)
}

// destination is a kind of destination address; nil stands for the protocol's group.
type destination struct {
	name string
	to   *plan.MAC
}

func destinations() []destination {
	return []destination{
		{"group", nil},
		{"broadcast", &plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{"multicast", &plan.MAC{0x01, 0x00, 0x5e, 0x01, 0x01, 0x01}},
		{"unicast", &plan.MAC{0x02, 0, 0, 0, 0x99, 0x99}},
	}
}

// way is an attacking guest and the tag of its frames.
type way struct {
	vm, name string
	tag      []byte
}

// ways are the kinds of ports that a guest may have, each with the tags that it may try.
func ways() []way {
	q, ad, priority := []byte{0x81, 0, 1, 44}, []byte{0x88, 0xa8, 1, 44}, []byte{0x81, 0, 0xe0, 0}
	return []way{
		{"access", "untagged", nil}, {"access", "priority tag", priority}, {"access", "VLAN 300", q},
		{"none", "untagged", nil}, {"none", "priority tag", priority}, {"none", "VLAN 300", q},
		{"trunk", "untagged", nil}, {"trunk", "priority tag", priority}, {"trunk", "VLAN 300", q},
		{"trunk", "802.1ad 300", ad},
	}
}
