package guardcases

// Case is a frame that the owner of a guarded port sends.
type Case struct {
	Name  string
	Frame []byte
	// Reason is why it is dropped; "" for one that passes.
	Reason string
}

// Addresses are those of the guarded port, whose MAC is 02:00:00:00:00:01. It is a trunk of the VLANs 0 and 5.
var Addresses = []string{"192.0.2.10", "198.51.100.0/28", "2001:db8::10", "2001:db8:1::/64"}

const (
	ipSource = "ip-source-not-allowed"
	arp      = "arp-sender-not-allowed"
	nd       = "nd-target-not-allowed"
	dhcp     = "guest-dhcp-server"
	router   = "guest-router-advertisement"

	own4, other4, own6, other6 = "192.0.2.10", "192.0.2.11", "2001:db8::10", "2001:db8::11"
	linkLocal                  = "fe80::ff:fe00:1" // of the port's MAC
)

// Sources are frames of IP under an address guard.
func Sources() []Case {
	return []Case{
		{"IPv4 from its own address", eth(0x0800, ip4(own4, other4, 17, 0, udp(1000, 53))), ""},
		{"IPv4 from the first of its prefix", eth(0x0800, ip4("198.51.100.0", other4, 6, 0, nil)), ""},
		{"IPv4 from the last of its prefix", eth(0x0800, ip4("198.51.100.15", other4, 6, 0, nil)), ""},
		{"IPv4 from behind its prefix", eth(0x0800, ip4("198.51.100.16", other4, 6, 0, nil)), ipSource},
		{"IPv4 from another address", eth(0x0800, ip4(other4, own4, 17, 0, udp(1000, 53))), ipSource},
		{"IPv4 from another address, tagged", eth(0x8100, []byte{0, 5, 8, 0}, ip4(other4, own4, 17, 0, udp(1000, 53))),
			ipSource},
		{"IPv4 from its own address, tagged", eth(0x8100, []byte{0, 5, 8, 0}, ip4(own4, other4, 17, 0, udp(1000, 53))),
			""},
		{"IPv4 from another address behind two tags", eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 8, 0},
			ip4(other4, own4, 17, 0, nil)), ipSource},
		{"IPv4 from its own address behind two tags", eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 8, 0},
			ip4(own4, other4, 17, 0, udp(1, 2))), ""},
		{"three tags", eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 0x81, 0, 0, 0, 8, 0}, ip4(own4, other4, 17, 0, nil)),
			ipSource},
		{"IPv4 in an LLC header", eth(20+8+8, []byte{0xaa, 0xaa, 3, 0, 0, 0, 8, 0},
			ip4(own4, other4, 17, 0, udp(1, 2))), ipSource},
		{"IPv4 in an LLC header of 802.1H", eth(20+8+8, []byte{0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0},
			ip4(own4, other4, 17, 0, udp(1, 2))), ipSource},
		{"IPv4 in an LLC header behind a tag", eth(0x8100, []byte{0, 5, 0, 36, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0},
			ip4(own4, other4, 17, 0, udp(1, 2))), ipSource},
		{"an LLC header of Cisco's", eth(8, []byte{0xaa, 0xaa, 3, 0, 0, 0x0c, 1, 0x0b}), ""},
		{"IPv4 with a header of 4 words", eth(0x0800, change(ip4(own4, other4, 17, 0, udp(1, 2)), 0, 0x44)), ipSource},
		{"IPv4 that says version 6", eth(0x0800, change(ip4(own4, other4, 17, 0, udp(1, 2)), 0, 0x65)), ipSource},
		{"IPv4 with options beyond the frame", eth(0x0800, change(ip4(own4, other4, 17, 0, udp(1, 2)), 0, 0x4f)),
			ipSource},
		{"a later fragment from another address", eth(0x0800, ip4(other4, own4, 17, 100, udp(1, 2))), ipSource},
		{"a later fragment from its own address", eth(0x0800, ip4(own4, other4, 17, 100, udp(1, 2))), ""},
		{"a DHCP client without an address", eth(0x0800, ip4("0.0.0.0", "255.255.255.255", 17, 0, udp(68, 67))), ""},
		{"a DHCP client's fragment", eth(0x0800, ip4("0.0.0.0", "255.255.255.255", 17, 0x2000, udp(68, 67))), ipSource},
		{"no address, and no DHCP", eth(0x0800, ip4("0.0.0.0", "255.255.255.255", 17, 0, udp(68, 69))), ipSource},
		{"no address, TCP to port 67", eth(0x0800, ip4("0.0.0.0", "255.255.255.255", 6, 0, udp(68, 67))), ipSource},
		{"IGMP without an address", eth(0x0800, ip4("0.0.0.0", "224.0.0.22", 2, 0, nil)), ""},
		{"IGMP from another address", eth(0x0800, ip4(other4, "224.0.0.22", 2, 0, nil)), ""},
		{"IGMP to no group", eth(0x0800, ip4(other4, own4, 2, 0, nil)), ipSource},
		{"IPv6 from its own address", eth(0x86dd, ip6(own6, other6, 17, udp(1, 2))), ""},
		{"IPv6 from its prefix", eth(0x86dd, ip6("2001:db8:1::ffff", other6, 17, udp(1, 2))), ""},
		{"IPv6 from another address", eth(0x86dd, ip6(other6, own6, 17, udp(1, 2))), ipSource},
		{"IPv6 from an IPv4 address of its own", eth(0x86dd, ip6("::ffff:192.0.2.10", own6, 17, udp(1, 2))), ipSource},
		{"IPv6 whose first bytes are those of an IPv4 address of its own",
			eth(0x86dd, ip6("c000:20a::", own6, 17, udp(1, 2))), ipSource},
		{"IPv6 from the link-local address of its MAC", eth(0x86dd, ip6(linkLocal, other6, 17, udp(546, 547))), ""},
		{"IPv6 from another link-local address", eth(0x86dd, ip6("fe80::1", other6, 17, udp(546, 547))), ipSource},
		{"IPv6 from its MAC's address in another prefix",
			eth(0x86dd, ip6("fe80:1::ff:fe00:1", other6, 17, udp(546, 547))), ipSource},
		{"IPv6 that says version 4", eth(0x86dd, change(ip6(own6, other6, 17, udp(1, 2)), 0, 0x45)), ipSource},
		{"IPv6 that is cut short", eth(0x8100, []byte{0, 5, 0x86, 0xdd}, ip6(own6, other6, 17, nil)[:39]), ipSource},
		{"IPv6 from another address behind a fragment header",
			eth(0x86dd, ip6(other6, own6, 44, fragment(17, 0), udp(1, 2))), ipSource},
		{"a router solicitation without an address", eth(0x86dd, ip6("::", "ff02::2", 58, icmp(133, 8))), ""},
		{"duplicate address detection", eth(0x86dd, ip6("::", "ff02::1:ff00:11", 58, icmp(135, 24))), ""},
		{"duplicate address detection in a fragment",
			eth(0x86dd, ip6("::", "ff02::1:ff00:11", 44, fragment(58, 1), icmp(135, 24))), ipSource},
		{"an echo without an address", eth(0x86dd, ip6("::", "ff02::1", 58, icmp(128, 8))), ipSource},
		{"a listener report without an address",
			eth(0x86dd, ip6("::", "ff02::16", 0, []byte{58, 0, 5, 2, 0, 0, 1, 0}, icmp(143, 28))), ""},
		{"a listener report from another link-local address",
			eth(0x86dd, ip6("fe80::1", "ff02::16", 0, []byte{58, 0, 5, 2, 0, 0, 1, 0}, icmp(143, 28))), ""},
		{"a listener query", eth(0x86dd, ip6("fe80::1", "ff02::1", 58, icmp(130, 28))), ""},
		{"a listener report to no group", eth(0x86dd, ip6("fe80::1", other6, 58, icmp(143, 28))), ipSource},
		{"neither IP nor ARP", eth(0x88b7, make([]byte, 40)), ""},
		{"RARP, as QEMU announces a guest", eth(0x8035, arpBody(3, "0.0.0.0", "0.0.0.0")), ""},
	}
}

// Neighbours are frames of ARP and of neighbour discovery under an address guard.
func Neighbours() []Case {
	all := "ff02::1"
	return []Case{
		{"an ARP request of its own", eth(0x0806, arpBody(1, own4, other4)), ""},
		{"an ARP answer of its own", eth(0x0806, arpBody(2, own4, other4)), ""},
		{"ARP of its prefix", eth(0x0806, arpBody(1, "198.51.100.3", "198.51.100.3")), ""},
		{"an ARP probe", eth(0x0806, arpBody(1, "0.0.0.0", other4)), ""},
		{"an ARP answer from nobody", eth(0x0806, arpBody(2, "0.0.0.0", other4)), arp},
		{"an ARP request of another", eth(0x0806, arpBody(1, other4, own4)), arp},
		{"an ARP answer of another", eth(0x0806, arpBody(2, other4, own4)), arp},
		{"an ARP announcement of another", eth(0x0806, arpBody(1, other4, other4)), arp},
		{"ARP of another behind a tag", eth(0x8100, []byte{0, 5, 8, 6}, arpBody(2, other4, own4)), arp},
		{"ARP of another behind two tags", eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 8, 6}, arpBody(2, other4, own4)),
			arp},
		{"ARP with MACs of 5 bytes", eth(0x0806, change(arpBody(2, own4, other4), 4, 5)), arp},
		{"ARP with addresses of 16 bytes", eth(0x0806, change(arpBody(2, own4, other4), 5, 16)), arp},
		{"ARP for no Ethernet", eth(0x0806, change(arpBody(2, own4, other4), 1, 6)), arp},
		{"ARP for no IPv4", eth(0x0806, change(arpBody(2, own4, other4), 2, 0x86)), arp},
		{"ARP that is cut short", eth(0x0806, arpBody(2, own4, other4)[:27]), arp},
		{"an advertisement of its own", eth(0x86dd, ip6(own6, all, 58, advertise(own6))), ""},
		{"an advertisement of its link-local address", eth(0x86dd, ip6(linkLocal, all, 58, advertise(linkLocal))), ""},
		{"an advertisement of another", eth(0x86dd, ip6(own6, all, 58, advertise(other6))), nd},
		{"an advertisement of the router", eth(0x86dd, ip6(linkLocal, all, 58, advertise("fe80::1"))), nd},
		{"an advertisement of another, behind a tag", eth(0x8100, []byte{0, 5, 0x86, 0xdd},
			ip6(own6, all, 58, advertise(other6))), nd},
		{"an advertisement of another behind hop-by-hop options",
			eth(0x86dd, ip6(own6, all, 0, []byte{58, 0, 1, 4, 0, 0, 0, 0}, advertise(other6))), nd},
		{"an advertisement of another behind a fragment header",
			eth(0x86dd, ip6(own6, all, 44, fragment(58, 0), advertise(other6))), nd},
		{"an advertisement of another in the first fragment",
			eth(0x86dd, ip6(own6, all, 44, fragment(58, 1), advertise(other6))), nd},
		{"an advertisement behind eight headers", eth(0x86dd, ip6(own6, all, 60, headers(8, 58), advertise(own6))), ""},
		{"an advertisement of another behind eight headers",
			eth(0x86dd, ip6(own6, all, 60, headers(8, 58), advertise(other6))), nd},
		{"nine headers", eth(0x86dd, ip6(own6, all, 60, headers(9, 58), advertise(own6))), nd},
		{"a first fragment without its last header", eth(0x86dd, ip6(own6, all, 44, fragment(60, 1))), nd},
		{"a header that leads out of the packet",
			eth(0x86dd, ip6(own6, all, 60, []byte{58, 9, 1, 4, 0, 0, 0, 0}, advertise(own6))), nd},
		{"an advertisement without its target", eth(0x86dd, ip6(own6, all, 58, advertise(own6)[:23])), nd},
		{"a later fragment", eth(0x86dd, ip6(own6, all, 44, fragment(58, 8), advertise(other6))), ""},
		{"a solicitation for another", eth(0x86dd, ip6(own6, "ff02::1:ff00:11", 58, solicit(other6))), ""},
		{"a solicitation from another for its own", eth(0x86dd, ip6(other6, "ff02::1:ff00:10", 58, solicit(own6))),
			ipSource},
		{"an advertisement of its own from another", eth(0x86dd, ip6(other6, all, 58, advertise(own6))), ipSource},
	}
}

// Servers are frames of a port whose owner may neither answer DHCP nor advertise itself as a router, and may use any
// address.
func Servers() []Case {
	return []Case{
		{"a DHCP client", eth(0x0800, ip4("0.0.0.0", "255.255.255.255", 17, 0, udp(68, 67))), ""},
		{"a DHCP server", eth(0x0800, ip4(other4, "255.255.255.255", 17, 0, udp(67, 68))), dhcp},
		{"a DHCP server by another port", eth(0x0800, ip4(other4, "255.255.255.255", 17, 0, udp(1067, 68))), dhcp},
		{"a DHCP server behind a tag", eth(0x8100, []byte{0, 5, 8, 0}, ip4(other4, own4, 17, 0, udp(67, 68))), dhcp},
		{"a DHCP server behind IPv4 options", eth(0x0800, options(ip4(other4, own4, 17, 0, udp(67, 68)))), dhcp},
		{"a DHCP server in the first fragment", eth(0x0800, ip4(other4, own4, 17, 0x2000, udp(67, 68))), dhcp},
		{"a first fragment without ports", eth(0x0800, ip4(other4, own4, 17, 0x2000, nil)), dhcp},
		{"a later fragment", eth(0x0800, ip4(other4, own4, 17, 1, udp(67, 68))), ""},
		{"TCP to port 68", eth(0x0800, ip4(other4, own4, 6, 0, udp(67, 68))), ""},
		{"UDP over IPv4 to port 546", eth(0x0800, ip4(other4, own4, 17, 0, udp(547, 546))), ""},
		{"a DHCPv6 client", eth(0x86dd, ip6("fe80::1", "ff02::1:2", 17, udp(546, 547))), ""},
		{"a DHCPv6 server", eth(0x86dd, ip6("fe80::1", linkLocal, 17, udp(547, 546))), dhcp},
		{"a DHCPv6 server behind options", eth(0x86dd, ip6("fe80::1", linkLocal, 60, headers(2, 17), udp(547, 546))),
			dhcp},
		{"UDP over IPv6 to port 68", eth(0x86dd, ip6("fe80::1", linkLocal, 17, udp(67, 68))), ""},
		{"a router solicitation", eth(0x86dd, ip6("fe80::1", "ff02::2", 58, icmp(133, 8))), ""},
		{"a router advertisement", eth(0x86dd, ip6("fe80::1", "ff02::1", 58, icmp(134, 16))), router},
		{"a router advertisement behind a tag", eth(0x8100, []byte{0, 5, 0x86, 0xdd},
			ip6("fe80::1", "ff02::1", 58, icmp(134, 16))), router},
		{"a router advertisement behind hop-by-hop options",
			eth(0x86dd, ip6("fe80::1", "ff02::1", 0, []byte{58, 0, 1, 4, 0, 0, 0, 0}, icmp(134, 16))), router},
		{"a router advertisement in fragments",
			eth(0x86dd, ip6("fe80::1", "ff02::1", 44, fragment(58, 1), icmp(134, 16))), router},
		{"a router advertisement behind nine headers",
			eth(0x86dd, ip6("fe80::1", "ff02::1", 60, headers(9, 58), icmp(134, 16))), router},
		{"a router advertisement in an LLC header", eth(64, []byte{0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd},
			ip6("fe80::1", "ff02::1", 58, icmp(134, 16))), router},
		{"a router advertisement behind three tags", eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 0x81, 0, 0, 0, 0x86, 0xdd},
			ip6("fe80::1", "ff02::1", 58, icmp(134, 16))), router},
		{"an advertisement of a neighbour", eth(0x86dd, ip6("fe80::1", "ff02::1", 58, advertise("fe80::1"))), ""},
		{"ARP of anybody", eth(0x0806, arpBody(2, other4, own4)), ""},
	}
}
