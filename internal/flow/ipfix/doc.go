// Package ipfix writes and reads IPFIX messages (RFC 7011) over one registry of information elements (RFC 7012): the
// public ones, those of VMware's switches, and the reverse ones of biflows (RFC 5103). It knows neither sockets nor
// flows and keeps no goroutines.
//
// # Writing
//
// A Template lays out records; its fields come from names of elements. A Builder fills messages up to a bound and
// counts the sequence. What is to be filled often has its Places found once:
//
//	fields, err := ipfix.Fields("sourceIPv4Address", "octetDeltaCount", "packetDeltaCount/4",
//		"reverseOctetDeltaCount")
//	t, err := ipfix.NewTemplate(256, fields...)
//	source, octets := t.PlaceOf("sourceIPv4Address"), t.PlaceOf("octetDeltaCount")
//	b, err := ipfix.NewBuilder(domain, 0, mtu-28)
//
//	err = b.Template(t)                     // again from time to time over UDP (RFC 7011 §8.4); ErrFull: see below
//	rec := b.Record(t)                      // no allocation
//	for rec == nil {                        // full: send what there is
//		send(b.Message(time.Now()))
//		rec = b.Record(t)
//	}
//	source.Bytes(rec, key.Src[:4])
//	octets.Unsigned(rec, counts.Bytes)
//
// Records with fields of variable length, such as names of interfaces, are put together with AppendUnsigned and
// AppendVariable and added by Builder.Append. Options records are records of a template of NewOptionsTemplate, and
// count in the sequence like all data records.
//
// # Reading
//
// A Decoder keeps the templates of every transport session and observation domain, within Limits, and hands each record
// to a function without copying it. It takes anything: what is wrong with a message comes back as an *Error with the
// offset of the byte.
//
//layout:floor=plans pure
package ipfix
