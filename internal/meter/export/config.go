package export

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"
)

// Shape is how records look.
type Shape string

// The record shapes.
const (
	Standard Shape = "standard" // elements of the public registry, options records
	VDS      Shape = "vds"      // the templates of vSphere's distributed switches (semantics §9.3)
)

// Collector is who gets records.
type Collector struct {
	Address string // an IP address or a host name
	Port    uint16 // 1–65535
	Shape   Shape
}

// Config is how the records of one switch are sent. Zero values have the defaults that are named.
type Config struct {
	Domain     uint32 // observation domain, 0–2^32−1
	DomainName string // told in options records; the switch and its host
	// Source is the address that messages to IPv4 collectors come from; it need not be one of the host (S67). Zero: the host's.
	Source     netip.Addr
	MTU        int // the largest IP packet, 540–65535; 0: the path's, and at most 1500
	Collectors []Collector
	// Lost is what collectors were not sent before, by an exporter that has ended: the count goes on.
	Lost map[Collector]Loss
	// TemplateEvery and TemplateMessages: templates and options are sent again after so much time, or so many messages (S70). 60 s;
	// 0 messages: by time alone.
	TemplateEvery    time.Duration
	TemplateMessages int
	// Rate is how many records are sent in a second at most, so that bursts do not overrun a collector's socket. 100,000.
	Rate int
	Log  *slog.Logger
	// Lookup resolves a host name; the host's resolver.
	Lookup Lookup
}

func (c Config) withDefaults() Config {
	c.TemplateEvery = cmp.Or(c.TemplateEvery, time.Minute)
	c.Rate = cmp.Or(c.Rate, 100_000)
	if c.Lookup == nil {
		c.Lookup = resolve
	}
	return c
}

// State is what an exporter's session is about.
type State string

// The states of a session.
const (
	Resolving State = "resolving" // the collector's name has no address yet
	Sending   State = "sending"
	Away      State = "away" // the collector can't be reached; it is tried again every second
)

// Status is a session as it is at the moment.
type Status struct {
	Collector Collector
	State     State
	Since     time.Time // of the state
	Why       string    // the last fault; "" without one since the session began
	Local     string    // address and port that messages come from; "" before the first
	Remote    string    // address and port that they go to
	// Sent by the session now; a session ends when the collector's name gets another address.
	Messages, Octets uint64
	Records          uint64 // of flows, since the exporter began
	// Lost is what could not be sent, with Config.Lost: flow records, and the packets and bytes of layer 3 that they told of.
	Lost Loss
	// Unshaped is how many records the shape has no form for: it has only one direction, or only IP.
	Unshaped uint64
}

// Loss is what is missing at a collector.
type Loss struct{ Records, Packets, Bytes uint64 }

func (l *Loss) add(o Loss) {
	l.Records, l.Packets, l.Bytes = l.Records+o.Records, l.Packets+o.Packets, l.Bytes+o.Bytes
}
