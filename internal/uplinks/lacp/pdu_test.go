package lacp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// samples are PDUs whose every field differs from the others'.
func samples(n int) []PDU {
	r := rand.New(rand.NewPCG(1, 2))
	info := func() Info {
		i := Info{System: System{Priority: uint16(r.Uint32())}, Key: uint16(r.Uint32()),
			Port: Port{uint16(r.Uint32()), uint16(r.Uint32())}, State: State(r.Uint32())}
		for k := range i.System.MAC {
			i.System.MAC[k] = byte(r.Uint32())
		}
		return i
	}
	out := []PDU{{}}
	for range n {
		out = append(out, PDU{Actor: info(), Partner: info(), MaxDelay: uint16(r.Uint32())})
	}
	return out
}

func ethernet(payload []byte) []byte {
	f := append(append([]byte{}, Destination[:]...), 2, 0, 0, 0, 0, 1)
	return append(binary.BigEndian.AppendUint16(f, EtherType), payload...)
}

func TestPDU_RoundTrip(t *testing.T) {
	for _, p := range samples(200) {
		b := p.Encode()
		got, m, err := Decode(append(b, 1, 2, 3)) // padding, or a checksum, behind it
		if err != nil || m != nil || got == nil || *got != p || len(b) != Size {
			t.Fatalf("%+v came back as %+v, %v", p, got, err)
		}
	}
}

func TestDecode_FaultsNameTheOffset(t *testing.T) {
	good, marker := samples(1)[1].Encode(), Marker{}.Encode()
	with := func(b []byte, at int, v byte) []byte {
		c := bytes.Clone(b)
		c[at] = v
		return c
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, "offset 0"},
		{good[:1], "LACPDU: offset 1: it ends here"},
		{good[:Size-1], "LACPDU: offset 109: it ends here"},
		{with(good, 2, 9), "LACPDU: offset 2: TLV type 9, want 1"},
		{with(good, 3, 19), "LACPDU: offset 3: TLV length 19, want 20"},
		{with(good, 22, 1), "LACPDU: offset 22: TLV type 1, want 2"},
		{with(good, 42, 0), "LACPDU: offset 42: TLV type 0, want 3"},
		{with(good, 43, 0), "LACPDU: offset 43: TLV length 0, want 16"},
		{marker[:40], "marker PDU: offset 40"},
		{with(marker, 2, 3), "marker PDU: offset 2: TLV type 3"},
		{with(marker, 3, 3), "marker PDU: offset 3: TLV length 3"},
	} {
		p, m, err := Decode(c.in)
		if p != nil || m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q: %v, %v, %v", c.want, p, m, err)
		}
	}
	for _, other := range []byte{0, 3, 10, 255} { // OAM, OSSP and unused subtypes
		if p, m, err := Decode(with(good, 0, other)); p != nil || m != nil || err != nil {
			t.Errorf("subtype %d: %v, %v, %v", other, p, m, err)
		}
	}
	// A later version, its reserved bytes and its terminator are no error.
	if p, _, err := Decode(with(with(with(good, 1, 2), 20, 7), 58, 4)); p == nil || err != nil {
		t.Errorf("version 2: %v", err)
	}
}

// fieldsOf returns a PDU's fields under scapy's names, and with the prefix "lacp." under tshark's, in the order
// requested below.
func fieldsOf(p PDU) map[string]any {
	m := map[string]any{"collector_max_delay": p.MaxDelay}
	for name, i := range map[string]Info{"actor": p.Actor, "partner": p.Partner} {
		m[name+"_system_priority"], m[name+"_system"], m[name+"_key"] = i.System.Priority, i.System.MAC.String(), i.Key
		m[name+"_port_priority"], m[name+"_port_number"], m[name+"_state"] = i.Port.Priority, i.Port.Number, uint8(
			i.State)
	}
	return m
}

const scapyBuild = `
import json, sys
from scapy.all import Ether
from scapy.contrib.lacp import SlowProtocol, LACP, MarkerProtocol
for line in sys.stdin:
    f = json.loads(line)
    body = MarkerProtocol(**f) if "requester_port" in f else LACP(**f)
    print(bytes(Ether(src="02:00:00:00:00:01", dst="01:80:c2:00:00:02", type=0x8809) / SlowProtocol(subtype=2 if "requester_port" in f else 1) / body).hex())
`

// What scapy encodes equals our encoding byte for byte, and decodes to the same PDU.
func TestPDU_AsScapyMakesThem(t *testing.T) {
	markers := []Marker{{Port: 1, System: plan.MAC{2, 3, 4, 5, 6, 7}, Transaction: 8},
		{Response: true, Port: 65535, Transaction: 1 << 31}}
	var in bytes.Buffer
	var want [][]byte
	for _, p := range samples(50) {
		line, err := json.Marshal(fieldsOf(p))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&in, "%s\n", line)
		want = append(want, ethernet(p.Encode()))
	}
	for _, m := range markers {
		kind := 1
		if m.Response {
			kind = 2
		}
		fmt.Fprintf(&in,
			`{"marker_type": %d, "requester_port": %d, "requester_system": %q, "requester_transaction_id": %d}`+"\n",
			kind, m.Port, m.System.String(), m.Transaction)
		want = append(want, ethernet(m.Encode()))
	}
	lines := strings.Fields(string(testkit.RunScapy(t, scapyBuild, in.Bytes())))
	if len(lines) != len(want) {
		t.Fatalf("scapy made %d frames of %d", len(lines), len(want))
	}
	for i, line := range lines {
		if got := fmt.Sprintf("%x", want[i]); got != line {
			t.Errorf("frame %d\nscapy %s\nours  %s", i, line, got)
		}
		var raw []byte
		if _, err := fmt.Sscanf(line, "%x", &raw); err != nil {
			t.Fatal(err)
		}
		p, m, err := Decode(raw[14:])
		switch {
		case err != nil:
			t.Errorf("frame %d of scapy's: %v", i, err)
		case i < len(want)-len(markers) && (p == nil || *p != samples(50)[i]):
			t.Errorf("frame %d of scapy's reads as %+v", i, p)
		case i >= len(want)-len(markers) && (m == nil || *m != markers[i-len(want)+len(markers)]):
			t.Errorf("frame %d of scapy's reads as %+v", i, m)
		}
	}
}

const scapyRead = `
import json, sys
from scapy.all import Ether
from scapy.contrib.lacp import LACP
for line in sys.stdin:
    p = Ether(bytes.fromhex(line.strip()))[LACP]
    print(json.dumps({n: getattr(p, n) for n in sys.argv[1:]}))
`

// scapy and tshark decode our encoding to the same fields.
func TestPDU_AsScapyAndTsharkReadThem(t *testing.T) {
	var in bytes.Buffer
	var frames [][]byte
	for _, p := range samples(50) {
		frames = append(frames, ethernet(p.Encode()))
		fmt.Fprintf(&in, "%x\n", frames[len(frames)-1])
	}
	var names []string
	for n := range fieldsOf(PDU{}) {
		names = append(names, n)
	}
	d := json.NewDecoder(bytes.NewReader(testkit.RunScapy(t, scapyRead, in.Bytes(), names...)))
	for i, p := range samples(50) {
		var got map[string]any
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprint(got), fmt.Sprint(asJSON(t, fieldsOf(p))); a != b {
			t.Errorf("frame %d\nscapy %s\nours  %s", i, a, b)
		}
	}
	out := testkit.Dissect(t, frames, "slow.subtype", "lacp.actor.sys_priority", "lacp.actor.sysid", "lacp.actor.key",
		"lacp.actor.port_priority", "lacp.actor.port",
		"lacp.actor.state", "lacp.partner.sys_priority", "lacp.partner.sysid", "lacp.partner.key",
		"lacp.partner.port_priority", "lacp.partner.port", "lacp.partner.state",
		"lacp.collector.max_delay", "_ws.malformed")
	side := func(i Info) string {
		return fmt.Sprintf("%d\t%s\t%d\t%d\t%d\t0x%02x", i.System.Priority, i.System.MAC, i.Key, i.Port.Priority,
			i.Port.Number, uint8(i.State))
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		p := samples(50)[i]
		if want := fmt.Sprintf("0x01\t%s\t%s\t%d\t", side(p.Actor), side(p.Partner), p.MaxDelay); line != want {
			t.Errorf("frame %d\ntshark %q\nours   %q", i, line, want)
		}
	}
}

// asJSON returns the value after a round trip through JSON.
func asJSON(t *testing.T, v any) (out any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestState_Words(t *testing.T) {
	for s, want := range map[State]string{
		0:       "passive slow individual",
		allGood: "active fast aggregatable in-sync collecting distributing",
		Activity | Aggregation | Defaulted | Expired: "active slow aggregatable defaulted expired",
	} {
		if s.String() != want {
			t.Errorf("%08b: %q", s, s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range samples(3) {
		f.Add(p.Encode())
	}
	f.Add(Marker{Port: 1, Transaction: 2}.Encode())
	f.Add(Marker{Response: true}.Encode())
	f.Add([]byte{1, 1, 1, 20})
	f.Add([]byte{10})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, m, err := Decode(b)
		switch {
		case err != nil && (p != nil || m != nil || !strings.Contains(err.Error(), "offset")):
			t.Fatalf("%v, %v with %v", p, m, err)
		case p != nil:
			again, _, err := Decode(p.Encode())
			if err != nil || *again != *p {
				t.Fatalf("%+v came back as %+v, %v", p, again, err)
			}
		case m != nil:
			_, again, err := Decode(m.Encode())
			if err != nil || *again != *m {
				t.Fatalf("%+v came back as %+v, %v", m, again, err)
			}
		}
	})
}
