package guardcases

// HealthProbe is the reason for frames that look like a probe between hosts.
const HealthProbe = "guest-health-probe"

// HealthProbes are frames of a port, a trunk of the VLANs 0 and 5, whose switch has a health check (S109).
func HealthProbes() []Case {
	body := []byte("HdlH and what else a probe has in it, which the rule does not read")
	behind := func(tags ...byte) []byte { // VLAN tags after the frame's first type, and then the probe
		return eth(0x8100, tags, []byte{0x89, 0x22}, body)
	}
	deep := func(tags int) []byte {
		b := []byte{0, 5}
		for range tags - 1 {
			b = append(b, 0x88, 0xa8, 0, 9)
		}
		return behind(b...)
	}
	return []Case{
		{"a probe", eth(0x8922, body), HealthProbe},
		{"its type alone", eth(0x8922), HealthProbe},
		{"a probe in a VLAN", behind(0, 5), HealthProbe},
		{"a probe in a VLAN with a priority", behind(0xe0, 5), HealthProbe},
		{"a probe with a priority tag", behind(0x20, 0), HealthProbe},
		{"a probe behind two tags", behind(0, 5, 0x81, 0, 0, 10), HealthProbe},
		{"a probe behind a tag and one of 802.1ad", behind(0, 5, 0x88, 0xa8, 0, 10), HealthProbe},
		{"a probe behind a tag of 802.1ad", eth(0x88a8, []byte{0, 0, 0x89, 0x22}, body), HealthProbe},
		{"a probe behind three tags", deep(3), HealthProbe},
		{"a probe behind eight tags", deep(8), HealthProbe},
		{"a probe behind nine tags", deep(9), HealthProbe},
		{"three tags that end the frame", eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 0x81, 0, 0x89, 0}), ""},
		{"another type behind three tags",
			eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 0x81, 0, 0, 0, 0x89, 0x23}, body), ""},
		{"another type behind eight tags", eth(0x8100, deep(8)[14:44], []byte{0x88, 0xb7}, body), ""},
		{"nine tags", eth(0x8100, deep(9)[14:48], []byte{0x88, 0xb7}, body), HealthProbe},
		{"the next type", eth(0x8923, body), ""},
		{"the type as the length of a VLAN's number", eth(0x8100, []byte{0, 5, 0x88, 0xb7, 0x89, 0x22}, body), ""},
		{"the type in an LLC header", eth(8, []byte{0xaa, 0xaa, 3, 0, 0, 0, 0x89, 0x22}, body), ""},
		{"the type in the payload", eth(0x88b7, []byte{0x89, 0x22}, body), ""},
		{"IPv4", eth(0x0800, ip4(own4, other4, 17, 0, udp(1000, 53))), ""},
		{"IPv4 behind two tags",
			eth(0x8100, []byte{0, 5, 0x81, 0, 0, 0, 8, 0}, ip4(own4, other4, 17, 0, udp(1, 2))), ""},
		{"a DHCP server", eth(0x0800, ip4(other4, own4, 17, 0, udp(67, 68))), ""},
		{"a router advertisement", eth(0x86dd, ip6("fe80::1", "ff02::1", 58, icmp(134, 16))), ""},
		{"ARP of anybody", eth(0x0806, arpBody(2, other4, own4)), ""},
	}
}
