package api

import (
	"net/netip"
	"time"

	"heddle/internal/plan"
)

// What flows can be summed by.
const (
	ByAddress      = "address"
	ByPortGroup    = "port-group"
	ByVLAN         = "vlan"
	ByProtocol     = "protocol"
	ByService      = "service"
	ByConversation = "conversation"
)

// FlowSumKeys returns what flows can be summed by.
func FlowSumKeys() []string {
	return []string{ByAddress, ByPortGroup, ByVLAN, ByProtocol, ByService, ByConversation}
}

// What sums can be of.
const (
	SumsOfFlows   = "flows"   // the flows there are, once
	SumsOfRates   = "rates"   // what passed in an interval, again and again
	SumsOfRecords = "records" // the records that were made in an interval, again and again
)

// FlowSumQuery asks for sums of the flows that the filter meets.
type FlowSumQuery struct {
	FlowFilter `wire:"filter"`
	By         string `json:"by"`
	Of         string `json:"of"`
	// Sort is bytes, packets or flows: the rows with the most come first; with rates bits or packets.
	Sort     string        `json:"sort"`
	Limit    int           `json:"limit"`              // 1–MaxFlowTop
	Interval time.Duration `json:"interval,omitempty"` // in nanoseconds: 1 s or more; not for flows
}

// FlowSumSorts returns what sums can be sorted by; FlowTopSorts those of rates.
func FlowSumSorts() []string { return []string{"bytes", "packets", "flows"} }

// FlowSum is a row: what all its flows had together. A packet that was metered where it came in and where it went out
// counts once.
type FlowSum struct {
	// Name is what the row is of, in words: an address, a port group, 192.0.2.1:40000 – 192.0.2.2:443.
	Name string `json:"name"`
	// Of a conversation: Source is the client's end, as far as the port numbers show, Destination the server's.
	Source          netip.Addr `json:"source,omitzero"`
	SourcePort      uint16     `json:"sourcePort,omitzero"`
	Destination     netip.Addr `json:"destination,omitzero"`
	DestinationPort uint16     `json:"destinationPort,omitzero"`
	// Switch and VLAN are those of a conversation, and of a sum by VLAN or port group what they say.
	Switch   string       `json:"switch,omitzero"`
	VLAN     plan.Segment `json:"vlan,omitzero"`
	Protocol string       `json:"protocol,omitzero"`
	// Service is the name of the server's port on the agent's host (/etc/services), "" for none.
	Service string `json:"service,omitzero"`
	// Groups is how many rows the rest is of; 0 of a row.
	Groups int `json:"groups,omitzero"`
	// Flows is how many there were, each direction one.
	Flows      int `json:"flows"`
	FlowCounts `wire:"counts"`
	// Back is of these what came back: to the address, from the server's end of a conversation. Of other sums nothing.
	Back FlowCounts `json:"back,omitzero"`
	// Share is of the bytes of whole frames of all: 0–1. Rows by address or port group have each packet at both its
	// ends, so that their shares are 2 together.
	Share float64 `json:"share"`
	// Rates are those of the interval, with rates.
	Rates FlowRates `json:"rates,omitzero"`
}

// FlowSums are the first rows in the order asked for. Rows and Rest are together exactly the sums of all groups.
type FlowSums struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"`
	Rows []FlowSum `json:"rows"`
	// Rest is what the other rows had.
	Rest FlowSum `json:"rest"`
	// Total counts each packet once.
	Total FlowSum `json:"total"`
	// Crowded is that there were more groups than are kept apart: some of a row may be in the rest.
	Crowded bool `json:"crowded,omitzero"`
	// Missed is how many records came faster than they were taken; of records.
	Missed uint64 `json:"missed,omitzero"`
	// Metered, Note and SamplingRate are as in FlowList.
	Metered      bool     `json:"metered"`
	Note         FlowNote `json:"note,omitzero"`
	SamplingRate int      `json:"samplingRate,omitzero"`
}
