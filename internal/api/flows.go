package api

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/plan"
)

// FlowFilter selects flows; empty fields match all.
type FlowFilter struct {
	Switch    string `json:"switch,omitempty"`
	Port      string `json:"port,omitempty"`   // where it was observed: a port's or an uplink's name
	Uplink    string `json:"uplink,omitempty"` // an uplink's name
	PortGroup string `json:"portGroup,omitempty"`
	// Address matches either end: an address, or a prefix such as 192.0.2.0/24.
	Address string `json:"address,omitempty"`
	// Protocol is tcp, udp, icmp, icmp6, sctp or another name, an IP protocol number, an EtherType such as 0x0806 or
	// arp, or llc.
	Protocol string `json:"protocol,omitempty"`
	// L4Port matches either end: 1–65535; 0 is any.
	L4Port int `json:"l4port,omitempty"`
	// Direction is ingress or egress, seen from the switch.
	Direction string `json:"direction,omitempty"`
}

// FlowQuery is a request for the current flows.
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

// FlowSorts returns the orders of flows.
func FlowSorts() []string { return []string{"bytes", "packets", "last"} }

// Flow is one flow: the packets seen at one port, in one direction, with the same addresses, protocol and ports.
type Flow struct {
	Switch    string `json:"switch"`
	Port      string `json:"port"`
	Uplink    bool   `json:"uplink,omitzero"`
	PortGroup string `json:"portGroup,omitzero"`
	// Direction is ingress or egress, seen from the switch.
	Direction string       `json:"direction"`
	VLAN      plan.Segment `json:"vlan"`
	// Protocol is tcp, udp, icmp and so on, an IP protocol number, or for other frames the EtherType: arp, 0x88b5; llc.
	Protocol       string     `json:"protocol"`
	Source         netip.Addr `json:"source,omitzero"`
	Destination    netip.Addr `json:"destination,omitzero"`
	SourceMAC      plan.MAC   `json:"sourceMac"`
	DestinationMAC plan.MAC   `json:"destinationMac"`
	SourcePort     uint16     `json:"sourcePort,omitzero"`
	// DestinationPort is not set for ICMP; see ICMP.
	DestinationPort uint16 `json:"destinationPort,omitzero"`
	// ICMP is the message type and code of an ICMP flow; nil for others.
	ICMP       *ICMPMessage `json:"icmp,omitempty"`
	FlowCounts `wire:"counts"`
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	// In and Out are the ports or uplinks by which the last frame entered and left; empty for none or several.
	In  string `json:"in,omitzero"`
	Out string `json:"out,omitzero"`
	// TCPFlags are the flags that any of the packets had.
	TCPFlags []TCPFlag `json:"tcpFlags,omitempty"`
	TOS      uint8     `json:"tos,omitzero"` // of the first packet
	MinTTL   uint8     `json:"minTtl,omitzero"`
	MaxTTL   uint8     `json:"maxTtl,omitzero"`
	// Tunnel is how the flow crosses to or from another host; nil for one that stays on this host or is in a VLAN.
	Tunnel *FlowTunnel `json:"tunnel,omitempty"`
}

// FlowTunnel are the endpoints between which the frames of a flow of an overlay segment cross, as the host knows its
// MACs now.
type FlowTunnel struct {
	// Local is this host's endpoint; not set where the other host chooses one of several.
	Local netip.Addr `json:"local,omitzero"`
	// Remote is the endpoint of the other host.
	Remote netip.Addr `json:"remote"`
}

// ICMPMessage is a message type and code of ICMP or ICMPv6.
type ICMPMessage struct {
	Type uint8 `json:"type"`
	Code uint8 `json:"code"`
}

// String returns type/code: "8/0".
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

// FlowCounts are packets, bytes of layer 3 (for other frames the bytes after the Ethernet header) and bytes of whole
// frames.
type FlowCounts struct {
	Packets    uint64 `json:"packets"`
	Bytes      uint64 `json:"bytes"`
	FrameBytes uint64 `json:"frameBytes"`
}

// FlowList is the first flows in the requested order.
type FlowList struct {
	Flows []Flow `json:"flows"`
	// Total is how many flows match the filter, Kept how many there are in all.
	Total int `json:"total"`
	Kept  int `json:"kept"`
	// Metered says whether any port or uplink is metered.
	Metered bool `json:"metered"`
	// Note says why there can be none of the requested flows, and what to do: nothing is metered there. None if there
	// can be some.
	Note FlowNote `json:"note,omitzero"`
	// SamplingRate is the largest one of the requested switches: one of 1 + rate packets is metered, and counts are of
	// metered packets.
	SamplingRate int `json:"samplingRate,omitzero"`
}

// FlowNote says why there can be none of the requested flows. The zero value means that there can be some.
type FlowNote struct {
	Code FlowNoteCode `json:"code"`
	// Name is the port, uplink, port group or switch that Code is about; PortGroup is that of a port.
	Name      string `json:"name,omitempty"`
	PortGroup string `json:"portGroup,omitempty"`
	// Text describes it for people, and says what to do.
	Text string `json:"text"`
}

// None reports that there can be flows.
func (n FlowNote) None() bool { return n.Code == "" }

// Same reports whether two notes mean the same, whatever the words.
func (n FlowNote) Same(o FlowNote) bool {
	n.Text, o.Text = "", ""
	return n == o
}

// FlowNoteCode is why there can be no flows.
type FlowNoteCode string

// The reasons why there can be no flows.
const (
	NothingMetered      FlowNoteCode = "nothing-metered" // nothing is metered anywhere
	PortNotMetered      FlowNoteCode = "port-not-metered"
	UplinkNotMetered    FlowNoteCode = "uplink-not-metered"
	PortGroupNotMetered FlowNoteCode = "port-group-not-metered" // none of its ports is metered
	SwitchNotMetered    FlowNoteCode = "switch-not-metered"     // nothing of it is metered
)

// FlowTopQuery is a request for the flows with the highest rates, after every interval.
type FlowTopQuery struct {
	FlowFilter `wire:"filter"`
	// Sort is bits or packets.
	Sort     string        `json:"sort"`
	Limit    int           `json:"limit"`    // 1–MaxFlowTop
	Interval time.Duration `json:"interval"` // in nanoseconds: 1 s or more
}

// FlowTopSorts returns the orders for FlowTop.
func FlowTopSorts() []string { return []string{"bits", "packets"} }

// ShortestFlowInterval is how often flows are drained from the kernel, and so the shortest interval for rates.
const ShortestFlowInterval = time.Second

// FlowRate is a flow with its rates.
type FlowRate struct {
	Flow  `wire:"flow"`
	Rates FlowRates `json:"rates"`
}

// FlowRates are packets per second, and bits of whole frames per second.
type FlowRates struct {
	Packets float64 `json:"packets"`
	Bits    float64 `json:"bits"`
}

// FlowTop is the traffic of one interval.
type FlowTop struct {
	Time  time.Time  `json:"time"`
	Flows []FlowRate `json:"flows"`
	// Matching is how many flows match the filter, at all points; Active is how many of them had a packet. Sum is their
	// traffic, with each packet counted once: where it entered the switch if its flow there is among them, else where
	// it left.
	Matching int       `json:"matching"`
	Active   int       `json:"active"`
	Sum      FlowRates `json:"sum"`
	// Metered says whether any port or uplink is metered.
	Metered bool     `json:"metered"`
	Note    FlowNote `json:"note,omitzero"` // as in FlowList
	// SamplingRate is as in FlowList; rates are of metered packets.
	SamplingRate int `json:"samplingRate,omitzero"`
}

// FlowRecord is a record as it was made.
type FlowRecord struct {
	Flow `wire:"flow"` // with what was counted since the previous record
	// Reason is idle, active, end, forced or no-resources.
	Reason string `json:"reason"`
	// Start is when the flow began; together with the key it identifies the flow.
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
	// Missed is how many records before these were lost because the follower was too slow.
	Missed uint64 `json:"missed,omitzero"`
	// Note is as in FlowList; it is sent with the first batch, and when it has changed.
	Note FlowNote `json:"note,omitzero"`
}

// FlowStatus is the state of metering and export.
type FlowStatus struct {
	Switches []FlowSwitch `json:"switches"`
	// Note says what to do if nothing is metered; none otherwise.
	Note FlowNote `json:"note,omitzero"`
}

// FlowSwitch is the state of metering and export on a switch. Counts are since the agent started.
type FlowSwitch struct {
	Switch string `json:"switch"`
	// Metered is how many ports and uplinks are metered.
	Metered int `json:"metered"`
	// Flows is the number of flows in the agent's table, MaxFlows its capacity.
	Flows     int   `json:"flows"`
	MaxFlows  int   `json:"maxFlows"`
	TableSize int64 `json:"tableBytes"`
	// SamplingRate is how many packets are skipped after each that is metered: counts are of metered packets.
	SamplingRate int `json:"samplingRate,omitzero"`
	// Records is how many were made; Overflow is how many flows were exported at once because the table was full.
	Records  uint64     `json:"records"`
	Overflow FlowCounts `json:"overflow"`
	// Counted is what was drained from the kernel's tables, InRecords the part of it that is in records, Excluded the
	// part that internalFlowsOnly excludes.
	Counted    FlowCounts      `json:"counted"`
	InRecords  FlowCounts      `json:"inRecords"`
	Excluded   FlowCounts      `json:"excluded"`
	Collectors []FlowCollector `json:"collectors"`
	// Losses are the packets that could not be recorded in the kernel, by port, since the port was connected.
	Losses []FlowLoss `json:"losses"`
	// Problem describes what prevents metering or export, "" for nothing; ProblemCode is the same for programs.
	Problem     string          `json:"problem,omitempty"`
	ProblemCode FlowProblemCode `json:"problemCode,omitempty"`
}

// FlowProblemCode names what prevents metering or export on a switch. "" means that nothing does.
type FlowProblemCode string

// The problems of metering and export.
const (
	// MeteringFailed: flows can't be metered, or can't be stored.
	MeteringFailed FlowProblemCode = "metering-failed"
	// ExportFailed: the state of the export is not known, because it has failed.
	ExportFailed FlowProblemCode = "export-failed"
)

// FlowLoss is what could not be recorded at a port because the kernel's table was full.
type FlowLoss struct {
	Port       string `json:"port"`
	Uplink     bool   `json:"uplink,omitzero"`
	FlowCounts `wire:"counts"`
}

// States of a collector without problems: records are sent to it, or nothing is metered.
const (
	CollectorSending = "sending"
	CollectorClosed  = "closed"
)

// FlowCollector is the state of the export to a collector.
type FlowCollector struct {
	// Collector is the address and port in the configuration, Shape the form of the records.
	Collector string `json:"collector"`
	Shape     string `json:"shape"`
	// Transport is udp, tcp or tls.
	Transport string `json:"transport"`
	// State is sending (over UDP: nothing was refused; whether it arrives is not known), resolving (its name has no
	// address yet), connecting (over TCP or TLS, for the first time), away (it can't be reached) or closed (nothing is
	// metered); Since is when that began.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Address is the destination of messages, Source their source; "" while that is not known.
	Address string `json:"address,omitempty"`
	Source  string `json:"source,omitempty"`
	// Messages and Records were sent, Lost records were not; LostPackets and LostBytes are their content. Unshaped
	// records have no representation in the shape.
	Messages    uint64 `json:"messages"`
	Records     uint64 `json:"records"`
	Lost        uint64 `json:"lost"`
	LostPackets uint64 `json:"lostPackets"`
	LostBytes   uint64 `json:"lostBytes"`
	Unshaped    uint64 `json:"unshaped"`
	// Over TCP and TLS: Waiting records are not confirmed by the collector's host yet. Unsure records were on their way
	// when a connection broke: some of them may be missing at the collector, some may have arrived twice.
	Waiting       uint64 `json:"waiting,omitzero"`
	Unsure        uint64 `json:"unsure,omitzero"`
	UnsurePackets uint64 `json:"unsurePackets,omitzero"`
	UnsureBytes   uint64 `json:"unsureBytes,omitzero"`
	// LostSince is when counting of losses began: with the first export to the collector since the host was started,
	// also across restarts of the agent. LastLost is the time of the last loss.
	LostSince time.Time `json:"lostSince,omitzero"`
	LastLost  time.Time `json:"lastLost,omitzero"`
	// LastError is the last error, "" for none since the session began.
	LastError string `json:"lastError,omitempty"`
}

// FlowService has the calls about flows.
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
