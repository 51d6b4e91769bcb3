package metrics

import (
	"time"

	dto "github.com/prometheus/client_model/go"

	"heddle/internal/api"
)

// Names of the metrics of flows.
const (
	flowEntries     = "heddle_flow_table_entries"
	flowCapacity    = "heddle_flow_table_capacity"
	flowCounted     = "heddle_flow_counted_packets_total"
	flowRecords     = "heddle_flow_records_total"
	flowOverflow    = "heddle_flow_no_room_packets_total"
	flowNotRecorded = "heddle_flow_not_recorded_packets_total"
	collectorUp     = "heddle_flow_collector_up"
	collectorSent   = "heddle_flow_exported_records_total"
	collectorLost   = "heddle_flow_lost_records_total"
	collectorLostP  = "heddle_flow_lost_packets_total"
	collectorUnsure = "heddle_flow_unsure_records_total"
	collectorWaits  = "heddle_flow_waiting_records"
	collectorSince  = "heddle_flow_lost_since_timestamp_seconds"
	collectorLast   = "heddle_flow_last_lost_timestamp_seconds"
)

// flowFamilies returns the metrics of metering and export. Those of a switch appear when it is metered.
func flowFamilies() []Family {
	sw, collector := []string{"switch"}, []string{"switch", "collector"}
	return []Family{
		{Name: flowEntries, Type: Gauge, Help: "Flows in the agent's table.", Labels: sw},
		{Name: flowCapacity, Type: Gauge, Help: "How many flows the table can hold: maxFlows of the configuration.",
			Labels: sw},
		{Name: flowCounted, Type: Counter, Help: "Packets that were metered and taken out of the kernel's tables, " +
			"since the agent began.", Labels: sw},
		{Name: flowRecords, Type: Counter, Help: "Flow records that were made, since the agent began.", Labels: sw},
		{Name: flowOverflow, Type: Counter, Help: "Packets that were put into records at once because the agent's " +
			"table was full, since the agent began.", Labels: sw},
		{Name: flowNotRecorded, Type: Counter, Help: "Packets that are in no record because the kernel's tables were " +
			"full, by the port or uplink at which they were seen, since that was connected.",
			Labels: []string{"switch", "point"}, Lazy: true},
		{Name: collectorUp, Type: Gauge, Help: "1 when records are sent to the collector, 0 when not; the state is " +
			"the label.", Labels: with(collector, "state")},
		{Name: collectorSent, Type: Counter, Help: "Flow records sent to the collector, since the export began.",
			Labels: collector},
		{Name: collectorLost, Type: Counter, Help: "Flow records that could not be sent to the collector, since " +
			"heddle_flow_lost_since_timestamp_seconds, also across restarts of the agent.", Labels: collector},
		{Name: collectorLostP, Type: Counter, Help: "Packets in those records.", Labels: collector},
		{Name: collectorUnsure, Type: Counter, Help: "Flow records that were on their way over TCP or TLS when a " +
			"connection broke off: some may be missing at the collector, some be there twice.",
			Labels: collector},
		{Name: collectorWaits, Type: Gauge, Help: "Flow records that the host of a collector over TCP or TLS has not " +
			"confirmed yet.", Labels: collector},
		{Name: collectorSince, Type: Gauge, Help: "When counting of lost records began, in seconds since 1970.",
			Labels: collector, Lazy: true},
		{Name: collectorLast, Type: Gauge,
			Help: "When a record for the collector was lost last, in seconds since 1970.", Labels: collector,
			Lazy: true},
	}
}

// time adds a gauge with a time in Unix seconds, unless the time is zero.
func (s *series) time(name string, at time.Time, labels []*dto.LabelPair) {
	if !at.IsZero() {
		s.gauge(name, float64(at.UnixMilli())/1000, labels)
	}
}

// flows adds the metrics of a switch's flows.
func (s *series) flows(sw *api.FlowSwitch) {
	labels := newLabels([]string{"switch"}, sw.Switch)
	s.gauge(flowEntries, float64(sw.Flows), labels)
	s.gauge(flowCapacity, float64(sw.MaxFlows), labels)
	s.count(flowCounted, sw.Counted.Packets, labels)
	s.count(flowRecords, sw.Records, labels)
	s.count(flowOverflow, sw.Overflow.Packets, labels)
	for _, l := range sw.Losses {
		s.count(flowNotRecorded, l.Packets, newLabels([]string{"switch", "point"}, sw.Switch, l.Port))
	}
	for _, c := range sw.Collectors {
		labels := newLabels([]string{"switch", "collector"}, sw.Switch, c.Collector)
		s.gauge(collectorUp, bit(c.State == api.CollectorSending), with1(labels, "state", c.State))
		s.count(collectorSent, c.Records, labels)
		s.count(collectorLost, c.Lost, labels)
		s.count(collectorLostP, c.LostPackets, labels)
		s.count(collectorUnsure, c.Unsure, labels)
		s.gauge(collectorWaits, float64(c.Waiting), labels)
		s.time(collectorSince, c.LostSince, labels)
		s.time(collectorLast, c.LastLost, labels)
	}
}
