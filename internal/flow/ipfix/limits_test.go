package ipfix

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
)

// template is a set with one template of n fields of one byte.
func template(t testing.TB, id uint16, n int) []byte {
	t.Helper()
	tpl, err := NewTemplate(id, manyFields(n)...)
	if err != nil {
		t.Fatal(err)
	}
	b := builder(t, 123, 0, maxMessage)
	if err := b.Template(tpl); err != nil {
		t.Fatal(err)
	}
	return b.Message(noon)
}

// exporter is the n-th of many exporters.
func exporter(n int) Session {
	s := udp
	s.Exporter = netip.AddrPortFrom(s.Exporter.Addr(), uint16(n))
	return s
}

func decode(t *testing.T, d *Decoder, s Session, message []byte) Result {
	t.Helper()
	r, err := d.Decode(s, noon, message, func(*Record) error { return nil })
	check(t, err)
	return r
}

func TestFloodOfTemplatesIsRefused(t *testing.T) {
	d := NewDecoder(Limits{Templates: 10})
	refused := 0
	for id := range uint16(1000) {
		refused += decode(t, d, udp, template(t, 256+id, 3)).Refused
	}
	if refused != 990 || d.cost != 10*19 {
		t.Errorf("%d refused, cost %d", refused, d.cost)
	}
	if r := decode(t, d, udp, message(t, 0, `0100 0008 01010100`)); r.Records != 1 {
		t.Errorf("the first template is still there: %+v", r)
	}
}

func TestLargeTemplatesAreRefused(t *testing.T) {
	d := NewDecoder(Limits{TemplateFields: 20})
	for n, want := range map[int]int{20: 0, 21: 1, 16000: 1} {
		if r := decode(t, d, udp, template(t, uint16(300+n), n)); r.Refused != want || r.Templates != 1 {
			t.Errorf("template of %d fields: %+v", n, r)
		}
	}
	if d.cost != 36 {
		t.Errorf("cost %d, want that of one template of 20 fields", d.cost)
	}
}

func TestARefusedTemplateReplacesTheOldOne(t *testing.T) {
	d := NewDecoder(Limits{TemplateFields: 5})
	decode(t, d, udp, template(t, 256, 4))
	if r := decode(t, d, udp, template(t, 256, 6)); r.Redefined != 1 || r.Refused != 1 {
		t.Errorf("%+v", r)
	}
	if r := decode(t, d, udp, message(t, 0, `0100 0008 01010101`)); r.Unknown != 1 {
		t.Errorf("records are read by a layout that is no longer theirs: %+v", r)
	}
}

func TestFloodOfDomainsForgetsTheSilentOnes(t *testing.T) {
	d := NewDecoder(Limits{Domains: 8})
	for n := range 1000 {
		decode(t, d, exporter(1), message(t, 0, rfcTemplateSet)) // heard again and again
		decode(t, d, exporter(2+n), message(t, 0, rfcTemplateSet))
	}
	if len(d.domains) != 8 || d.recent.Len() != 8 || d.cost != 8*21 {
		t.Errorf("%d domains, cost %d", len(d.domains), d.cost)
	}
	if r := decode(t, d, exporter(1), message(t, 0, rfcDataSet)); r.Records != 3 {
		t.Errorf("the one that is heard was forgotten: %+v", r)
	}
	if _, kept := d.domains[domainKey{exporter(3), 123}]; kept {
		t.Error("a silent one was kept")
	}
}

func TestFieldsOfAllTemplatesAreBounded(t *testing.T) {
	d := NewDecoder(Limits{Fields: 1000})
	for n := range 100 {
		decode(t, d, exporter(n+1), template(t, 256, 84)) // cost 100
		if d.cost > 1000 {
			t.Fatalf("cost %d after %d", d.cost, n)
		}
	}
	if len(d.domains) != 10 {
		t.Errorf("%d domains", len(d.domains))
	}
}

func TestAGreedySessionMakesRoomByItself(t *testing.T) {
	d := NewDecoder(Limits{Fields: 1000, Domains: 16})
	for n := range 5 {
		decode(t, d, exporter(n+1), template(t, 256, 84)) // cost 100
	}
	for id := range uint16(12) { // its only domain: refused rather than that it forgets itself
		if r := decode(t, d, exporter(5), template(t, 256+id, 84)); r.Refused != 0 != (id > 5) {
			t.Errorf("template %d: %+v", id, r)
		}
	}
	header := func(domain uint32, m []byte) []byte {
		return append(binary.BigEndian.AppendUint32(m[:12:12], domain), m[16:]...)
	}
	for domain := range uint32(1000) { // many domains of one session
		decode(t, d, exporter(9), header(domain, message(t, 0, rfcTemplateSet)))
	}
	for n := range 4 {
		if r := decode(t, d, exporter(n+1), message(t, 0, `0100 0058`+strings.Repeat("01", 84))); r.Records != 1 {
			t.Errorf("exporter %d was pushed out: %+v", n+1, r)
		}
	}
	if r := decode(t, d, exporter(9), header(999, message(t, 0, rfcDataSet))); r.Records != 3 || d.cost > 1000 ||
		len(d.domains) > 16 {
		t.Errorf("%+v, cost %d, %d domains", r, d.cost, len(d.domains))
	}
}

func TestForgetASession(t *testing.T) {
	d := NewDecoder(Limits{})
	decode(t, d, tcp, message(t, 0, rfcTemplateSet))
	decode(t, d, udp, message(t, 0, rfcTemplateSet))
	d.Forget(tcp)
	if d.cost != 21 || len(d.domains) != 1 {
		t.Errorf("cost %d, %d domains", d.cost, len(d.domains))
	}
	if r := decode(t, d, tcp, message(t, 0, rfcDataSet)); r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
}
