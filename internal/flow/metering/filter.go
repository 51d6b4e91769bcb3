package metering

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/api"
	"heddle/internal/flow"
)

// matcher says which flows a filter selects.
type matcher struct {
	api.FlowFilter
	prefix    netip.Prefix
	etherType uint16 // 0 = any
	llc       bool   // only frames of IEEE 802.3 with a length instead of an EtherType
	protocol  int    // -1 = any
	direction int    // -1 = any
}

// newMatcher parses a filter. The error says what is wrong with it.
func newMatcher(f api.FlowFilter) (*matcher, error) {
	m := &matcher{FlowFilter: f, protocol: -1, direction: -1}
	if f.Address != "" {
		p, err := netip.ParsePrefix(f.Address)
		if err != nil {
			a, errAddr := netip.ParseAddr(f.Address)
			if errAddr != nil || a.Zone() != "" {
				return nil, invalid("address %q: give an address, or a prefix such as 192.0.2.0/24", f.Address)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		m.prefix = p.Masked()
	}
	if f.L4Port < 0 || f.L4Port > 65535 {
		return nil, invalid("l4port %d: a port is 1–65535", f.L4Port)
	}
	switch f.Direction {
	case "":
	case "ingress":
		m.direction = int(flow.Ingress)
	case "egress":
		m.direction = int(flow.Egress)
	default:
		return nil, invalid("direction %q: it is ingress or egress", f.Direction)
	}
	return m, m.setProtocol(f.Protocol)
}

func invalid(format string, args ...any) error {
	return api.NewError(api.Invalid, fmt.Sprintf(format, args...))
}

// setProtocol parses the name or number of a protocol of IP, or an EtherType.
func (m *matcher) setProtocol(word string) error {
	word = strings.ToLower(word)
	if word == "" {
		return nil
	}
	for n, name := range protocolNames() {
		if name == word {
			m.protocol = int(n)
			return nil
		}
	}
	if word == llc {
		m.llc = true
		return nil
	}
	for n, name := range etherTypeNames() {
		if name == word {
			m.etherType = n
			return nil
		}
	}
	if hex, ok := strings.CutPrefix(word, "0x"); ok {
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && n > 0 {
			m.etherType = uint16(n)
			return nil
		}
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n > 255 {
		return invalid("protocol %q: give tcp, udp, icmp, icmp6, sctp, arp or another name, a number of IP 0–255, or "+
			"an EtherType such as 0x88cc", word)
	}
	m.protocol = n
	return nil
}

// match reports whether the filter selects the flow with that key, observed at that point.
func (m *matcher) match(at *flow.Point, k *flow.Key) bool {
	switch {
	case m.Switch != "" && at.ID.Switch != m.Switch,
		m.Port != "" && at.ID.Name != m.Port,
		m.Uplink != "" && (!at.Uplink || at.ID.Name != m.Uplink),
		m.PortGroup != "" && (at.Uplink || at.PortGroup != m.PortGroup),
		m.direction >= 0 && int(k.Direction) != m.direction,
		m.etherType != 0 && k.EtherType != m.etherType,
		m.llc && !isLength(k.EtherType),
		m.protocol >= 0 && (!isIP(k) || int(k.Protocol) != m.protocol),
		m.L4Port != 0 && (!hasPorts(k) || int(k.SrcPort) != m.L4Port && int(k.DstPort) != m.L4Port):
		return false
	}
	if !m.prefix.IsValid() {
		return true
	}
	src, dst := k.Addresses()
	return m.prefix.Contains(src) || m.prefix.Contains(dst)
}

func isIP(k *flow.Key) bool { return k.EtherType == flow.IPv4 || k.EtherType == flow.IPv6 }

// llc stands for frames with a length instead of an EtherType, such as a spanning tree's (IEEE 802.3 clause 3.2.6).
const llc = "llc"

func isLength(etherType uint16) bool { return etherType < 0x0600 }

// Protocols of IP.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoICMPv6 = 58
)

// hasPorts reports whether the numbers of the key are ports.
func hasPorts(k *flow.Key) bool {
	return isIP(k) && slices.Contains([]uint8{protoTCP, 17, 33, 132, 136}, k.Protocol)
}

// protocolNames are the protocols of IP that have a name here (IANA's protocol numbers).
func protocolNames() map[uint8]string {
	return map[uint8]string{0: "hopopt", protoICMP: "icmp", 2: "igmp", 4: "ipip", protoTCP: "tcp", 17: "udp",
		33: "dccp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah",
		protoICMPv6: "icmp6", 59: "none", 88: "eigrp", 89: "ospf", 103: "pim", 112: "vrrp", 132: "sctp", 136: "udplite"}
}

// etherTypeNames are the EtherTypes that have a name here.
func etherTypeNames() map[uint16]string {
	return map[uint16]string{0x0806: "arp", 0x8035: "rarp", 0x88cc: "lldp", 0x8809: "slow", 0x888e: "eapol",
		0x8847: "mpls", 0x8863: "pppoe-discovery", 0x8864: "pppoe"}
}
