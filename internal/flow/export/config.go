package export

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"heddle/internal/flow"
)

// Shape is the form of records.
type Shape string

// The record shapes.
const (
	Standard Shape = "standard" // elements of the public registry, options records
	VDS      Shape = "vds"      // the templates of vSphere's distributed switches (docs/reference/ipfix.md)
)

// Collector is a receiver of records.
type Collector struct {
	Address string // an IP address or a host name
	Port    uint16 // 1–65535
	Shape   Shape
	// Transport is UDP if empty.
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

// Config is how the records of one switch are sent. Each field names the default that replaces its zero value.
type Config struct {
	Domain     uint32 // observation domain, 0–2^32−1
	DomainName string // sent in options records; the switch and its host
	// Source is the source address of messages to IPv4 collectors; it need not be one of the host's (S67). Default:
	// the host's.
	Source     netip.Addr
	MTU        int // the largest IP packet, 540–65535; default: the path's, and at most 1500
	Collectors []Collector
	// TLS says how this host recognizes collectors over TLS, and how it identifies itself to them.
	TLS map[Collector]TLS
	// Lost is what an exporter that has ended could not send to collectors: the count continues from there.
	Lost map[Collector]Loss
	// Counted is the start of these counts; for a new collector, now.
	Counted map[Collector]Span
	// TemplateEvery and TemplateMessages: templates and options are sent again after this time, or after this many
	// messages (S70). Default: 60 s; 0 messages means by time alone.
	TemplateEvery    time.Duration
	TemplateMessages int
	// Rate is how many records are sent per second at most, so that bursts do not overrun a collector's socket.
	// Default: 100,000.
	Rate int
	Log  *slog.Logger
	// Locator finds the endpoints of flows that cross between hosts. Default: flow.NoLocator.
	Locator flow.Locator
	// Lookup resolves a host name. Default: the host's resolver.
	Lookup Lookup
	// pace is for streams.
	pace pace
	dial func(context.Context, netip.AddrPort, netip.Addr, time.Duration) (*connection, error)
}

func (c Config) withDefaults() Config {
	c.TemplateEvery = cmp.Or(c.TemplateEvery, time.Minute)
	c.Rate = cmp.Or(c.Rate, 100_000)
	c.pace = cmp.Or(c.pace, usualPace())
	if c.Locator == nil {
		c.Locator = flow.NoLocator{}
	}
	if c.dial == nil {
		c.dial = dialStream
	}
	if c.Lookup == nil {
		c.Lookup = resolve
	}
	return c
}

// State is the state of an exporter's session.
type State string

// The states of a session.
const (
	Resolving State = "resolving" // the collector's name has no address yet
	// Connecting: over TCP or TLS, and no connection exists yet.
	Connecting State = "connecting"
	Sending    State = "sending"
	Away       State = "away" // the collector can't be reached; it is tried again every second
)

// Status is the present state of a session.
type Status struct {
	Collector Collector
	State     State
	Since     time.Time // of the state
	Why       string    // the last fault; "" without one since the session began
	Local     string    // address and port that messages come from; "" before the first
	Remote    string    // address and port that they go to
	// Messages and Octets were sent by the present session; over TCP and TLS they are what the collector's host has
	// confirmed. A session ends when the collector's name gets another address, and over TCP and TLS with the
	// connection.
	Messages, Octets uint64
	Records          uint64 // flow records, since the exporter began
	// Lost is what could not be sent, including Config.Lost: flow records, and the packets and layer-3 bytes in
	// them.
	Lost    Loss
	Counted Span // of Lost
	// Waiting, over TCP and TLS, is what the collector's host has not confirmed yet, including what waits for a
	// connection.
	Waiting Loss
	// Held is the part of Lost that only this process knows: it is missing if the process is killed now.
	Held Loss
	// Unsure, over TCP and TLS, is what was on its way when a connection broke: some of it may be missing at the
	// collector, and some may have arrived twice. It is in Records, Waiting or Lost as well.
	Unsure Loss
	// Unshaped is how many records the shape has no template for: it has only one direction, or only IP.
	Unshaped uint64
}

// Loss is what a collector did not get.
type Loss struct{ Records, Packets, Bytes uint64 }

// Span is the time in which a loss was counted.
type Span struct {
	Since  time.Time // when counting began; zero if an agent without times had begun it
	Latest time.Time // when something was lost last; zero for never
}

// Add adds another.
func (l *Loss) Add(o Loss) {
	l.Records, l.Packets, l.Bytes = l.Records+o.Records, l.Packets+o.Packets, l.Bytes+o.Bytes
}
