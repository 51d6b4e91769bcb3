package cdp

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/uplinks/lldp"
)

// leaf1 is a frame of CDP, without its Ethernet header, that scapy made: a device, its version, platform, port,
// capabilities, native VLAN and management address.
const leaf1 = "" +
	"aaaa0300000c200002b4f9960001001e6c656166312e6578616d706c652e6f726728464f4331323334290005000c494f5320" +
	"31352e3200060012636973636f2057532d4333373530000300184769676162697445746865726e6574312f302f3700040008" +
	"00000028000a0006001400160011000000010101cc0004c0000207"

func frame(t testing.TB) []byte {
	b, err := hex.DecodeString(leaf1)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestS171_WhatADeviceSaysOfItself(t *testing.T) {
	p, err := Decode(frame(t))
	if err != nil {
		t.Fatal(err)
	}
	pvid, _ := p.PVID()
	got := map[string]any{"by": p.By, "chassis": p.Chassis.String(), "port": p.Port.String(), "name": p.SystemName,
		"system": p.SystemDescription, "ttl": p.TTL, "vlan": pvid, "can": p.Capabilities.Enabled.Words(),
		"at": p.Management[0].Address.String()}
	want := map[string]any{"by": lldp.ByCDP, "chassis": "leaf1.example.org(FOC1234)", "port": "GigabitEthernet1/0/7",
		"name": "leaf1.example.org(FOC1234)", "system": "cisco WS-C3750, IOS 15.2", "ttl": uint16(180),
		"vlan": uint16(20), "can": []string{"bridge"}, "at": "192.0.2.7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is optional and odd, as Cisco's devices do send it, and the padding of a short frame hide nothing.
func TestS171_OddValuesAndPaddingHideNothing(t *testing.T) {
	whole := frame(t)
	noAddress := []byte{0, 0x02, 0, 8, 0, 0, 0, 0}
	gateway := []byte{0, 0x07, 0, 8, 192, 0, 2, 1}
	odd := slices.Concat(whole[:12], noAddress, gateway, whole[12:], make([]byte, 20))
	p, err := Decode(odd)
	if err != nil || p.Chassis.String() != "leaf1.example.org(FOC1234)" || p.Port.String() != "GigabitEthernet1/0/7" ||
		len(p.Management) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A frame that ends anywhere is an error or a neighbour, never the end of the agent.
func TestFramesThatEndAnywhere(t *testing.T) {
	whole := frame(t)
	for n := range whole {
		if p, err := Decode(whole[:n]); err == nil && (len(p.Chassis.Value) == 0 || len(p.Port.Value) == 0) {
			t.Errorf("%d bytes are a neighbour without a name: %+v", n, p)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(frame(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			return
		}
		if len(p.Chassis.Value) == 0 || len(p.Chassis.Value) > longestID || len(p.Port.Value) > longestID ||
			len(p.SystemDescription) > longestText || len(p.Management) > mostAddresses {
			t.Errorf("%+v", p)
		}
	})
}
