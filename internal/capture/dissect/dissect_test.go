package dissect

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestFramesAreSaidInOneLine(t *testing.T) {
	const from, to = "020000000001", "020000000002"
	ipv4 := func(protocol, rest string) string {
		return to + from + "0800" + "4500003c0001000040" + protocol + "00000a0000010a000002" + rest
	}
	ipv6 := func(next, rest string) string {
		return to + from + "86dd" + "600000000014" + next + "40" + "fe80000000000000000000000000000a" +
			"ff020000000000000000000000000001" + rest
	}
	between := "02:00:00:00:00:01 > 02:00:00:00:00:02, "
	for _, c := range []struct{ frame, want string }{
		{ipv4("06", "c00001bb000000010000000250100000"+"00000000"), between +
			"IPv4 10.0.0.1:49152 > 10.0.0.2:443: TCP [.], seq 1, ack 2, length 20"},
		{ipv4("06", "c00001bb000000010000000050c20000"+"00000000"), between +
			"IPv4 10.0.0.1:49152 > 10.0.0.2:443: TCP [SEW], seq 1, length 20"},
		{ipv4("11", "c000003500280000"), between + "IPv4 10.0.0.1:49152 > 10.0.0.2:53: UDP, length 32"},
		{ipv4("01", "0800000000070002"), between + "IPv4 10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 2"},
		{ipv4("01", "0301"), between + "IPv4 10.0.0.1 > 10.0.0.2: ICMP type 3, code 1"},
		{ipv4("2f", ""), between + "IPv4 10.0.0.1 > 10.0.0.2: protocol 47"},
		{to + from + "0800" + "4500003c000100b940060000" + "0a0000010a000002", between +
			"IPv4 10.0.0.1 > 10.0.0.2: fragment at 1480"},
		{to + from + "0800" + "45", between + "IPv4, cut off"},
		{ipv6("11", "0050005100140000"), between + "IPv6 [fe80::a]:80 > [ff02::1]:81: UDP, length 12"},
		{strings.Replace(ipv6("3a", "8700000000000000fe80000000000000000000000000000b"), "00143a", "00183a", 1),
			between + "IPv6 fe80::a > ff02::1: ICMPv6 neighbour solicitation, who has fe80::b"},
		{ipv6("00", "1100000000000000"+"0050005100140000"), between +
			"IPv6 [fe80::a]:80 > [ff02::1]:81: UDP, length 4"},
		{ipv6("00", "11ff000000000000"), between + "IPv6 fe80::a > ff02::1: protocol 17"},
		{ipv6("00", "11ff0000"), between + "IPv6 fe80::a > ff02::1: protocol 0"},
		{ipv6("33", "1100000000000000"+"0050005100140000"), between +
			"IPv6 [fe80::a]:80 > [ff02::1]:81: UDP, length 4"},
		{ipv6("2c", "1100000100000000"+"0050005100140000"), between +
			"IPv6 [fe80::a]:80 > [ff02::1]:81: UDP, length 4"},
		{ipv6("2c", "1100000900000000"+"0050005100140000"), between + "IPv6 fe80::a > ff02::1: fragment at 8"},
		{"ffffffffffff" + from + "0806" + "0001080006040001" + from + "0a000001" + "000000000000" + "0a000002",
			"02:00:00:00:00:01 > broadcast, ARP who has 10.0.0.2, tell 10.0.0.1"},
		{to + from + "0806" + "0001080006040002" + from + "0a000001" + to + "0a000002", between +
			"ARP 10.0.0.1 is at 02:00:00:00:00:01"},
		{to + from + "0806" + "0001", between + "ARP"},
		{to + from + "8100" + "600a" + "8100" + "0007" + "88b5", between + "vlan 10 p3, vlan 7, type 0x88b5"},
		{to + from + "88a8" + "000a" + "88cc", between + "ad-vlan 10, LLDP"},
		{to + from + "8809" + "01", between + "LACP"},
		{"0180c2000000" + from + "0026" + "424203", "02:00:00:00:00:01 > 01:80:c2:00:00:00, STP"},
	} {
		b, err := hex.DecodeString(c.frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := Line(b, 99); got != c.want+", 99 bytes" {
			t.Errorf("%s:\n%s, want\n%s", c.frame, got, c.want)
		}
	}
	if got := Line(nil, 5); !strings.Contains(got, "too short") {
		t.Error(got)
	}
}

// FuzzLine: whatever a guest sends, one line of it is printed.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "0200000000020200000000010800450000",
		"02000000000202000000000186dd600000000014004011ff",
		"0200000000020200000000018100000a0800450000140000000000060000"} {
		b, err := hex.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if l := Line(b, len(b)); l == "" || strings.ContainsAny(l, "\n\x1b") {
			t.Errorf("%x: %q", b, l)
		}
	})
}
