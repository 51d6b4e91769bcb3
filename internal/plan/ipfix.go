package plan

import (
	"cmp"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"heddle/internal/spec"
)

// IPFIX is how the flows of a switch are timed, stored and exported.
type IPFIX struct {
	Collectors []Collector `json:"collectors,omitzero"`
	// ObservationDomain is sent to collectors.
	ObservationDomain uint32 `json:"observationDomainId"`
	// SwitchAddress is the source address for messages to IPv4 collectors; "" = the host's own.
	SwitchAddress string `json:"switchIpAddress,omitzero"`
	// ActiveTimeout is how often a flow that continues is reported; IdleTimeout is how long after its last packet a
	// flow ends.
	ActiveTimeout time.Duration `json:"activeFlowTimeout"`
	IdleTimeout   time.Duration `json:"idleFlowTimeout"`
	// SamplingRate is how many packets are skipped after each that is metered: 0 = every packet is metered (S66,
	// C7).
	SamplingRate int `json:"samplingRate"`
	// InternalOnly exports only flows between two ports of this host (S68).
	InternalOnly bool `json:"internalFlowsOnly,omitzero"`
	// Biflow makes one record of a conversation's two directions (RFC 5103).
	Biflow bool `json:"biflow,omitzero"`
	// TemplateEvery and TemplatePackets are the time and the number of messages after which templates are sent
	// again; packets 0 = by time alone.
	TemplateEvery   time.Duration `json:"templatesEvery"`
	TemplatePackets int           `json:"templatesPackets"`
	// MaxFlows is how many flows of the switch the agent stores at a time.
	MaxFlows int `json:"maxFlows"`
	// MTU is the largest IP packet for a message, in bytes; 0 = the MTU of the path.
	MTU int `json:"mtu,omitzero"`
}

// Collector is where flow records go.
type Collector struct {
	Address string     `json:"address"` // IP address, or host name
	Port    uint16     `json:"port"`
	Shape   spec.Shape `json:"shape"`
	// Transport is udp if empty.
	Transport spec.Transport `json:"transport,omitzero"`
	TLS       TLS            `json:"tls,omitzero"`
}

// TLS says how to authenticate a collector over TLS, and how this host authenticates itself: names of files, not their
// content.
type TLS struct {
	CA          string `json:"ca,omitzero"` // "" = the authorities that the host trusts
	Certificate string `json:"certificate,omitzero"`
	Key         string `json:"key,omitzero"`
	ServerName  string `json:"serverName,omitzero"` // "" = the collector's address
}

// String returns the collector's address and port: 192.0.2.9:4739, [2001:db8::9]:4739, tls://flows.example.net:4740.
func (c Collector) String() string {
	at := net.JoinHostPort(c.Address, strconv.Itoa(int(c.Port)))
	if c.Transport == "" || c.Transport == spec.TransportUDP {
		return at
	}
	return string(c.Transport) + "://" + at
}

func resolveIPFIX(s *spec.IPFIX) IPFIX {
	x := IPFIX{
		ObservationDomain: uint32(s.ObservationDomainID),
		SwitchAddress:     s.SwitchIPAddress,
		ActiveTimeout:     orTime(s.ActiveFlowTimeout, spec.DefaultActiveFlowTimeout),
		IdleTimeout:       orTime(s.IdleFlowTimeout, spec.DefaultIdleFlowTimeout),
		SamplingRate:      s.SamplingRate,
		InternalOnly:      s.InternalFlowsOnly,
		Biflow:            s.Biflow,
		TemplateEvery:     orTime(s.Templates.Every, spec.DefaultTemplatesEvery),
		TemplatePackets:   or(s.Templates.Packets, spec.DefaultTemplatePackets),
		MaxFlows:          cmp.Or(s.MaxFlows, spec.DefaultMaxFlows),
		MTU:               s.MTU,
	}
	for _, c := range s.Collectors {
		x.Collectors = append(x.Collectors, Collector{Address: strings.ToLower(c.Address), Port: uint16(c.ActualPort()),
			Shape:     c.ActualShape(),
			Transport: c.ActualTransport(), TLS: TLS{c.CA, c.Certificate, c.Key, c.ServerName}})
	}
	return x
}

// orTime returns the duration in s, or otherwise if s is empty.
func orTime(s string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return d
	}
	return otherwise
}

// Metered reports whether flows are metered at any port or uplink of the switch.
func (s *Switch) Metered() bool {
	return slices.ContainsFunc(s.Ports, func(p *Port) bool { return p.Policy.Monitoring.IPFIX.V }) ||
		slices.ContainsFunc(s.Uplinks, func(u *Uplink) bool { return u.Monitoring.IPFIX.V }) ||
		s.Tunnel != nil && s.Tunnel.Monitoring.IPFIX.V
}

// String returns the monitoring in words: "off", or the direction that is observed.
func (m Monitoring) String() string {
	switch {
	case !m.IPFIX.V:
		return "off"
	case m.Observe.V == spec.ObserveBoth:
		return "ingress and egress"
	}
	return string(m.Observe.V)
}

// Equal reports whether the settings are the same.
func (x IPFIX) Equal(y IPFIX) bool {
	same := slices.Equal(x.Collectors, y.Collectors)
	x.Collectors, y.Collectors = nil, nil
	return same && reflect.DeepEqual(x, y)
}
