package api

import (
	"net/netip"
	"time"

	"heddle/internal/plan"
)

// Keys by which flows can be summed.
const (
	ByAddress      = "address"
	ByPortGroup    = "port-group"
	ByVLAN         = "vlan"
	ByProtocol     = "protocol"
	ByService      = "service"
	ByConversation = "conversation"
)

// FlowSumKeys returns the keys by which flows can be summed.
func FlowSumKeys() []string {
	return []string{ByAddress, ByPortGroup, ByVLAN, ByProtocol, ByService, ByConversation}
}

// Sources of sums.
const (
	SumsOfFlows   = "flows"   // the current flows, once
	SumsOfRates   = "rates"   // the traffic of an interval, repeatedly
	SumsOfRecords = "records" // the records made in an interval, repeatedly
)

// FlowSumQuery is a request for sums of the flows that match the filter.
type FlowSumQuery struct {
	FlowFilter `wire:"filter"`
	By         string `json:"by"`
	Of         string `json:"of"`
	// Sort is bytes, packets or flows: the largest rows come first; for rates it is bits or packets.
	Sort     string        `json:"sort"`
	Limit    int           `json:"limit"`              // 1–MaxFlowTop
	Interval time.Duration `json:"interval,omitempty"` // in nanoseconds: 1 s or more; not for flows
}

// FlowSumSorts returns the orders of sums; FlowTopSorts those of rates.
func FlowSumSorts() []string { return []string{"bytes", "packets", "flows"} }

// FlowSum is a row: the sum of all its flows. A packet that was metered both where it entered and where it left counts
// once.
type FlowSum struct {
	// Name is the row's key in words: an address, a port group, 192.0.2.1:40000 – 192.0.2.2:443.
	Name string `json:"name"`
	// For a conversation: Source is the client's end, judged by the port numbers, Destination the server's.
	Source          netip.Addr `json:"source,omitzero"`
	SourcePort      uint16     `json:"sourcePort,omitzero"`
	Destination     netip.Addr `json:"destination,omitzero"`
	DestinationPort uint16     `json:"destinationPort,omitzero"`
	// Switch and VLAN are set for a conversation, and for a sum by VLAN or port group.
	Switch   string       `json:"switch,omitzero"`
	VLAN     plan.Segment `json:"vlan,omitzero"`
	Protocol string       `json:"protocol,omitzero"`
	// Service is the name of the server's port on the agent's host (/etc/services), "" for none.
	Service string `json:"service,omitzero"`
	// Groups is the number of rows in the rest; 0 for a row.
	Groups int `json:"groups,omitzero"`
	// Flows is the number of flows; each direction is one.
	Flows      int `json:"flows"`
	FlowCounts `wire:"counts"`
	// Back is the part of these in the opposite direction: to the address, or from the server's end of a conversation.
	// It is zero for other sums.
	Back FlowCounts `json:"back,omitzero"`
	// Share is the share of the bytes of whole frames of all flows: 0–1. Rows by address or port group count each
	// packet at both its ends, so that their shares add up to 2.
	Share float64 `json:"share"`
	// Rates are the rates of the interval, if rates are requested.
	Rates FlowRates `json:"rates,omitzero"`
}

// FlowSums are the first rows in the requested order. Rows and Rest together are exactly the sums of all groups.
type FlowSums struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"`
	Rows []FlowSum `json:"rows"`
	// Rest is the sum of the other rows.
	Rest FlowSum `json:"rest"`
	// Total counts each packet once.
	Total FlowSum `json:"total"`
	// Crowded: there were more groups than are counted apart, so that a part of a row may be in the rest.
	Crowded bool `json:"crowded,omitzero"`
	// Missed is how many records were lost because the follower was too slow; for records.
	Missed uint64 `json:"missed,omitzero"`
	// Metered, Note and SamplingRate are as in FlowList.
	Metered      bool     `json:"metered"`
	Note         FlowNote `json:"note,omitzero"`
	SamplingRate int      `json:"samplingRate,omitzero"`
}
