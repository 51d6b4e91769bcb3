package export

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"
)

// Shape is how records look.
type Shape string

// The record shapes.
const (
	Standard Shape = "standard" // elements of the public registry, options records
	VDS      Shape = "vds"      // the templates of vSphere's distributed switches (docs/reference/ipfix.md)
)

// Collector is who gets records.
type Collector struct {
	Address string // an IP address or a host name
	Port    uint16 // 1–65535
	Shape   Shape
	// Transport is UDP unless it is set.
	Transport Transport
}

// Transport is how messages get to a collector.
type Transport string

// The transports.
const (
	UDP     Transport = "udp"
	TCP     Transport = "tcp"
	OverTLS Transport = "tls" // over TCP
)

func (c Collector) streams() bool { return c.Transport == TCP || c.Transport == OverTLS }

// Config is how the records of one switch are sent. Zero values have the defaults that are named.
type Config struct {
	Domain     uint32 // observation domain, 0–2^32−1
	DomainName string // sent in options records; the switch and its host
	// Source is the address that messages to IPv4 collectors come from; it need not be one of the host (S67). Zero: the
	// host's.
	Source     netip.Addr
	MTU        int // the largest IP packet, 540–65535; 0: the path's, and at most 1500
	Collectors []Collector
	// TLS says how collectors over TLS are known, and this host to them.
	TLS map[Collector]TLS
	// Lost is what collectors were not sent before, by an exporter that has ended: the count goes on.
	Lost map[Collector]Loss
	// Counted is the start of these counts; of a collector that is new, now.
	Counted map[Collector]Span
	// TemplateEvery and TemplateMessages: templates and options are sent again after this time, or after this many
	// messages (S70). 60 s; 0 messages: by time alone.
	TemplateEvery    time.Duration
	TemplateMessages int
	// Rate is how many records are sent in a second at most, so that bursts do not overrun a collector's socket.
	// 100,000.
	Rate int
	Log  *slog.Logger
	// Lookup resolves a host name; the host's resolver.
	Lookup Lookup
	// Of streams.
	pace pace
	dial func(context.Context, netip.AddrPort, netip.Addr, time.Duration) (*connection, error)
}

func (c Config) withDefaults() Config {
	c.TemplateEvery = cmp.Or(c.TemplateEvery, time.Minute)
	c.Rate = cmp.Or(c.Rate, 100_000)
	c.pace = cmp.Or(c.pace, usualPace())
	if c.dial == nil {
		c.dial = dialStream
	}
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
	// Connecting: over TCP or TLS, and it has not been connected to yet.
	Connecting State = "connecting"
	Sending    State = "sending"
	Away       State = "away" // the collector can't be reached; it is tried again every second
)

// Status is a session as it is at the moment.
type Status struct {
	Collector Collector
	State     State
	Since     time.Time // of the state
	Why       string    // the last fault; "" without one since the session began
	Local     string    // address and port that messages come from; "" before the first
	Remote    string    // address and port that they go to
	// Sent by the session now; over TCP and TLS, what the collector's host has confirmed. A session ends when the
	// collector's name gets another address, over TCP and TLS with the connection.
	Messages, Octets uint64
	Records          uint64 // of flows, since the exporter began
	// Lost is what could not be sent, with Config.Lost: flow records, and the packets and bytes of layer 3 that they
	// told of.
	Lost    Loss
	Counted Span // of Lost
	// Waiting, over TCP and TLS, is what the collector's host has not confirmed yet, and what waits for a connection.
	Waiting Loss
	// Held is the part of Lost that only this process knows: it is missing if the process is killed now.
	Held Loss
	// Unsure, over TCP and TLS, is what was on its way when a connection broke off: some of it may be missing at the
	// collector, and some may have come twice. It is in Records, Waiting or Lost as well.
	Unsure Loss
	// Unshaped is how many records the shape has no form for: it has only one direction, or only IP.
	Unshaped uint64
}

// Loss is what is missing at a collector.
type Loss struct{ Records, Packets, Bytes uint64 }

// Span is the time that a loss was counted in.
type Span struct {
	Since  time.Time // counting began; zero when an agent that noted no times had begun it
	Latest time.Time // something was lost last; zero for never
}

// Add adds another.
func (l *Loss) Add(o Loss) {
	l.Records, l.Packets, l.Bytes = l.Records+o.Records, l.Packets+o.Packets, l.Bytes+o.Bytes
}
