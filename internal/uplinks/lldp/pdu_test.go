package lldp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/test/testkit"
)

// sample has every field.
func sample() PDU {
	return PDU{
		Chassis: ChassisID{Subtype: ChassisMAC, Value: []byte{2, 0, 0, 0, 0, 0x11}},
		Port:    PortID{Subtype: PortIfName, Value: []byte("Ethernet1/7")}, TTL: 120,
		PortDescription: "to rack 4", SystemName: "leaf-1.example.net", SystemDescription: "a switch, version 4.2",
		Capabilities: &Capabilities{Has: Bridge | Router, Enabled: Bridge},
		Management: []Management{
			{Address: Address{Family: 1, Value: []byte{192, 0, 2, 1}}, Interface: 2, Number: 1007},
			{Address: Address{Family: 6, Value: []byte{2, 0, 0, 0, 0, 0x12}}, Interface: 3, Number: 9,
				OID: []byte{6, 3, 0x2b, 6, 1}},
		},
		Org: []Org{{OUI: oui8021, Subtype: subtypePVID, Value: []byte{0, 42}}, {OUI: oui8023, Subtype: subtypeMaxFrame,
			Value: []byte{0x23, 0xf0}},
			{OUI: [3]byte{1, 2, 3}, Subtype: 4, Value: []byte("own")}},
	}
}

// bare returns the smallest valid PDU.
func bare() PDU {
	return PDU{Chassis: ChassisID{Subtype: 7, Value: []byte("x")}, Port: PortID{Subtype: 7, Value: []byte("y")}, TTL: 1}
}

func encode(t testing.TB, p PDU) []byte {
	t.Helper()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPDU_RoundTrip(t *testing.T) {
	for _, p := range []PDU{sample(), bare()} {
		for _, padding := range []int{0, 1, 46} {
			got, err := Decode(append(encode(t, p), make([]byte, padding)...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&p, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	p := sample()
	if v, ok := p.PVID(); v != 42 || !ok {
		t.Errorf("PVID %d, %v", v, ok)
	}
	if v, ok := p.MaxFrame(); v != 9200 || !ok {
		t.Errorf("largest frame %d, %v", v, ok)
	}
	b := bare().WithMaxFrame(1518)
	if v, ok := b.MaxFrame(); v != 1518 || !ok {
		t.Errorf("largest frame %d, %v", v, ok)
	}
}

func TestVLANs_AreReadInOrderAndOnce(t *testing.T) {
	p := bare()
	vlan := func(value ...byte) {
		p.Org = append(p.Org, Org{OUI: oui8021, Subtype: subtypeVLANName, Value: value})
	}
	vlan(0x0f, 0xfe, 3, 'e', 'n', 'd')
	vlan(0, 10, 3, 'w', 'e', 'b')
	vlan(0, 10, 2, 'n', 'o')
	vlan(0, 7, 0)
	vlan(0, 0, 1, 'x')       // no VLAN
	vlan(0x0f, 0xff, 1, 'x') // kept by the standard
	vlan(0, 11, 4, 'c', 'u', 't')
	vlan(0, 12, 1, 'x', 'y')
	vlan(append([]byte{0, 13, 33}, make([]byte, 33)...)...)
	vlan(0, 14)
	p.Org = append(p.Org, Org{OUI: oui8023, Subtype: subtypeVLANName, Value: []byte{0, 15, 1, 'x'}})
	want := []VLAN{{7, ""}, {10, "web"}, {4094, "end"}}
	if diff := cmp.Diff(want, p.VLANs()); diff != "" {
		t.Error(diff)
	}
	if b := bare(); len(b.VLANs()) > 0 {
		t.Errorf("%+v of none", b.VLANs())
	}
}

// A switch that scapy plays, with two VLAN name TLVs as the standard has them.
func TestVLANs_AsScapyMakesThem(t *testing.T) {
	out := testkit.RunScapy(t, `
from scapy.all import Ether
from scapy.contrib.lldp import *
named = lambda vid, name: LLDPDUGenericOrganisationSpecific(org_code=0x0080c2, subtype=3, data=vid.to_bytes(2, "big") + bytes([len(name)]) + name)
p = Ether(src="02:00:00:00:00:01", dst="01:80:c2:00:00:0e", type=0x88cc) / LLDPDUChassisID(subtype=7, id="x") \
  / LLDPDUPortID(subtype=7, id="y") / LLDPDUTimeToLive(ttl=1) / named(100, b"storage") / named(20, b"db") / LLDPDUEndOfLLDPDU()
print(bytes(p).hex())
`, nil)
	var raw []byte
	if _, err := fmt.Sscanf(string(out), "%x", &raw); err != nil {
		t.Fatal(err)
	}
	p, err := Decode(raw[14:])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]VLAN{{20, "db"}, {100, "storage"}}, p.VLANs()); diff != "" {
		t.Error(diff)
	}
	if got := string(testkit.Dissect(t, [][]byte{raw}, "lldp.ieee.802_1.vlan.id", "lldp.ieee.802_1.vlan.name",
		"_ws.malformed")); got != "100,20\tstorage,db\t\n" {
		t.Errorf("tshark reads %q", got)
	}
}

func TestPDU_Goodbye(t *testing.T) {
	p := sample()
	p.TTL = 0
	b := encode(t, p)
	got, err := Decode(b)
	if err != nil || got.TTL != 0 || got.SystemName != "" || len(b) != 2+7+2+12+2+2+2 {
		t.Fatalf("%d bytes, %+v, %v", len(b), got, err)
	}
}

func TestDecode_FaultsNameTheOffset(t *testing.T) {
	good := encode(t, bare()) // chassis at 0, port at 4, TTL at 8, end at 12
	edit := func(at int, v ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], v)
		return c
	}
	long := encode(t, bare())
	long = append(long[:12], 0x0e, 200, 1) // a system description of 200 bytes with one
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, "offset 0: it ends here"},
		{"one byte", good[:1], "offset 0: it ends within a TLV's header"},
		{"cut in the port", good[:7], "offset 4: TLV type 2 has 2 bytes, 1 are there"},
		{"no TTL", good[:8], "offset 8: it ends here"},
		{"wrong order", edit(0, 4), "offset 0: TLV type 2, want 1"},
		{"end too early", edit(4, 0, 0), "offset 4: TLV type 0, want 2"},
		{"id without value", append([]byte{2, 1, 7}, good[4:]...), "offset 0: id of 1 bytes"},
		{"short TTL", append(append([]byte{}, good[:8]...), 6, 1, 0, 0, 0), "offset 8: time to live of 1 bytes"},
		{"chassis twice", append(append([]byte{}, good[:12]...), good...), "offset 12: TLV type 1 a second time"},
		{"longer than the frame", long, "offset 12: TLV type 7 has 200 bytes, 1 are there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Decode(c.in)
			if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, %v, want %q", c.name, p, err, c.want)
			}
		})
	}
}

// A malformed optional TLV does not hide the others.
func TestDecode_UnreadableOptionalTLVsAreCounted(t *testing.T) {
	e := encoder{b: encode(t, bare())[:12]}
	e.tlv(tlvSystemName, []byte("one"))
	e.tlv(tlvSystemName, []byte("two"))
	e.tlv(tlvSystemDescription, make([]byte, 300))
	e.tlv(tlvCapabilities, []byte{1, 2, 3})
	e.tlv(tlvManagement, nil)
	e.tlv(tlvManagement, []byte{200, 1, 1})
	e.tlv(tlvManagement, []byte{2, 1, 1, 2, 0, 0, 0, 1, 5})
	e.tlv(tlvOrg, []byte{1, 2, 3})
	e.tlv(9, []byte("reserved"))
	e.tlv(tlvPortDescription, []byte("last"))
	p, err := Decode(e.b)
	if err != nil {
		t.Fatal(err)
	}
	if p.SystemName != "one" || p.PortDescription != "last" || p.Unread != 8 || len(p.Management)+len(p.Org) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestEncode_WhatDoesNotFit(t *testing.T) {
	long := bare()
	long.SystemName = strings.Repeat("ä", 200)
	got, err := Decode(encode(t, long))
	if err != nil || got.SystemName != strings.Repeat("ä", 127) {
		t.Errorf("a long name: %q, %v", got.SystemName, err)
	}
	for name, edit := range map[string]func(*PDU){
		"no chassis":   func(p *PDU) { p.Chassis.Value = nil },
		"long port":    func(p *PDU) { p.Port.Value = make([]byte, 256) },
		"long address": func(p *PDU) { p.Management = []Management{{Address: Address{1, make([]byte, 32)}}} },
		"long OID": func(p *PDU) {
			p.Management = []Management{{Address: Address{1, make([]byte, 4)}, OID: make([]byte, 129)}}
		},
		"long value": func(p *PDU) { p.Org = []Org{{Value: make([]byte, 508)}} },
		"more than a frame": func(p *PDU) {
			p.Org = []Org{{Value: make([]byte, 500)}, {Value: make([]byte, 500)}, {Value: make([]byte, 500)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := bare()
			edit(&p)
			if b, err := p.Encode(); b != nil || err == nil {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
		})
	}
}

func ethernet(payload []byte) []byte {
	f := append(append([]byte{}, Groups[0][:]...), 2, 0, 0, 0, 0, 1)
	return append(binary.BigEndian.AppendUint16(f, EtherType), payload...)
}

const scapyBuild = `
from scapy.all import Ether
from scapy.contrib.lldp import *
e = Ether(src="02:00:00:00:00:01", dst="01:80:c2:00:00:0e", type=0x88cc)
full = e / LLDPDUChassisID(subtype=4, id="02:00:00:00:00:11") / LLDPDUPortID(subtype=5, id="Ethernet1/7") / LLDPDUTimeToLive(ttl=120) \
  / LLDPDUPortDescription(description="to rack 4") / LLDPDUSystemName(system_name="leaf-1.example.net") / LLDPDUSystemDescription(description="a switch, version 4.2") \
  / LLDPDUSystemCapabilities(mac_bridge_available=1, router_available=1, mac_bridge_enabled=1) \
  / LLDPDUManagementAddress(management_address_subtype=1, management_address=bytes([192,0,2,1]), interface_numbering_subtype=2, interface_number=1007, object_id="") \
  / LLDPDUManagementAddress(management_address_subtype=6, management_address=bytes([2,0,0,0,0,0x12]), interface_numbering_subtype=3, interface_number=9, object_id=bytes([6,3,0x2b,6,1])) \
  / LLDPDUGenericOrganisationSpecific(org_code=0x0080c2, subtype=1, data=bytes([0,42])) \
  / LLDPDUGenericOrganisationSpecific(org_code=0x00120f, subtype=4, data=bytes([0x23,0xf0])) \
  / LLDPDUGenericOrganisationSpecific(org_code=0x010203, subtype=4, data=b"own") / LLDPDUEndOfLLDPDU()
least = e / LLDPDUChassisID(subtype=7, id="x") / LLDPDUPortID(subtype=7, id="y") / LLDPDUTimeToLive(ttl=1) / LLDPDUEndOfLLDPDU()
print(bytes(full).hex()); print(bytes(least).hex())
`

// What scapy encodes equals our encoding byte for byte, and decodes to the same PDU.
func TestPDU_AsScapyMakesThem(t *testing.T) {
	lines := strings.Fields(string(testkit.RunScapy(t, scapyBuild, nil)))
	want := []PDU{sample(), bare()}
	if len(lines) != len(want) {
		t.Fatalf("scapy made %d frames", len(lines))
	}
	for i, line := range lines {
		if got := fmt.Sprintf("%x", ethernet(encode(t, want[i]))); strings.TrimRight(got, "0") != strings.TrimRight(
			line, "0") {
			// scapy pads
			t.Errorf("frame %d\nscapy %s\nours  %s", i, line, got)
		}
		var raw []byte
		if _, err := fmt.Sscanf(line, "%x", &raw); err != nil {
			t.Fatal(err)
		}
		got, err := Decode(raw[14:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want[i], got); diff != "" {
			t.Error(diff)
		}
	}
}

const scapyRead = `
import sys
from scapy.all import Ether
from scapy.contrib.lldp import *
p = Ether(bytes.fromhex(sys.stdin.readline().strip()))
c, m = p[LLDPDUSystemCapabilities], p[LLDPDUManagementAddress]
print(p[LLDPDUChassisID].id, p[LLDPDUPortID].id.decode(), p[LLDPDUTimeToLive].ttl, p[LLDPDUPortDescription].description.decode(), p[LLDPDUSystemName].system_name.decode(),
  p[LLDPDUSystemDescription].description.decode(), c.mac_bridge_available, c.router_available, c.station_only_available, c.mac_bridge_enabled, c.router_enabled,
  m.management_address.hex(), m.interface_number, [o.subtype for o in p.iterpayloads() if isinstance(o, LLDPDUGenericOrganisationSpecific)], sep="|")
`

// scapy and tshark decode our encoding to the same fields.
func TestPDU_AsScapyAndTsharkReadThem(t *testing.T) {
	frame := ethernet(encode(t, sample()))
	out := testkit.RunScapy(t, scapyRead, fmt.Appendf(nil, "%x\n", frame))
	want := "02:00:00:00:00:11|Ethernet1/7|120|to rack 4|leaf-1.example.net|a switch, version " +
		"4.2|1|1|0|1|0|c0000201|1007|[1, 4, 4]\n"
	if string(out) != want {
		t.Errorf("scapy reads\n%swant\n%s", out, want)
	}
	least := bare()
	least.TTL = 0
	out = testkit.Dissect(t, [][]byte{frame, ethernet(encode(t, least))}, "lldp.chassis.id.mac", "lldp.port.id",
		"lldp.time_to_live", "lldp.port.desc", "lldp.tlv.system.name",
		"lldp.tlv.system.desc", "lldp.tlv.system_cap", "lldp.tlv.enable_system_cap", "lldp.mgn.addr.ip4",
		"lldp.ieee.802_1.port_vlan.id", "lldp.ieee.802_3.max_frame_size", "_ws.malformed")
	want = "02:00:00:00:00:11\tEthernet1/7\t120\tto rack 4\tleaf-1.example.net\ta switch, version " +
		"4.2\t0x0014\t0x0004\t192.0.2.1\t42\t9200\t\n" +
		"\ty\t0" + strings.Repeat("\t", 9) + "\n"
	if string(out) != want {
		t.Errorf("tshark reads\n%q\nwant\n%q", out, want)
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ChassisID{ChassisMAC, []byte{2, 0, 0, 0, 0, 1}}.String(), "02:00:00:00:00:01"},
		{ChassisID{ChassisMAC, []byte{2}}.String(), "02"},
		{ChassisID{5, []byte{1, 192, 0, 2, 1}}.String(), "192.0.2.1"},
		{ChassisID{7, []byte("a\x1b[31mb\xff\n")}.String(), "a\ufffd[31mb\ufffd\ufffd"},
		{PortID{PortMAC, []byte{2, 0, 0, 0, 0, 1}}.String(), "02:00:00:00:00:01"},
		{PortID{4, append([]byte{2}, make([]byte, 16)...)}.String(), "::"},
		{PortID{PortIfName, []byte("eth0")}.String(), "eth0"},
		{Address{6, []byte{2, 0, 0, 0, 0, 1}}.String(), "02:00:00:00:00:01"},
		{Address{99, []byte{1, 2}}.String(), "0102 (address family 99)"},
		{strings.Join((Bridge | Router | Station).Words(), " "), "bridge router station"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range []PDU{sample(), bare()} {
		f.Add(encode(f, p))
	}
	bye := sample()
	bye.TTL = 0
	f.Add(encode(f, bye))
	f.Add([]byte{2, 2, 7, 'x', 4, 2, 7, 'y', 6, 2, 0, 1, 0x10, 9, 2, 1, 1, 2, 0, 0, 0, 1, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			if p != nil || !strings.Contains(err.Error(), "offset") {
				t.Fatalf("%v with %v", p, err)
			}
			return
		}
		_ = p.Chassis.String() + p.Port.String() + Clean(p.SystemName)
		p.Unread = 0
		again, err := p.Encode()
		if err != nil && len(b) <= maxPDU {
			t.Fatalf("%+v: %v", p, err)
		}
		if err != nil {
			return
		}
		q, err := Decode(again)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatal(diff)
		}
	})
}
