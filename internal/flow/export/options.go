package export

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"unicode/utf8"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

// Ids of the options templates.
const (
	idExporterIPv4 = 400 + iota
	idExporterIPv6
	idMetering
	idMeteringLoss
	idPointLoss
	idExportLoss
	idSampling
	idInterface
	idSamplingInterval
)

// Scopes of options records: there is one metering process in an agent and one exporting process for each collector.
const (
	meteringProcess  = 1
	countBased       = 1 // selectorAlgorithm: systematic count-based sampling (RFC 5477 §8.2.3)
	samplingSelector = 1
)

// Names of interfaces have fixed lengths, because some collectors read no others.
const (
	nameLength        = 64
	descriptionLength = 96
)

// fixed is the text padded with zeros; of one that is too long, as many characters as fit.
func fixed(s string, n int) []byte {
	for len(s) > n {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return append([]byte(s), make([]byte, n-len(s))...)
}

// optionsTemplates are what is exported besides flows: who exports; how much was exported (RFC 7011 §4.1); what the
// kernel could not record, in all (§4.2) and at each point; what could not be sent to this collector (§4.3); how
// packets were sampled (RFC 5476 §6.5.2); the names of ports.
func optionsTemplates() ([]*ipfix.Template, error) {
	var all []*ipfix.Template
	for _, o := range []struct {
		id     uint16
		scope  int
		fields []string
	}{
		{idExporterIPv4, 1, []string{"exportingProcessId", "exporterIPv4Address", "observationDomainName"}},
		{idExporterIPv6, 1, []string{"exportingProcessId", "exporterIPv6Address", "observationDomainName"}},
		{idMetering, 2, []string{"observationDomainId", "meteringProcessId", "exportedMessageTotalCount",
			"exportedFlowRecordTotalCount", "exportedOctetTotalCount"}},
		{idMeteringLoss, 2, []string{"observationDomainId", "meteringProcessId", "ignoredPacketTotalCount",
			"ignoredOctetTotalCount"}},
		{idPointLoss, 2, []string{"meteringProcessId", "observationPointId", "ignoredPacketTotalCount",
			"ignoredOctetTotalCount"}},
		{idExportLoss, 1, []string{"exportingProcessId", "notSentFlowTotalCount", "notSentPacketTotalCount",
			"notSentOctetTotalCount"}},
		{idSampling, 1, []string{"selectorId", "selectorAlgorithm", "samplingPacketInterval", "samplingPacketSpace"}},
		{idInterface, 1, []string{"ingressInterface", fmt.Sprint("interfaceName/", nameLength),
			fmt.Sprint("interfaceDescription/", descriptionLength)}},
		{idSamplingInterval, 1, []string{"observationDomainId", "samplingInterval"}},
	} {
		fields, err := ipfix.Fields(o.fields...)
		if err != nil {
			return nil, fmt.Errorf("options template %d: %w", o.id, err)
		}
		t, err := ipfix.NewOptionsTemplate(o.id, o.scope, fields...)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// optionsOf writes the options records of a session; it passes each with its template to add.
type optionsOf struct {
	templates []*ipfix.Template
	add       func(*ipfix.Template, []byte) error
	err       error
}

func (o *optionsOf) record(id uint16, values ...any) {
	t := o.templates[id-idExporterIPv4]
	var rec []byte
	for i, v := range values {
		switch v := v.(type) {
		case string:
			if n := int(t.Field(i).Length); n != ipfix.Variable {
				rec = append(rec, fixed(v, n)...)
				break
			}
			rec = ipfix.AppendVariable(rec, v)
		case netip.Addr:
			rec = append(rec, v.AsSlice()...)
		case uint64:
			rec = ipfix.AppendUnsigned(rec, v, int(t.Field(i).Length))
		}
	}
	o.err = errors.Join(o.err, o.add(t, rec))
}

// sampling describes the sampling in two ways. Some collectors read only the interval, or treat samplingPacketInterval
// as the interval unless the interval comes before it in the same message; others ignore the interval if there is an
// algorithm beside it.
func (o *optionsOf) sampling(domain uint64, left int) {
	space := uint64(max(0, left))
	o.record(idSamplingInterval, domain, 1+space)
	o.record(idSampling, uint64(samplingSelector), uint64(countBased), uint64(1), space)
}

// write writes all of them except the names of ports. Sampling comes first, at the beginning of a message.
func (o *optionsOf) write(s *session, state *meter.State) {
	process, domain := uint64(s.process), uint64(s.x.c.Domain)
	o.sampling(domain, state.Sampling)
	if local := s.local(); local.Is4() {
		o.record(idExporterIPv4, process, local, s.x.c.DomainName)
	} else if local.Is6() {
		o.record(idExporterIPv6, process, local, s.x.c.DomainName)
	}
	st := s.status
	o.record(idMetering, domain, uint64(meteringProcess), st.Messages, st.Records, st.Octets)
	o.record(idMeteringLoss, domain, uint64(meteringProcess), s.x.ignored.total.Packets, s.x.ignored.total.Bytes)
	o.record(idExportLoss, process, st.Lost.Records, st.Lost.Packets, st.Lost.Bytes)
	for _, l := range state.Losses {
		o.record(idPointLoss, uint64(meteringProcess), uint64(state.Points[l.Point].Number), l.Packets, l.Bytes)
	}
}

// name writes the name of a port.
func (o *optionsOf) name(p flow.Point) {
	o.record(idInterface, uint64(p.Number), p.ID.Name, describe(p))
}

// changed are the slots whose points differ from before, in order.
func changed(before, now flow.Points) (slots []uint16) {
	for slot, p := range now {
		if old, ok := before[slot]; !ok || !old.Same(p) {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	return slots
}

// describe describes a point in words, for interfaceDescription.
func describe(p flow.Point) string {
	what := "port group " + p.PortGroup
	if p.Uplink {
		what = "uplink"
	}
	if p.Device != "" {
		what += ", device " + p.Device
	}
	return fmt.Sprintf("switch %s, %s", p.ID.Switch, what)
}

// ignored sums up what the kernel could not record. The kernel counts for a point from when it got its slot; the sum
// continues when another point gets the slot.
type ignored struct {
	before map[uint16]flow.Loss
	total  struct{ Packets, Bytes uint64 }
}

func (g *ignored) add(losses []flow.Loss) {
	now := map[uint16]flow.Loss{}
	for _, l := range losses {
		now[l.Point] = l
		if old := g.before[l.Point]; l.Packets >= old.Packets && l.Bytes >= old.Bytes {
			l.Packets, l.Bytes = l.Packets-old.Packets, l.Bytes-old.Bytes
		}
		g.total.Packets, g.total.Bytes = g.total.Packets+l.Packets, g.total.Bytes+l.Bytes
	}
	g.before = now
}
