// Package export sends flow records to collectors: IPFIX messages (RFC 7011) over UDP, in the record shape that each
// collector asks for.
//
// An Exporter is that of one switch, and a meter.Exporter. It keeps one session for each collector: a socket with a
// source port of its own, templates, sequence numbers from 0 (RFC 7011 §10.3: over UDP a new source port is a new
// transport session, so that nothing needs to be remembered across a kill), and accounts of what was sent and what was
// lost.
//
//	x, err := export.New(export.Config{Domain: 7, DomainName: "lab on host1", Collectors: …, Log: log})
//	err = m.Configure(now, map[string]meter.Switch{"lab": {Settings: …, Exporter: x}})
//	…
//	x.Status()      // any goroutine
//	x.Close(now)    // behind Meter.Stop, or when another Exporter took its place
//
// Nothing waits in an Exporter. A collector that can't be reached (its name is not resolved, there is no route, its
// port is closed) makes Budget return 0 for a short while: what is due stays in the flow table. When that is over, its
// records are counted as lost, told in Status and in the options records that it gets when it is back, and the other
// collectors go on.
package export
