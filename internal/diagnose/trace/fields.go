package trace

import (
	"fmt"
	"heddle/internal/diagnose"
	"net/netip"
	"strconv"
	"strings"
)

// ParseAddresses reads "DST" or "SRC,DST". family is 4 or 6.
func ParseAddresses(text string, family int) (*diagnose.Addresses, error) {
	src, dst, both := strings.Cut(text, ",")
	if !both {
		src, dst = "", text
	}
	a := &diagnose.Addresses{}
	for _, x := range []struct {
		text string
		to   *netip.Addr
	}{{src, &a.Src}, {dst, &a.Dst}} {
		if x.text == "" && both || x.text == "" && x.to == &a.Dst {
			return nil, fmt.Errorf("%q: give the destination, or source and destination with a comma between them",
				text)
		}
		if x.text == "" {
			continue
		}
		addr, err := netip.ParseAddr(x.text)
		if err != nil || addr.Zone() != "" || addr.Is4() != (family == 4) {
			return nil, fmt.Errorf("%q is not an IPv%d address", x.text, family)
		}
		*x.to = addr
	}
	return a, nil
}

// ParsePorts reads "DST" or "SRC,DST".
func ParsePorts(text string) (*diagnose.Ports, error) {
	src, dst, both := strings.Cut(text, ",")
	if !both {
		src, dst = "0", text
	}
	s, err1 := strconv.ParseUint(src, 10, 16)
	d, err2 := strconv.ParseUint(dst, 10, 16)
	if err1 != nil || err2 != nil || d == 0 || both && s == 0 {
		return nil, fmt.Errorf("%q: give the destination port, or source and destination port with a comma between "+
			"them, each 1–65535", text)
	}
	return &diagnose.Ports{Src: uint16(s), Dst: uint16(d)}, nil
}

// check returns an error for fields that do not fit together.
func check(f *diagnose.Fields) error {
	n := 0
	for _, given := range []bool{f.TCP != nil, f.UDP != nil, f.ICMP} {
		if given {
			n++
		}
	}
	switch {
	case f.ARP != nil && f.IP != nil:
		return fmt.Errorf("a frame is ARP or IP, not both")
	case f.EtherType != nil && (f.ARP != nil || f.IP != nil):
		return fmt.Errorf("the Ethernet type of ARP and IP is given by the protocol: leave it out")
	case n > 1:
		return fmt.Errorf("a packet is one of TCP, UDP and ICMP")
	case n == 1 && f.IP == nil:
		return fmt.Errorf("TCP, UDP and ICMP need the packet's address: give --ip or --ip6")
	case f.ARP != nil && (!f.ARP.Dst.Is4() || f.ARP.Src.IsValid() && !f.ARP.Src.Is4()):
		return fmt.Errorf("ARP asks for IPv4 addresses")
	case f.IP != nil && (!f.IP.Dst.IsValid() || f.IP.Src.IsValid() && f.IP.Src.Is4() != f.IP.Dst.Is4()):
		return fmt.Errorf("source and destination of a packet are both IPv4 or both IPv6")
	case f.VLAN != nil && *f.VLAN > 4094, f.Outer != nil && *f.Outer > 4094:
		return fmt.Errorf("VLAN ids are 0–4094; 0 is a priority tag, which belongs to no VLAN")
	case f.EtherType != nil && *f.EtherType < 0x600:
		return fmt.Errorf("type %#04x: Ethernet types begin at 0x0600", *f.EtherType)
	case f.EtherType != nil && (*f.EtherType == typeQ || *f.EtherType == typeAD):
		return fmt.Errorf("type %#04x is that of a VLAN tag: give it with --vlan or --qinq", *f.EtherType)
	case f.Length < 0 || f.Length > diagnose.MaxLength:
		return fmt.Errorf("a frame of %d bytes: frames have up to %d", f.Length, diagnose.MaxLength)
	}
	return nil
}
