package metrics

import "slices"

// Type is a metric's type in Prometheus.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Family is one metric.
type Family struct {
	Name   string
	Type   Type
	Help   string
	Labels []string
	// Lazy: a series appears with its first event, since each port would have one for every reason.
	Lazy bool
}

// Labels that identify a port and an uplink.
var (
	portLabels   = []string{"switch", "port", "port_group"}
	uplinkLabels = []string{"switch", "uplink"}
)

// Families returns all metrics, in the order of the reference page.
func Families() []Family {
	own := []Family{
		{Name: agentInfo, Type: Gauge, Help: "Always 1; which agent answers, and of which version.",
			Labels: []string{"agent", "version"}},
		{Name: agentStart, Type: Gauge, Help: "When the agent was started, in seconds since 1970."},
		{Name: applySeconds, Type: Histogram, Help: "How long putting a plan into the kernel took, in seconds: " +
			"changes by command, and those that links and devices ask for."},
		{Name: applyFailures, Type: Counter, Help: "Plans that could not be put into the kernel."},
		{Name: failovers, Type: Counter, Help: "How often ports, or a bond, went over to other uplinks.",
			Labels: []string{"switch"}},
		{Name: macCapacity, Type: Gauge,
			Help: "The most learned MAC addresses that the host can hold, of all switches."},
		{Name: portUp, Type: Gauge, Help: "1 when frames pass the port, 0 when not; the port's state is the label.",
			Labels: with(portLabels, "state")},
	}
	own = append(own, neighbourFamilies()...)
	own = append(own, traffic("heddle_port_", "port", portLabels)...)
	own = append(own,
		Family{Name: macEntries, Type: Gauge, Help: "Learned MAC addresses the port holds.", Labels: portLabels},
		Family{Name: macLimit, Type: Gauge, Help: "How many it may hold; absent without MAC learning.",
			Labels: portLabels},
		Family{Name: macMoves, Type: Counter, Help: "Learned MAC addresses that came to this port from another.",
			Labels: portLabels},
		Family{Name: macOver, Type: Counter, Help: "Frames passed although the port was at its limit and their " +
			"source could not be learned.", Labels: portLabels},
		Family{Name: unknownFlooded, Type: Counter, Help: "Unicast frames from the port to unknown destinations, of " +
			"which other ports got copies.", Labels: portLabels},
		Family{Name: uplinkUp, Type: Gauge, Help: "1 when frames pass the uplink, 0 when not; the uplink's state is " +
			"the label.", Labels: with(uplinkLabels, "state")})
	return slices.Concat(own, traffic("heddle_uplink_", "uplink", uplinkLabels), flowFamilies(), networkFamilies())
}

// Names of the metrics that are not about a port's or an uplink's traffic.
const (
	agentInfo     = "heddle_agent_info"
	agentStart    = "heddle_agent_start_time_seconds"
	applySeconds  = "heddle_agent_apply_duration_seconds"
	applyFailures = "heddle_agent_apply_failures_total"
	failovers     = "heddle_failovers_total"
	macCapacity   = "heddle_mac_capacity"
	macEntries    = "heddle_port_mac_entries"
	macLimit      = "heddle_port_mac_limit"
	macMoves      = "heddle_port_mac_moves_total"
	macOver       = "heddle_port_mac_not_learned_total"

	unknownFlooded = "heddle_port_unknown_unicast_flooded_total"
	portUp         = "heddle_port_up"
	uplinkUp       = "heddle_uplink_up"
)

// Suffixes of the metrics that ports and uplinks have in common.
const (
	received      = "received_frames_total"
	receivedBytes = "received_bytes_total"
	sent          = "sent_frames_total"
	sentBytes     = "sent_bytes_total"
	delivered     = "delivered_frames_total"
	dropped       = "dropped_frames_total"
	refused       = "refused_copies_total"
	deviceLost    = "device_lost_frames_total"
)

func traffic(prefix, what string, labels []string) []Family {
	return []Family{
		{Name: prefix + received, Type: Counter, Help: "Frames received from the " + what +
			" into the switch, by class of destination.", Labels: with(labels, "class")},
		{Name: prefix + receivedBytes, Type: Counter, Help: "Their bytes, with tags, without checksum.",
			Labels: labels},
		{Name: prefix + sent, Type: Counter, Help: "Copies of frames handed to the " + what +
			"'s device, by class of destination.", Labels: with(labels, "class")},
		{Name: prefix + sentBytes, Type: Counter, Help: "Their bytes, with tags, without checksum.", Labels: labels},
		{Name: prefix + delivered, Type: Counter, Help: "Frames received from the " + what +
			" of which at least one copy was handed over; the others were dropped.", Labels: labels},
		{Name: prefix + dropped, Type: Counter, Help: "Frames received from the " + what +
			" that went nowhere, by reason.", Labels: with(labels, "reason"), Lazy: true},
		{Name: prefix + refused, Type: Counter, Help: "Copies refused for the " + what + ", by reason.",
			Labels: with(labels, "reason"), Lazy: true},
		{Name: prefix + deviceLost, Type: Counter, Help: "Frames that the device lost by its own account, seen from " +
			"the device; not among the others. Kind rx-dropped is no loss: frames that arrived, and that no protocol " +
			"of the receiver wanted.", Labels: with(labels, "kind"), Lazy: true},
	}
}

func with(labels []string, more ...string) []string { return append(slices.Clone(labels), more...) }
