package spec

import (
	"cmp"
	"net/netip"
	"strings"
	"time"
)

// IPFIX is how the flows of a switch are timed, stored and exported. The monitoring policy decides what is metered. A
// field that is left out has its default.
type IPFIX struct {
	// Collectors get the flow records, each of them all; at most 8. Without collectors, flows can be viewed on the
	// host.
	Collectors []Collector `yaml:"collectors,omitempty" json:"collectors,omitzero"`
	// ObservationDomainID is sent to collectors: 0–4294967295, default 0.
	ObservationDomainID int `yaml:"observationDomainId,omitempty" json:"observationDomainId,omitzero"`
	// SwitchIPAddress is the IPv4 source address of messages to collectors, so that many hosts look like one
	// exporter (S67). Messages to IPv6 collectors always have the host's address. Default: the host's address.
	SwitchIPAddress string `yaml:"switchIpAddress,omitempty" json:"switchIpAddress,omitzero"`
	// ActiveFlowTimeout is how often a flow that lasts is reported (S65): a duration of 60s–3600s, default 60s.
	ActiveFlowTimeout string `yaml:"activeFlowTimeout,omitempty" json:"activeFlowTimeout,omitzero"`
	// IdleFlowTimeout is how long after its last packet a flow has ended (S64): a duration of 10s–600s, default 15s.
	IdleFlowTimeout string `yaml:"idleFlowTimeout,omitempty" json:"idleFlowTimeout,omitzero"`
	// SamplingRate is how many packets are skipped after each that is metered (S66, C7): 0–16384. The default 0
	// meters every packet.
	SamplingRate int `yaml:"samplingRate,omitempty" json:"samplingRate,omitzero"`
	// InternalFlowsOnly exports only flows between two ports of this host (S68); default false.
	InternalFlowsOnly bool `yaml:"internalFlowsOnly,omitempty" json:"internalFlowsOnly,omitzero"`
	// Biflow combines both directions of a conversation seen at one port into one record (RFC 5103); default false.
	Biflow bool `yaml:"biflow,omitempty" json:"biflow,omitzero"`
	// Templates is how often the templates, which describe the records, are sent to collectors.
	Templates Templates `yaml:"templates,omitempty" json:"templates,omitzero"`
	// MaxFlows is the largest number of flows of this switch that the agent stores at a time: 1000–4000000, default
	// 262144. Flows beyond that end early, and their records say so.
	MaxFlows int `yaml:"maxFlows,omitempty" json:"maxFlows,omitzero"`
	// MTU is the largest IP packet for a message, in bytes: 540–9000. By default it is the path's, as far as the
	// host knows it.
	MTU int `yaml:"mtu,omitempty" json:"mtu,omitzero"`
}

// Collector is where flow records go.
type Collector struct {
	// Address is an IPv4 or IPv6 address, or a host name, which is looked up again from time to time.
	Address string `yaml:"address" json:"address"`
	// Port is 1–65535; default 4739, with transport tls 4740.
	Port int `yaml:"port,omitempty" json:"port,omitzero"`
	// Transport is udp (default), tcp or tls.
	Transport Transport `yaml:"transport,omitempty" json:"transport,omitzero"`
	// Shape is standard (default) or vds.
	Shape Shape `yaml:"shape,omitempty" json:"shape,omitzero"`
	// CA is a file with the certificates (PEM) of the authorities that may have issued the collector's certificate.
	// It is for transport tls, like the following fields. Default: the authorities that the host trusts.
	CA string `yaml:"ca,omitempty" json:"ca,omitzero"`
	// Certificate and Key are files (PEM) with what this host presents to a collector that asks for it.
	Certificate string `yaml:"certificate,omitempty" json:"certificate,omitzero"`
	Key         string `yaml:"key,omitempty" json:"key,omitzero"`
	// ServerName is the name or address that the collector's certificate must have. Default: Address.
	ServerName string `yaml:"serverName,omitempty" json:"serverName,omitzero"`
}

// Transport is how messages get to a collector (RFC 7011 section 10).
type Transport string

// The transports.
const (
	TransportUDP Transport = "udp"
	TransportTCP Transport = "tcp"
	TransportTLS Transport = "tls" // over TCP
)

// Shape is the form of flow records.
type Shape string

// The shapes.
const (
	// ShapeStandard has IANA's information elements (RFC 7012).
	ShapeStandard Shape = "standard"
	// ShapeVDS has the record layout of a VDS, for tools made for it (S69); egress alone (S63, D6).
	ShapeVDS Shape = "vds"
)

// Templates is how often templates and options are sent again over UDP (S70, RFC 7011 section 8.4); whichever comes
// first.
type Templates struct {
	// Every is a duration of 5s–1h, default 60s.
	Every string `yaml:"every,omitempty" json:"every,omitzero"`
	// Packets is a number of messages: 1–1000000, default 1000; 0 is by time alone.
	Packets *int `yaml:"packets,omitempty" json:"packets,omitzero"`
}

// Observe is where flows are metered, seen from the switch (D6).
type Observe string

// The values of Observe.
const (
	ObserveIngress Observe = "ingress" // what the port's owner, or the wire, sent and the switch delivered
	ObserveEgress  Observe = "egress"  // what was handed to the port's owner, or the wire
	ObserveBoth    Observe = "both"
)

// Ranges and defaults of the ipfix settings. A VDS has a default sampling rate of 4096; ours is 0, because metering
// every packet costs little here, and a collector that does not know the rate shows wrong numbers.
const (
	MaxCollectors        = 8
	DefaultCollectorPort = 4739 // IANA's for IPFIX (RFC 7011 section 11)
	DefaultTLSPort       = 4740 // IANA's for IPFIX over TLS
	MaxObservationDomain = 1<<32 - 1

	MinActiveFlowTimeout     = time.Minute
	MaxActiveFlowTimeout     = time.Hour
	DefaultActiveFlowTimeout = time.Minute
	MinIdleFlowTimeout       = 10 * time.Second
	MaxIdleFlowTimeout       = 10 * time.Minute
	DefaultIdleFlowTimeout   = 15 * time.Second

	MaxSamplingRate        = 16384
	MinTemplatesEvery      = 5 * time.Second
	MaxTemplatesEvery      = time.Hour
	DefaultTemplatesEvery  = time.Minute
	MaxTemplatePackets     = 1_000_000
	DefaultTemplatePackets = 1000

	MinMaxFlows     = 1000
	MaxMaxFlows     = 4_000_000
	DefaultMaxFlows = 262_144
	MinMessageMTU   = 540
)

// ActualPort is the collector's port: what is set, or IANA's.
func (c Collector) ActualPort() int {
	switch {
	case c.Port != 0:
		return c.Port
	case c.Transport == TransportTLS:
		return DefaultTLSPort
	}
	return DefaultCollectorPort
}

// ActualTransport is what is set, or udp.
func (c Collector) ActualTransport() Transport { return cmp.Or(c.Transport, TransportUDP) }

// ActualShape is what is set, or standard.
func (c Collector) ActualShape() Shape {
	if c.Shape == "" {
		return ShapeStandard
	}
	return c.Shape
}

// IsIPv6 reports whether the collector is given by an IPv6 address; for a name that is not known, so false.
func (c Collector) IsIPv6() bool {
	ip, err := netip.ParseAddr(c.Address)
	return err == nil && ip.Is6()
}

// checkCollectorAddress returns what is wrong with a collector's address, "" for nothing.
func checkCollectorAddress(s string) string {
	if ip, err := netip.ParseAddr(s); err == nil {
		if ip.IsUnspecified() || ip.Is4In6() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			return "a collector's address is one that packets can be sent to, such as 192.0.2.9 or 2001:db8::9"
		}
		if ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" {
			return "a link-local address is one on each link: say by which device, such as fe80::9%eno1"
		}
		return ""
	}
	const wanted = "neither an address such as 192.0.2.9 or 2001:db8::9 nor a host name such as flows.example.net"
	if len(s) > maxHostName {
		return wanted
	}
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, l := range labels {
		odd := func(r rune) bool { return !isLetter(r) && !isDigit(r) && r != '-' && r != '_' }
		if l == "" || len(l) > maxHostLabel || l[0] == '-' || l[len(l)-1] == '-' || strings.ContainsFunc(l, odd) {
			return wanted
		}
	}
	// A name whose last part is a number would be a mistyped IPv4 address (RFC 1123 section 2.1).
	if !strings.ContainsFunc(labels[len(labels)-1], func(r rune) bool { return !isDigit(r) }) {
		return wanted
	}
	return ""
}

// Limits of host names, in bytes (RFC 1035 section 2.3.4).
const (
	maxHostName  = 253
	maxHostLabel = 63
)

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }
