package announce

import (
	"bytes"
	"encoding/hex"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// byScapy makes the same frames with scapy.
const byScapy = `
import logging; logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import *
from scapy.contrib.igmpv3 import IGMPv3, IGMPv3mq
mac = "02:00:00:00:07:01"
def eth(dst, kind, vid, ad, inner):
    if vid == 0:
        f = bytes(Ether(dst=dst, src=mac, type=kind)) + inner
    else:
        tag = Dot1AD if ad else Dot1Q
        f = bytes(Ether(dst=dst, src=mac, type=0x88a8 if ad else 0x8100)/tag(vlan=vid, type=kind)) + inner
    print(f.ljust(64 if vid else 60, b"\0").hex())
for vid, ad in [(0, False), (100, False), (4094, True)]:
    eth("ff:ff:ff:ff:ff:ff", 0x8035, vid, ad, bytes(ARP(op=3, hwsrc=mac, hwdst=mac, psrc="0.0.0.0", pdst="0.0.0.0")))
    igmp = IGMPv3(type=0x11, mrcode=10)/IGMPv3mq(gaddr="0.0.0.0", qrv=2, qqic=125)
    ip = IP(src="0.0.0.0", dst="224.0.0.1", ttl=1, tos=0xc0, id=0, proto=2, options=[IPOption_Router_Alert()])
    eth("01:00:5e:00:00:01", 0x0800, vid, ad, bytes(ip/igmp))
    six = IPv6(src="fe80::ffff:ffff:ffff:ffff", dst="ff02::1", hlim=1)/IPv6ExtHdrHopByHop(options=[RouterAlert(), PadN(optdata=b"")])
    eth("33:33:00:00:00:01", 0x86dd, vid, ad, bytes(six/ICMPv6MLQuery2(mrd=1000, QRV=2, QQIC=125)))
`

func TestS49_S50_FramesAreThoseThatScapyMakes(t *testing.T) {
	mac := plan.MAC{2, 0, 0, 0, 7, 1}
	var want [][]byte
	for line := range bytes.Lines(testkit.RunScapy(t, byScapy, nil)) {
		b, err := hex.DecodeString(string(bytes.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, b)
	}
	var got [][]byte
	for _, tag := range []Tag{{}, {VID: 100}, {VID: 4094, AD: true}} {
		got = append(got, RARP(mac, tag), IGMPQuery(mac, tag), MLDQuery(mac, tag))
	}
	if len(got) != len(want) {
		t.Fatalf("scapy made %d frames, want %d", len(want), len(got))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("frame %d:\n%x, scapy makes\n%x", i, got[i], want[i])
		}
	}
}
