package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Port is the state and the counters of a port or an uplink in a scrape.
type Port struct {
	ID        plan.PortID
	PortGroup string
	Uplink    bool
	State     api.PortState
	Counters  observe.Counters
	// MACLimit is how many MACs the port may learn; 0 without MAC learning.
	MACLimit int
	Lost     hostdev.Losses
}

// Source is asked once a scrape, from any goroutine.
type Source interface {
	// Sample returns every port and uplink, each once, and the names of the switches.
	Sample(context.Context) (ports []Port, switches []string, err error)
	// SampleNeighbours returns what was counted of ARP and ND on each switch whose tunnel answers.
	SampleNeighbours(context.Context) ([]Neighbours, error)
	// FlowStatus returns the state of metering and export.
	FlowStatus(context.Context) (*api.FlowStatus, error)
	// NetworkHealth returns what the health check has found.
	NetworkHealth(context.Context) (*api.HostHealth, error)
}

// sampleWait bounds how long a scrape waits for an agent that is busy.
const sampleWait = 8 * time.Second

// Host gathers all metrics of an agent. The ports' metrics bypass the registry, which would check each of their tens of
// thousands of series for faults that they cannot have: that takes several times as long as everything else.
type Host struct {
	source   Source
	agent    *Agent
	registry *prometheus.Registry
	info     [][]*dto.LabelPair
	started  time.Time
	macTable int // how many learned MACs the host can hold

	mu    sync.Mutex
	known map[string]bool // the switches that have series in the agent's counters
}

// NewHost makes the metrics of an agent of that name and version, which started at that time: those of Families, and
// those of a Go program (go_…) and a process (process_…). macTable is the number of learned MACs that the host can
// hold.
func NewHost(source Source, agent *Agent, name, version string, macTable int, started time.Time) (*Host, error) {
	h := &Host{source: source, macTable: macTable, agent: agent, registry: prometheus.NewRegistry(), started: started,
		info: [][]*dto.LabelPair{newLabels([]string{"agent", "version"}, name, version)}}
	for _, c := range append(goProgram(), agent.apply, agent.failures, agent.failovers) {
		if err := h.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Gather reads the host (prometheus.Gatherer). If that fails, the scrape fails with the same error.
func (h *Host) Gather() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sampleWait)
	defer cancel()
	ports, switches, err := h.source.Sample(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the host: %w", err)
	}
	neighbours, err := h.source.SampleNeighbours(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who has which address: %w", err)
	}
	flows, err := h.source.FlowStatus(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the state of metering: %w", err)
	}
	network, err := h.source.NetworkHealth(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what the health check has found: %w", err)
	}
	h.mu.Lock()
	h.known = h.agent.forget(h.known, switches)
	h.mu.Unlock()
	rest, err := h.registry.Gather()
	if err != nil {
		return nil, err
	}
	all := newSeries(len(ports))
	all.gauge(agentInfo, 1, h.info[0])
	all.gauge(agentStart, float64(h.started.UnixMilli())/1000, nil)
	all.gauge(macCapacity, float64(h.macTable), nil)
	for i := range ports {
		all.port(&ports[i])
	}
	for i := range neighbours {
		all.neighbours(&neighbours[i])
	}
	for i := range flows.Switches {
		all.flows(&flows.Switches[i])
	}
	all.network(network)
	return all.families(rest), nil
}

// port adds the metrics of a port or uplink.
func (s *series) port(p *Port) {
	labels := newLabels(portLabels, p.ID.Switch, p.ID.Name, p.PortGroup)
	prefix, up := "heddle_port_", portUp
	if p.Uplink {
		prefix, up, labels = "heddle_uplink_", uplinkUp, newLabels(uplinkLabels, p.ID.Switch, p.ID.Name)
	}
	s.gauge(up, bit(p.State == api.Up), with1(labels, "state", string(p.State)))
	c := &p.Counters
	s.classes(prefix+received, labels, &c.PacketsIn)
	s.count(prefix+receivedBytes, total(&c.BytesIn), labels)
	s.classes(prefix+sent, labels, &c.PacketsOut)
	s.count(prefix+sentBytes, total(&c.BytesOut), labels)
	s.count(prefix+delivered, c.Delivered, labels)
	s.reasons(prefix+dropped, labels, c.Drops)
	s.reasons(prefix+refused, labels, c.Refused)
	s.losses(prefix+deviceLost, labels, p.Lost)
	if p.Uplink {
		return
	}
	if p.MACLimit > 0 {
		s.gauge(macLimit, float64(p.MACLimit), labels)
	}
	s.gauge(macEntries, float64(c.MACsHeld), labels)
	s.count(macMoves, c.MACMoves, labels)
	s.count(macOver, c.MACNotLearnedAllowed, labels)
	s.count(unknownFlooded, c.UnknownFlooded, labels)
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func total(classes *[abi.Classes]uint64) (n uint64) {
	for _, c := range classes {
		n += c
	}
	return n
}
