// Package export sends flow records to collectors: IPFIX messages (RFC 7011) over UDP, TCP or TLS, in the record shape
// that each collector asks for.
//
// An Exporter exports the records of one switch; it is a meter.Exporter. It has one session for each collector: a
// socket with its own source port, templates, sequence numbers from 0 (RFC 7011 §10.3: over UDP a new source port is a
// new transport session, so that nothing needs to be remembered across a kill), and accounts of what was sent and what
// was lost.
//
//	x, err := export.New(export.Config{Domain: 7, DomainName: "lab on host1", Collectors: …, Log: log})
//	err = m.Configure(now, map[string]meter.Switch{"lab": {Settings: …, Exporter: x}})
//	…
//	x.Status()      // any goroutine
//	x.Close(now)    // after Meter.Stop, or when another Exporter has replaced it
//
// An Exporter over UDP stores no records. If a collector can't be reached (its name is not resolved, there is no route,
// its port is closed), Budget returns 0 for a short while: records that are due stay in the flow table. After that time
// the collector's records count as lost, which Status and, when the collector is back, options records report; the
// other collectors go on.
//
//layout:floor=kernel
package export
