package cdp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"heddle/internal/plan"
	"heddle/internal/uplinks/lldp"
)

// Group is the address to which CDP is sent. Other protocols of Cisco are sent to it, too: LLC tells them apart.
var Group = plan.MAC{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc}

// LLC is what a frame of CDP begins with after its length: LLC of SNAP, Cisco's OUI, and the protocol.
var LLC = []byte{0xaa, 0xaa, 0x03, 0x00, 0x00, 0x0c, 0x20, 0x00}

// Bounds on what is kept of a frame, in bytes and numbers.
const (
	longestID       = 255
	longestText     = 511
	mostAddresses   = 8
	chassisLocal    = 7  // LLDP's subtype of an id that means something to its owner alone (802.1AB 8.5.2.2)
	ethernetBesides = 18 // header and checksum of a frame, beside its MTU
)

// Decode reads the bytes after the Ethernet header, and gives them as the LLDPDU that says the same: a neighbour is a
// neighbour, by whatever protocol it is known. What is optional and can't be read is left out, and counted.
func Decode(b []byte) (*lldp.PDU, error) {
	if len(b) < len(LLC) {
		return nil, errors.New("a frame of CDP is too short")
	}
	values := b[len(LLC):]
	if len(values) < header || values[0] != 1 && values[0] != 2 {
		return nil, errors.New("this is no CDP of version 1 or 2")
	}
	info, unread := read(values)
	if info.DeviceID == "" || info.PortID == "" {
		return nil, errors.New("CDP names no device, or no port")
	}
	p := pdu(uint16(values[1]), info)
	p.Unread = unread
	return p, nil
}

// header is the length of CDP's own header: version, time to live, checksum. Each value begins with type and length.
const header = 4

// read reads value by value, so that one that can't be read, or the padding of a short frame, hides none of the others.
func read(b []byte) (all layers.CiscoDiscoveryInfo, unread int) {
	for rest := b[header:]; len(rest) >= header; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < header || n > len(rest) {
			break // padding, or the end is missing
		}
		one := append(append(make([]byte, 0, header+n), b[:header]...), rest[:n]...)
		rest = rest[n:]
		p := gopacket.NewPacket(one, layers.LayerTypeCiscoDiscovery, gopacket.Default)
		info, ok := p.Layer(layers.LayerTypeCiscoDiscoveryInfo).(*layers.CiscoDiscoveryInfo)
		if !ok || p.ErrorLayer() != nil {
			unread++
			continue
		}
		merge(&all, info)
	}
	return all, unread
}

// merge takes over what a value says.
func merge(all, one *layers.CiscoDiscoveryInfo) {
	all.DeviceID, all.PortID = cmp.Or(all.DeviceID, one.DeviceID), cmp.Or(all.PortID, one.PortID)
	all.SysName, all.Version = cmp.Or(all.SysName, one.SysName), cmp.Or(all.Version, one.Version)
	all.Platform, all.NativeVLAN = cmp.Or(all.Platform, one.Platform), cmp.Or(all.NativeVLAN, one.NativeVLAN)
	all.MTU = cmp.Or(all.MTU, one.MTU)
	if one.Capabilities != (layers.CDPCapabilities{}) {
		all.Capabilities = one.Capabilities
	}
	all.Addresses = append(all.Addresses, one.Addresses...)
	all.MgmtAddresses = append(all.MgmtAddresses, one.MgmtAddresses...)
}

func pdu(ttl uint16, info layers.CiscoDiscoveryInfo) *lldp.PDU {
	p := lldp.PDU{
		By: lldp.ByCDP, TTL: ttl,
		Chassis:           lldp.ChassisID{Subtype: chassisLocal, Value: []byte(cut(info.DeviceID, longestID))},
		Port:              lldp.PortID{Subtype: lldp.PortIfName, Value: []byte(cut(info.PortID, longestID))},
		SystemName:        cut(cmp.Or(info.SysName, info.DeviceID), longestID),
		SystemDescription: cut(info.Platform+", "+info.Version, longestText),
		Capabilities:      capabilities(info.Capabilities),
	}
	for _, a := range append(info.MgmtAddresses, info.Addresses...) {
		if len(p.Management) < mostAddresses {
			p.Management = append(p.Management, management(a))
		}
	}
	if v := info.NativeVLAN; v > 0 {
		p = p.WithPVID(v)
	}
	if info.MTU > 0 && info.MTU <= math.MaxUint16-ethernetBesides {
		p = p.WithMaxFrame(uint16(info.MTU) + ethernetBesides)
	}
	return &p
}

func management(a net.IP) lldp.Management {
	m := lldp.Management{Address: lldp.Address{Family: 2, Value: a}, Interface: 1}
	if v4 := a.To4(); v4 != nil {
		m.Address = lldp.Address{Family: 1, Value: v4}
	}
	return m
}

func capabilities(c layers.CDPCapabilities) *lldp.Capabilities {
	var has lldp.Capability
	for _, x := range []struct {
		has bool
		as  lldp.Capability
	}{{c.L3Router, lldp.Router}, {c.TBBridge || c.SPBridge || c.L2Switch, lldp.Bridge}, {c.IsHost, lldp.Station},
		{c.L1Repeater, lldp.Repeater}, {c.IsPhone, lldp.Telephone}} {
		if x.has {
			has |= x.as
		}
	}
	return &lldp.Capabilities{Has: has, Enabled: has}
}

func cut(s string, bytes int) string { return s[:min(len(s), bytes)] }
