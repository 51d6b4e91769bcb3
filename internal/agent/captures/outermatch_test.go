package captures

import (
	"testing"

	"heddle/internal/api"
	"heddle/internal/capture/filter"
	"heddle/internal/test/testkit"
)

// A filter about frames inside matches no outer packet, which is said before anything is captured; one that may match
// is never refused.
func TestOuterFilter_ThatNoPacketMatchesIsKnown(t *testing.T) {
	testkit.Tool(t, "tcpdump")
	for expression, want := range map[string]bool{
		"host 192.0.2.2": true, "src 192.0.2.1 and dst 192.0.2.2": true, "ip": true, "ip6": true, "udp": true,
		"udp port 4789": true, "dst port 4789": true, "src port 4789": true, "port 80": true, "greater 1400": true,
		"not tcp": true, "ether host 02:00:00:00:00:01": true, "udp[12:4] = 0x138800": true, "len > 100": true,
		"ip[8] < 2": true, "ip[6:2] & 0x1fff = 0": true, "ip6 and udp src port 9": true, "ether[14] & 0xf = 5": true,
		"arp or host 192.0.2.2": true, "ip[0] + 1 = 0x46": true, "not port 4789": false, "ip[0] >> 4 = 4": true,
		"tcp": false, "tcp port 443": false, "arp": false, "icmp": false, "icmp6": false, "vlan 10": false,
		"udp dst port 80": false, "ip[6:2] & 0x1fff != 0": false, "ip[0] >> 4 = 5": false, "ip[0] & 0xf > 5": false,
		"ip6[6] = 6": false, "ether proto 0x88b5": false, "ip proto 47": false, "not udp": false,
		"tcp or arp or icmp": false, "ether broadcast and arp": false,
	} {
		t.Run(expression, func(t *testing.T) {
			program, err := filter.Compile(t.Context(), expression)
			if err != nil {
				t.Fatal(err)
			}
			var f []api.FilterInstruction
			for _, in := range program {
				f = append(f, api.FilterInstruction{Code: in.Code, JumpTrue: in.JumpTrue, JumpFalse: in.JumpFalse,
					K: in.K})
			}
			if got := mayMatch(f, 4789); got != want {
				t.Errorf("%v, want %v: %v", got, want, f)
			}
		})
	}
	if !mayMatch(nil, 4789) {
		t.Error("no filter matches nothing")
	}
	if mayMatch([]api.FilterInstruction{{Code: 6}}, 4789) || !mayMatch([]api.FilterInstruction{{Code: 6, K: 1}}, 4789) {
		t.Error("a return of a constant")
	}
}

// However many ways there are through a filter, it is looked at in bounded time.
func TestOuterFilter_WithVeryManyWaysMayMatch(t *testing.T) {
	var f []api.FilterInstruction
	for range 200 { // each comparison of a byte that nobody knows has two ways, which meet again
		f = append(f, api.FilterInstruction{Code: 0x30, K: 50}, api.FilterInstruction{Code: 0x15, K: 7, JumpTrue: 1},
			api.FilterInstruction{Code: 0x04, K: 1})
	}
	if !mayMatch(append(f, api.FilterInstruction{Code: 6}), 4789) {
		t.Error("it is said to match nothing though not all ways were looked at")
	}
}
