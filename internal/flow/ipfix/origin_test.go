package ipfix

import (
	"net/netip"
	"testing"
	"time"
)

// from is a session over UDP of the exporter at that address and port.
func from(address string) Session {
	s := udp
	s.Exporter = netip.MustParseAddrPort(address)
	return s
}

// other is a template with the id of rfcTemplateSet, for records of the same length, with another element in front.
const other = `0002 001c 0100 0005 000f0004 000c0004 00080004 00020004 00010004`

// An exporter sends templates from one port and records from others.
func TestTemplatesOfAnotherPortOfTheExporterAreUsed(t *testing.T) {
	for name, c := range map[string]struct {
		templates Session
		sets      string
		data      Session
		after     time.Duration
		records   int
	}{
		"another port": {from("192.0.2.1:1000"), rfcTemplateSet, from("192.0.2.1:1001"), 0, 3},
		"the template is too old": {from("192.0.2.1:1000"), rfcTemplateSet, from("192.0.2.1:1001"),
			31 * time.Minute, 0},
		"another address":             {from("192.0.2.3:1000"), rfcTemplateSet, from("192.0.2.1:1001"), 0, 0},
		"another template":            {from("192.0.2.1:1000"), rfcOptionsTemplateSet, from("192.0.2.1:1001"), 0, 0},
		"a session over TCP has none": {tcp, rfcTemplateSet, from("192.0.2.1:1001"), 0, 0},
		"over TCP a session is one":   {from("192.0.2.1:1000"), rfcTemplateSet, tcp, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(Limits{})
			decode(t, d, c.templates, message(t, 0, c.sets))
			for n := range 2 {
				r, got, err := lines(d, c.data, noon.Add(c.after), message(t, uint32(3*n), rfcDataSet))
				borrowed, unknown := 1, 0
				if c.records == 0 {
					borrowed, unknown = 0, 1
				}
				if err != nil || r.Records != c.records || len(got) != c.records || r.Borrowed != borrowed ||
					r.Unknown != unknown || r.Lost != 0 {
					t.Errorf("%s: %+v %v", name, r, err)
				}
			}
		})
	}
}

func TestADomainHasNoTemplatesOfAnotherDomain(t *testing.T) {
	d := NewDecoder(Limits{})
	m := message(t, 0, rfcTemplateSet)
	m[15]++
	decode(t, d, from("192.0.2.1:1000"), m)
	if r := decode(t, d, from("192.0.2.1:1001"), message(t, 0, rfcDataSet)); r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
}

// A wrong template makes wrong records, which is worse than none.
func TestTemplatesThatDoNotAgreeAreNotBorrowed(t *testing.T) {
	d := NewDecoder(Limits{})
	decode(t, d, from("192.0.2.1:1000"), message(t, 0, rfcTemplateSet))
	decode(t, d, from("192.0.2.1:1002"), message(t, 0, rfcTemplateSet))
	data := from("192.0.2.1:1001")
	if r := decode(t, d, data, message(t, 0, rfcDataSet)); r.Records != 3 {
		t.Errorf("two sessions that agree: %+v", r)
	}
	decode(t, d, from("192.0.2.1:1003"), message(t, 0, other))
	if r := decode(t, d, data, message(t, 3, rfcDataSet)); r.Unknown != 1 || r.Records != 0 {
		t.Errorf("sessions that do not agree: %+v", r)
	}
	decode(t, d, data, message(t, 6, rfcTemplateSet))
	if r := decode(t, d, data, message(t, 6, rfcDataSet)); r.Records != 3 || r.Borrowed != 0 {
		t.Errorf("its own template: %+v", r)
	}
}

// One process of a router sends some templates from one port, and others with the records from another.
func TestASessionWithOtherTemplatesBorrows(t *testing.T) {
	d := NewDecoder(Limits{})
	decode(t, d, from("192.0.2.1:1000"), message(t, 0, rfcTemplateSet))
	data := from("192.0.2.1:1001")
	decode(t, d, data, message(t, 0, rfcOptionsTemplateSet))
	if r := decode(t, d, data, message(t, 0, rfcDataSet)); r.Records != 3 || r.Borrowed != 1 {
		t.Errorf("%+v", r)
	}
}

// An exporter that began anew from another port may use the id for another template.
func TestATemplateThatDoesNotFitIsNotBorrowed(t *testing.T) {
	for name, c := range map[string]struct {
		sets    string
		records int
	}{
		"one record":                    {`0100 0018 c000020c c00002fe c0000201 00001391 00518b19`, 1},
		"one record and padding":        {`0100 0019 c000020c c00002fe c0000201 00001391 00518b19 00`, 1},
		"bytes behind it are no zeros":  {`0100 0019 c000020c c00002fe c0000201 00001391 00518b19 01`, 0},
		"more padding than anybody has": {`0100 0020 c000020c c00002fe c0000201 00001391 00518b19 0000000000000000`, 0},
		"half a record":                 {`0100 000e c000020c c00002fe 0000`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(Limits{})
			decode(t, d, from("192.0.2.1:1000"), message(t, 0, rfcTemplateSet))
			if r := decode(t, d, from("192.0.2.1:1001"), message(t, 0, c.sets)); r.Records != c.records ||
				r.Unknown != 1-c.records {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
}

func TestASessionWhoseTemplateWasRefusedBorrowsNone(t *testing.T) {
	d := NewDecoder(Limits{TemplateFields: 5})
	decode(t, d, from("192.0.2.1:1000"), message(t, 0, rfcTemplateSet))
	data := from("192.0.2.1:1001")
	decode(t, d, data, template(t, 256, 20))
	if r := decode(t, d, data, message(t, 0, rfcDataSet)); r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsKeptOfOriginsIsBounded(t *testing.T) {
	d := NewDecoder(Limits{Domains: 64})
	for n := range 5000 { // all at one address, and then each at its own address
		decode(t, d, exporter(n+1), message(t, 0, rfcTemplateSet))
		s := udp
		s.Exporter = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 1000)
		decode(t, d, s, message(t, 0, rfcTemplateSet))
		kept := 0
		for _, list := range d.origins {
			kept += len(list)
			if len(list) == 0 || len(list) > siblings {
				t.Fatalf("an origin has %d sessions", len(list))
			}
			for _, it := range list {
				if e, ok := d.domains[it.key]; !ok || e.Value.(*domain) != it {
					t.Fatal("a domain that was forgotten is asked for templates")
				}
			}
		}
		if kept > 64 {
			t.Fatalf("%d domains are kept", kept)
		}
	}
	for _, e := range d.domains {
		d.Forget(e.Value.(*domain).key.session)
	}
	if len(d.origins) != 0 {
		t.Errorf("%d origins are kept of nobody", len(d.origins))
	}
}
