package cni

import (
	"fmt"
	"net"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// announce says to all neighbours that the addresses are the container's now: by a gratuitous ARP request (RFC 5227
// section 3) and an unsolicited neighbour advertisement (RFC 4861 section 7.2.6).
func (s *sandbox) announce(ifname string, mac net.HardwareAddr, ips []*current.IPConfig) error {
	return s.inside(func() error {
		i, err := net.InterfaceByName(ifname)
		if err != nil {
			return fmt.Errorf("find the container's interface: %w", err)
		}
		c, err := packet.Listen(i, packet.Raw, unix.ETH_P_LOOPBACK, nil)
		if err != nil {
			return fmt.Errorf("announce the container's addresses: %w", err)
		}
		defer c.Close()
		for _, ip := range ips {
			frame, err := announcement(mac, ip.Address.IP)
			if err == nil {
				_, err = c.WriteTo(frame, &packet.Addr{HardwareAddr: net.HardwareAddr(frame[:6])})
			}
			if err != nil {
				return fmt.Errorf("announce the container's address %s: %w", ip.Address.IP, err)
			}
		}
		return nil
	})
}

// announcement is the frame by which neighbours learn that an address is at a MAC.
func announcement(mac net.HardwareAddr, ip net.IP) ([]byte, error) {
	b := gopacket.NewSerializeBuffer()
	o := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if v4 := ip.To4(); v4 != nil {
		err := gopacket.SerializeLayers(b, o,
			&layers.Ethernet{SrcMAC: mac, DstMAC: layers.EthernetBroadcast, EthernetType: layers.EthernetTypeARP},
			&layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6,
				ProtAddressSize: 4, Operation: layers.ARPRequest, SourceHwAddress: mac, SourceProtAddress: v4,
				DstHwAddress: make([]byte, 6), DstProtAddress: v4})
		return b.Bytes(), err
	}
	all := net.IPv6linklocalallnodes
	v6 := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: ip, DstIP: all}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)}
	if err := icmp.SetNetworkLayerForChecksum(v6); err != nil {
		return nil, err
	}
	err := gopacket.SerializeLayers(b, o,
		&layers.Ethernet{SrcMAC: mac, DstMAC: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1},
			EthernetType: layers.EthernetTypeIPv6}, v6, icmp,
		&layers.ICMPv6NeighborAdvertisement{Flags: override, TargetAddress: ip, Options: layers.ICMPv6Options{
			{Type: layers.ICMPv6OptTargetAddress, Data: mac}}})
	return b.Bytes(), err
}

// override has neighbours replace the MAC that they know.
const override = 0x20
