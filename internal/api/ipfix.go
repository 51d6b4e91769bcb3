package api

import (
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// IPFIX is how the flows of a switch are timed, kept and exported.
type IPFIX struct {
	Collectors []Collector `json:"collectors"`
	// ObservationDomainID is told to collectors.
	ObservationDomainID uint32 `json:"observationDomainId"`
	// SwitchIPAddress is the source address towards IPv4 collectors; "" is the host's own.
	SwitchIPAddress string `json:"switchIpAddress,omitempty"`
	// ActiveFlowTimeoutSeconds is how often a flow that goes on is reported, IdleFlowTimeoutSeconds how long after its
	// last packet it has ended.
	ActiveFlowTimeoutSeconds float64 `json:"activeFlowTimeoutSeconds"`
	IdleFlowTimeoutSeconds   float64 `json:"idleFlowTimeoutSeconds"`
	// SamplingRate is how many packets are left out after each that is metered: 0 meters every packet.
	SamplingRate int `json:"samplingRate"`
	// InternalFlowsOnly exports only flows between two ports of this host.
	InternalFlowsOnly bool `json:"internalFlowsOnly"`
	// Biflow makes one record of a conversation's two directions (RFC 5103).
	Biflow bool `json:"biflow"`
	// TemplatesEverySeconds and TemplatesPackets are after which time, and which number of messages, templates are sent
	// again; packets 0: by time alone.
	TemplatesEverySeconds float64 `json:"templatesEverySeconds"`
	TemplatesPackets      int     `json:"templatesPackets"`
	// MaxFlows is the most flows of the switch that the agent keeps at a time.
	MaxFlows int `json:"maxFlows"`
	// MTU is the largest IP packet that a message makes, in bytes; 0: the path's.
	MTU int `json:"mtu"`
}

// Collector is where flow records go.
type Collector struct {
	// Address is an IP address or a host name.
	Address   string         `json:"address"`
	Port      uint16         `json:"port"`
	Shape     spec.Shape     `json:"shape"`
	Transport spec.Transport `json:"transport"`
	// TLS is that of a collector over TLS.
	TLS *CollectorTLS `json:"tls,omitempty"`
}

// CollectorTLS is how a collector over TLS is known, and this host to it: names of files, not what is in them.
type CollectorTLS struct {
	// CA has the authorities; "": those that the host trusts.
	CA          string `json:"ca,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	// ServerName is the name that the collector proves; "": its address.
	ServerName string `json:"serverName,omitempty"`
}

// IPFIXOf returns a switch's settings as they are shown.
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
