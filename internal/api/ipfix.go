package api

import (
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// IPFIX is how the flows of a switch are timed, stored and exported.
type IPFIX struct {
	Collectors []Collector `json:"collectors"`
	// ObservationDomainID is sent to collectors.
	ObservationDomainID uint32 `json:"observationDomainId"`
	// SwitchIPAddress is the source address for messages to IPv4 collectors; "" is the host's own.
	SwitchIPAddress string `json:"switchIpAddress,omitempty"`
	// ActiveFlowTimeoutSeconds is how often a flow that continues is reported; IdleFlowTimeoutSeconds is how long after
	// its last packet a flow ends.
	ActiveFlowTimeoutSeconds float64 `json:"activeFlowTimeoutSeconds"`
	IdleFlowTimeoutSeconds   float64 `json:"idleFlowTimeoutSeconds"`
	// SamplingRate is how many packets are skipped after each that is metered: 0 meters every packet.
	SamplingRate int `json:"samplingRate"`
	// InternalFlowsOnly exports only flows between two ports of this host.
	InternalFlowsOnly bool `json:"internalFlowsOnly"`
	// Biflow makes one record of a conversation's two directions (RFC 5103).
	Biflow bool `json:"biflow"`
	// TemplatesEverySeconds and TemplatesPackets are the time and the number of messages after which templates are sent
	// again; packets 0: by time alone.
	TemplatesEverySeconds float64 `json:"templatesEverySeconds"`
	TemplatesPackets      int     `json:"templatesPackets"`
	// MaxFlows is the most flows of the switch that the agent stores at a time.
	MaxFlows int `json:"maxFlows"`
	// MTU is the largest IP packet for a message, in bytes; 0: the MTU of the path.
	MTU int `json:"mtu"`
}

// Collector is where flow records go.
type Collector struct {
	// Address is an IP address or a host name.
	Address   string         `json:"address"`
	Port      uint16         `json:"port"`
	Shape     spec.Shape     `json:"shape"`
	Transport spec.Transport `json:"transport"`
	// TLS is set for a collector over TLS.
	TLS *CollectorTLS `json:"tls,omitempty"`
}

// CollectorTLS says how to authenticate a collector over TLS, and how this host authenticates itself: names of files,
// not their content.
type CollectorTLS struct {
	// CA is the file of the authorities; "": those that the host trusts.
	CA          string `json:"ca,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	// ServerName is the name that the collector must prove; "": its address.
	ServerName string `json:"serverName,omitempty"`
}

// IPFIXOf converts a switch's settings.
func IPFIXOf(x plan.IPFIX) *IPFIX {
	out := &IPFIX{
		Collectors: make([]Collector, len(x.Collectors)), ObservationDomainID: x.ObservationDomain,
		SwitchIPAddress:          x.SwitchAddress,
		ActiveFlowTimeoutSeconds: x.ActiveTimeout.Seconds(), IdleFlowTimeoutSeconds: x.IdleTimeout.Seconds(),
		SamplingRate: x.SamplingRate, InternalFlowsOnly: x.InternalOnly, Biflow: x.Biflow,
		TemplatesEverySeconds: x.TemplateEvery.Seconds(), TemplatesPackets: x.TemplatePackets, MaxFlows: x.MaxFlows,
		MTU: x.MTU,
	}
	for i, c := range x.Collectors {
		out.Collectors[i] = Collector{Address: c.Address, Port: c.Port, Shape: c.Shape, Transport: c.Transport}
		if c.TLS != (plan.TLS{}) {
			out.Collectors[i].TLS = &CollectorTLS{c.TLS.CA, c.TLS.Certificate, c.TLS.Key, c.TLS.ServerName}
		}
	}
	return out
}

// String returns the collector's address and port, and the form of its records: "tls://flows.example.net:4740
// (standard)".
func (c Collector) String() string {
	p := plan.Collector{Address: c.Address, Port: c.Port, Transport: c.Transport}
	return p.String() + " (" + string(c.Shape) + ")"
}
