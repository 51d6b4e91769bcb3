package export

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"heddle/internal/flow/ipfix"
)

// RFC 5471 lists what to test of an exporter. Its tests of the collecting process (§3.5.2 to §3.5.5, §3.6.4 to §3.6.8)
// do not concern this package, §3.2.4, §3.3.3 and §3.4.6 are about what is never sent, and §3.7 is about transports
// that are not offered.

// §3.1.1: templates and records arrive, from and to the configured addresses and ports, over IPv4 and IPv6.
func TestRFC5471_3_1_1_Connectivity(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		c := collect(t, netip.AddrPortFrom(netip.MustParseAddr(at), 0).String())
		r := newRig(t, Config{Domain: 4294967295,
			Collectors: []Collector{{Address: at, Port: c.port(), Shape: Standard}}})
		r.send(record(0))
		c.await(1)
		if len(c.messages) < 2 || c.messages[0].from.Addr().String() != at || c.results[0].Templates == 0 ||
			c.results[0].Header.Domain != 4294967295 {
			t.Errorf("%s: results %+v", at, c.results)
		}
		if st := r.x.Status()[0]; st.Remote != c.conn.LocalAddr().String() || st.Local != c.messages[0].from.String() {
			t.Errorf("%s: status %+v", at, st)
		}
	}
}

// §3.2.1: templates of fixed length and their records are decoded as they were meant.
func TestRFC5471_3_2_1_FixedLengthTemplates(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	all := kinds()
	r.send(all...)
	for i, f := range c.await(len(all)) {
		if number(t, f, "octetDeltaCount") != all[i].Delta.Bytes ||
			number(t, f, "flowEndMilliseconds") != uint64(all[i].Delta.Last) {
			t.Errorf("record %d: %v", i, f)
		}
	}
}

// §3.2.2: fields of variable length, short and longer than 254 bytes (RFC 7011 §7).
func TestRFC5471_3_2_2_VariableLength(t *testing.T) {
	for _, n := range []int{1, 254, 255, 700} {
		c := collect(t, "127.0.0.1:0")
		conf := to(c, Standard)
		conf.DomainName = string(bytes.Repeat([]byte("n"), n))
		r := newRig(t, conf)
		r.pass(0)
		c.awaitMessages(2)
		if o := c.with("observationDomainName"); len(o) != 1 || len(o[0]["observationDomainName"].Bytes) != n {
			t.Errorf("a name of %d bytes: %v", n, o)
		}
	}
}

// §3.2.3: sets end at multiples of four bytes, with fewer zeros than a record has (RFC 7011 §3.3.1), unless records
// fill the message.
func TestRFC5471_3_2_3_SetPadding(t *testing.T) {
	for _, shape := range []Shape{Standard, VDS} {
		c := collect(t, "127.0.0.1:0")
		r := newRig(t, to(c, shape))
		r.send(kinds()...)
		c.await(len(kinds()) / 3)
		for i, m := range c.messages {
			for at := 16; at < len(m.bytes); {
				length := int(binary.BigEndian.Uint16(m.bytes[at+2:]))
				if last := at+length == len(m.bytes); length < 4 || at+length > len(m.bytes) || length%4 != 0 && !last {
					t.Fatalf("%s: message %d, byte %d: a set of %d bytes", shape, i, at, length)
				}
				at += length
			}
		}
	}
}

// §3.2.5: over UDP templates are never withdrawn (RFC 7011 §8.1), and their ids never used for another.
func TestRFC5471_3_2_5_NoWithdrawalOverUDP(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	for range 5 {
		r.pass(time.Minute)
	}
	r.x.Close(r.now)
	c.awaitMessages(10)
	for i, res := range c.results {
		if res.Withdrawn > 0 || res.Redefined > 0 {
			t.Errorf("message %d: %+v", i, res)
		}
	}
}

// §3.3.1 and §3.3.2: elements of an enterprise, and reduced lengths.
func TestRFC5471_3_3_EnterpriseElementsAndReducedSize(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, VDS))
	r.send(record(0))
	f := c.await(1)[0]
	if v := f["ingressInterfaceAttr"]; v.Field.PEN != ipfix.VMware || len(v.Bytes) != 2 {
		t.Errorf("ingressInterfaceAttr is %+v", v)
	}
	if v := f["tcpControlBits"]; len(v.Bytes) != 1 || number(t, f, "tcpControlBits") != 0x12 {
		t.Errorf("tcpControlBits is %+v", v)
	}
}

// §3.5.1: a large number of records of one template arrives completely.
func TestRFC5471_3_5_1_ManyRecordsOfOneTemplate(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	r.sendTo(c, many(10_000))
	seen := map[string]bool{}
	for _, f := range c.await(10_000) {
		seen[text(f, "sourceIPv4Address")+text(f, "sourceTransportPort")] = true
	}
	if len(seen) != 10_000 {
		t.Errorf("%d of 10000 flows", len(seen))
	}
	var lost int64
	for _, res := range c.results {
		lost += res.Lost
	}
	if lost != 0 {
		t.Errorf("the sequence has gaps of %d records", lost)
	}
}

// §3.6.2: an exporter that is killed and starts again can be decoded at once, in a session of its own.
func TestRFC5471_3_6_2_ExporterThatRestarts(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	newRig(t, to(c, Standard)).send(many(20)...) // never closed: it was killed
	c.await(20)
	newRig(t, to(c, Standard)).send(many(30)...)
	if n := len(c.await(50)); n != 50 {
		t.Errorf("%d records of 50", n)
	}
	ports := map[string]uint32{}
	for _, m := range c.messages {
		h, err := ipfix.ParseHeader(m.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := ports[fmt.Sprint(m.from)]; !known && h.Sequence != 0 {
			t.Errorf("the session from %v begins with sequence %d", m.from, h.Sequence)
		}
		ports[fmt.Sprint(m.from)] = h.Sequence
	}
	if len(ports) != 2 {
		t.Errorf("sessions %v", ports)
	}
}
