package api

import (
	"time"

	"heddle/internal/plan/problem"
)

// LAGMember is an uplink as a member of a LAG (S52, S53).
type LAGMember struct {
	Name string `json:"name"` // of the LAG
	// Used: frames may leave by it. Single: it is used alone, without a partner (fallback).
	Used   bool   `json:"used"`
	Single bool   `json:"single,omitempty"`
	Reason string `json:"reason,omitempty"` // why it is not used
	// ReasonCode is the reason for programs.
	ReasonCode problem.Code `json:"reasonCode,omitempty"`
	// Receive and Mux are the states of the protocol's machines (IEEE 802.1AX 6.4.12, 6.4.15).
	Receive string    `json:"receive"`
	Mux     string    `json:"mux"`
	Actor   LACPInfo  `json:"actor"`
	Partner *LACPInfo `json:"partner,omitempty"` // nil: no partner is heard
	// PDUs received, sent, and received but malformed; markers received.
	In      uint64 `json:"pdusIn"`
	Out     uint64 `json:"pdusOut"`
	Bad     uint64 `json:"pdusBad"`
	Markers uint64 `json:"markersIn"`
}

// LACPInfo is one side of a link, from LACPDUs.
type LACPInfo struct {
	SystemPriority uint16 `json:"systemPriority"`
	System         string `json:"system"` // MAC
	Key            uint16 `json:"key"`
	PortPriority   uint16 `json:"portPriority"`
	Port           uint16 `json:"port"`
	// State are the flags in words: active or passive, fast or slow, aggregatable or individual, and those of in-sync,
	// collecting, distributing, defaulted and expired that are set.
	State []string `json:"state"`
}

// LLDP is what one uplink's neighbours announce.
type LLDP struct {
	Neighbours []Neighbour `json:"neighbours"`
	// PDUs received, sent, received but malformed, and received from more neighbours than are kept.
	In      uint64 `json:"pdusIn"`
	Out     uint64 `json:"pdusOut"`
	Bad     uint64 `json:"pdusBad"`
	Refused uint64 `json:"pdusRefused"`
}

// SpanningTree is what a bridge at the other end of an uplink says of its port by spanning tree.
type SpanningTree struct {
	// Bridge and Root are "PRIORITY,MAC": the bridge itself, and that which it takes for the root of the tree.
	Bridge string `json:"bridge"`
	Root   string `json:"root"`
	// Port is the bridge's number of its port, with the port's priority in the first four bits.
	Port uint16 `json:"port"`
	// Rapid: it speaks the rapid protocol. The older one does not say whether a port forwards.
	Rapid bool `json:"rapid,omitempty"`
	// Discards: the port is to serve this link, and does not forward yet.
	Discards bool      `json:"discards,omitempty"`
	Since    time.Time `json:"since"`
}

// Neighbour is a device at the other end of an uplink, as it describes itself; characters that a terminal could
// interpret as commands are replaced.
type Neighbour struct {
	// By is "cdp" where the device said it by that protocol alone; "" for LLDP.
	By                string   `json:"by,omitempty"`
	Chassis           string   `json:"chassis"`
	Port              string   `json:"port"`
	PortDescription   string   `json:"portDescription,omitempty"`
	SystemName        string   `json:"systemName,omitempty"`
	SystemDescription string   `json:"systemDescription,omitempty"`
	Capabilities      []string `json:"capabilities,omitempty"` // the enabled ones
	Management        []string `json:"management,omitempty"`   // addresses
	// PVID is the VLAN of untagged frames on its port, MaxFrame the longest frame that it accepts, in bytes; 0: not
	// announced.
	PVID     uint16 `json:"pvid,omitempty"`
	MaxFrame uint16 `json:"maxFrame,omitempty"`
	// VLANs are the VLANs that it announces for its port, sorted by id; empty: it announces none, although the port may
	// carry some.
	VLANs  []NeighbourVLAN `json:"vlans,omitempty"`
	Source string          `json:"source"` // MAC
	Since  time.Time       `json:"since"`
	Heard  time.Time       `json:"heard"`
	TTL    uint16          `json:"ttl"` // validity in seconds, from Heard
}

// NeighbourVLAN is a VLAN that a neighbour announces for its port.
type NeighbourVLAN struct {
	ID   uint16 `json:"id"`
	Name string `json:"name,omitempty"` // the neighbour's name for it
}
