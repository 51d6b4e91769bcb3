package api

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/plan"
)

// FlowFilter says which flows are meant; fields that are empty ask for all.
type FlowFilter struct {
	Switch    string `json:"switch,omitempty"`
	Port      string `json:"port,omitempty"`   // where it was observed: a port's or an uplink's name
	Uplink    string `json:"uplink,omitempty"` // an uplink's name
	PortGroup string `json:"portGroup,omitempty"`
	// Address is of either end: an address, or a prefix such as 192.0.2.0/24.
	Address string `json:"address,omitempty"`
	// Protocol is tcp, udp, icmp, icmp6, sctp or another name, a number of IP, an EtherType such as 0x0806 or arp, or
	// llc.
	Protocol string `json:"protocol,omitempty"`
	// L4Port is of either end: 1–65535; 0 is any.
	L4Port int `json:"l4port,omitempty"`
	// Direction is ingress or egress, seen from the switch.
	Direction string `json:"direction,omitempty"`
}

// FlowQuery asks for the flows there are.
type FlowQuery struct {
	FlowFilter `wire:"filter"`
	// Sort is bytes, packets or last: the largest, or the most recent, come first.
	Sort string `json:"sort"`
	// Limit is how many are wanted: 1–MaxFlowList.
	Limit int `json:"limit"`
}

// MaxFlowList is the most flows of one answer.
const MaxFlowList = 20_000

// MaxFlowTop is the most flows of one answer to FlowTop.
const MaxFlowTop = 1000

// FlowSorts returns what flows can be sorted by.
func FlowSorts() []string { return []string{"bytes", "packets", "last"} }

// Flow is one flow: what was seen at one port, in one direction, with the same addresses, protocol and ports.
type Flow struct {
	Switch    string `json:"switch"`
	Port      string `json:"port"`
	Uplink    bool   `json:"uplink,omitzero"`
	PortGroup string `json:"portGroup,omitzero"`
	// Direction is ingress or egress, seen from the switch.
	Direction string       `json:"direction"`
	VLAN      plan.Segment `json:"vlan"`
	// Protocol is tcp, udp, icmp and so on, a number of IP, or for what is no IP the EtherType: arp, 0x88b5; llc.
	Protocol       string     `json:"protocol"`
	Source         netip.Addr `json:"source,omitzero"`
	Destination    netip.Addr `json:"destination,omitzero"`
	SourceMAC      plan.MAC   `json:"sourceMac"`
	DestinationMAC plan.MAC   `json:"destinationMac"`
	SourcePort     uint16     `json:"sourcePort,omitzero"`
	// DestinationPort is not that of ICMP, which has ICMP.
	DestinationPort uint16 `json:"destinationPort,omitzero"`
	// ICMP is what kind of message an ICMP flow has; nil of others.
	ICMP       *ICMPMessage `json:"icmp,omitempty"`
	FlowCounts `wire:"counts"`
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	// In and Out are the ports or uplinks by which the last frame came in and went out; empty for none or several.
	In  string `json:"in,omitzero"`
	Out string `json:"out,omitzero"`
	// TCPFlags are those of all packets together.
	TCPFlags []TCPFlag `json:"tcpFlags,omitempty"`
	TOS      uint8     `json:"tos,omitzero"` // of the first packet
	MinTTL   uint8     `json:"minTtl,omitzero"`
	MaxTTL   uint8     `json:"maxTtl,omitzero"`
}

// ICMPMessage is a kind of message of ICMP or ICMPv6.
type ICMPMessage struct {
	Type uint8 `json:"type"`
	Code uint8 `json:"code"`
}

// String is type/code: "8/0".
func (m ICMPMessage) String() string { return fmt.Sprintf("%d/%d", m.Type, m.Code) }

// TCPFlag is a control bit of TCP.
type TCPFlag string

// The control bits, the lowest first (RFC 9293 section 3.1).
const (
	TCPFin TCPFlag = "FIN"
	TCPSyn TCPFlag = "SYN"
	TCPRst TCPFlag = "RST"
	TCPPsh TCPFlag = "PSH"
	TCPAck TCPFlag = "ACK"
	TCPUrg TCPFlag = "URG"
	TCPEce TCPFlag = "ECE"
	TCPCwr TCPFlag = "CWR"
	TCPAe  TCPFlag = "AE"
)

// FlowCounts are packets, bytes of layer 3 (of what is no IP those behind the Ethernet header) and bytes of whole
// frames.
type FlowCounts struct {
	Packets    uint64 `json:"packets"`
	Bytes      uint64 `json:"bytes"`
	FrameBytes uint64 `json:"frameBytes"`
}

// FlowList is the first flows in the order asked for.
type FlowList struct {
	Flows []Flow `json:"flows"`
	// Total is how many the filter meets, Kept how many there are at all.
	Total int `json:"total"`
	Kept  int `json:"kept"`
	// Metered says whether any port or uplink is metered.
	Metered bool `json:"metered"`
	// Note says why none can be there of those asked for, and what to do: nothing is metered there. None where some
	// can.
	Note FlowNote `json:"note,omitzero"`
	// SamplingRate is that of the switches that are asked for, the largest: one of 1 + rate packets is metered, and
	// counts are of those.
	SamplingRate int `json:"samplingRate,omitzero"`
}

// FlowNote says why no flows can be there of those that are asked for. The zero value is none.
type FlowNote struct {
	Code FlowNoteCode `json:"code"`
	// Name is the port, uplink, port group or switch that Code is about; PortGroup is that of a port.
	Name      string `json:"name,omitempty"`
	PortGroup string `json:"portGroup,omitempty"`
	// Text says it to people, and what to do.
	Text string `json:"text"`
}

// None says that flows can be there.
func (n FlowNote) None() bool { return n.Code == "" }

// Same reports whether two notes say the same, whatever the words.
func (n FlowNote) Same(o FlowNote) bool {
	n.Text, o.Text = "", ""
	return n == o
}

// FlowNoteCode is why no flows can be there.
type FlowNoteCode string

// Why no flows can be there.
const (
	NothingMetered      FlowNoteCode = "nothing-metered" // at all
	PortNotMetered      FlowNoteCode = "port-not-metered"
	UplinkNotMetered    FlowNoteCode = "uplink-not-metered"
	PortGroupNotMetered FlowNoteCode = "port-group-not-metered" // none of its ports is
	SwitchNotMetered    FlowNoteCode = "switch-not-metered"     // nothing of it is
)

// FlowTopQuery asks for the flows with the highest rates, again and again.
type FlowTopQuery struct {
	FlowFilter `wire:"filter"`
	// Sort is bits or packets.
	Sort     string        `json:"sort"`
	Limit    int           `json:"limit"`    // 1–MaxFlowTop
	Interval time.Duration `json:"interval"` // in nanoseconds: 1 s or more
}

// FlowTopSorts returns what FlowTop can sort by.
func FlowTopSorts() []string { return []string{"bits", "packets"} }

// ShortestFlowInterval is how often flows are taken out of the kernel, and so the shortest time that rates can be of.
const ShortestFlowInterval = time.Second

// FlowRate is a flow with its rates.
type FlowRate struct {
	Flow  `wire:"flow"`
	Rates FlowRates `json:"rates"`
}

// FlowRates are of packets, and of bits of whole frames, a second.
type FlowRates struct {
	Packets float64 `json:"packets"`
	Bits    float64 `json:"bits"`
}

// FlowTop is what passed in one interval.
type FlowTop struct {
	Time  time.Time  `json:"time"`
	Flows []FlowRate `json:"flows"`
	// Matching is how many flows the filter meets, at all points, and Active how many of them had a packet. Sum is what
	// they had together, with each packet counted once: where it came into the switch if its flow there is among them,
	// else where it went out.
	Matching int       `json:"matching"`
	Active   int       `json:"active"`
	Sum      FlowRates `json:"sum"`
	// Metered says whether any port or uplink is metered.
	Metered bool     `json:"metered"`
	Note    FlowNote `json:"note,omitzero"` // as in FlowList
	// SamplingRate is as in FlowList; rates are of the packets that are metered.
	SamplingRate int `json:"samplingRate,omitzero"`
}

// FlowRecord is a record as it was made.
type FlowRecord struct {
	Flow `wire:"flow"` // with what was counted since the record before
	// Reason is idle, active, end, forced or no-resources.
	Reason string `json:"reason"`
	// Start is when the flow began; with the key it names the flow.
	Start time.Time `json:"start"`
	// Total is what was counted since Start.
	Total FlowCounts `json:"total"`
	// Reverse is the other direction of a biflow (RFC 5103).
	Reverse *FlowReverse `json:"reverse,omitempty"`
}

// FlowReverse is the other direction of a biflow.
type FlowReverse struct {
	FlowCounts `wire:"counts"`
	Start      time.Time  `json:"start"`
	Total      FlowCounts `json:"total"`
}

// FlowRecords is a batch of records, in order.
type FlowRecords struct {
	Records []FlowRecord `json:"records"`
	// Missed is how many were made before these and not taken fast enough.
	Missed uint64 `json:"missed,omitzero"`
	// Note is as in FlowList; with the first batch, and when it has changed.
	Note FlowNote `json:"note,omitzero"`
}

// FlowStatus is how metering and export do.
type FlowStatus struct {
	Switches []FlowSwitch `json:"switches"`
	// Note says what to do where nothing is metered; none where something is.
	Note FlowNote `json:"note,omitzero"`
}

// FlowSwitch is how metering and export do on a switch. Counts are since the agent started.
type FlowSwitch struct {
	Switch string `json:"switch"`
	// Metered is how many ports and uplinks are.
	Metered int `json:"metered"`
	// Flows are in the agent's table, MaxFlows fit in.
	Flows     int   `json:"flows"`
	MaxFlows  int   `json:"maxFlows"`
	TableSize int64 `json:"tableBytes"`
	// SamplingRate is how many packets are left out after each that is metered: counts are of those that are.
	SamplingRate int `json:"samplingRate,omitzero"`
	// Records is how many were made; Overflow what was put in records at once because the table was full.
	Records  uint64     `json:"records"`
	Overflow FlowCounts `json:"overflow"`
	// Counted is what was taken out of the kernel's tables, InRecords the part of it that is in records, Excluded the
	// part that internalFlowsOnly keeps back.
	Counted    FlowCounts      `json:"counted"`
	InRecords  FlowCounts      `json:"inRecords"`
	Excluded   FlowCounts      `json:"excluded"`
	Collectors []FlowCollector `json:"collectors"`
	// Losses are what could not be recorded in the kernel, by port, since the port was connected.
	Losses []FlowLoss `json:"losses"`
	// Problem says what keeps flows from being metered or kept, "" for nothing.
	Problem string `json:"problem,omitempty"`
}

// FlowLoss is what could not be recorded at a port: the kernel's table was full.
type FlowLoss struct {
	Port       string `json:"port"`
	Uplink     bool   `json:"uplink,omitzero"`
	FlowCounts `wire:"counts"`
}

// States of a collector that are as they should be: records are sent to it, and nothing is metered.
const (
	CollectorSending = "sending"
	CollectorClosed  = "closed"
)

// FlowCollector is how the export to a collector does.
type FlowCollector struct {
	// Collector is the address and port as the configuration has them, Shape the form of the records.
	Collector string `json:"collector"`
	Shape     string `json:"shape"`
	// Transport is udp, tcp or tls.
	Transport string `json:"transport"`
	// State is sending (over UDP: nothing was refused; whether it arrives is not known), resolving (its name has no
	// address yet), connecting (over TCP or TLS, for the first time), away (it can't be reached) or closed (nothing is
	// metered), since then.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Address is where messages go, Source where they come from; "" while that is not known.
	Address string `json:"address,omitempty"`
	Source  string `json:"source,omitempty"`
	// Messages and Records were sent, Lost records were not; they contained LostPackets and LostBytes. Unshaped
	// records are those that the shape has no form for.
	Messages    uint64 `json:"messages"`
	Records     uint64 `json:"records"`
	Lost        uint64 `json:"lost"`
	LostPackets uint64 `json:"lostPackets"`
	LostBytes   uint64 `json:"lostBytes"`
	Unshaped    uint64 `json:"unshaped"`
	// Over TCP and TLS: Waiting records are not confirmed by the collector's host yet. Unsure records were on their way
	// when a connection broke off: some of them may be missing at the collector, some may have come twice.
	Waiting       uint64 `json:"waiting,omitzero"`
	Unsure        uint64 `json:"unsure,omitzero"`
	UnsurePackets uint64 `json:"unsurePackets,omitzero"`
	UnsureBytes   uint64 `json:"unsureBytes,omitzero"`
	// LostSince is when counting of losses began: with the first export to the collector since the host was started,
	// also across restarts of the agent. LastLost is the time of the last loss.
	LostSince time.Time `json:"lostSince,omitzero"`
	LastLost  time.Time `json:"lastLost,omitzero"`
	// LastError is the last fault, "" for none since the session began.
	LastError string `json:"lastError,omitempty"`
}

// FlowService is what an agent answers about flows.
type FlowService interface {
	Flows(context.Context, FlowQuery) (*FlowList, error)
	// FlowTop calls emit after every interval, until ctx ends or emit fails.
	FlowTop(ctx context.Context, q FlowTopQuery, emit func(FlowTop) error) error
	// FlowRecords calls emit with records as they are made, until ctx ends or emit fails.
	FlowRecords(ctx context.Context, q FlowFilter, emit func(FlowRecords) error) error
	// FlowSums calls emit with sums: once, or after every interval until ctx ends or emit fails.
	FlowSums(ctx context.Context, q FlowSumQuery, emit func(FlowSums) error) error
	FlowStatus(context.Context) (*FlowStatus, error)
}
