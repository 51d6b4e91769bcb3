package flowing

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/meter"
	"heddle/internal/meter/export"
	"heddle/internal/plan"
)

// exporter sends the records of a switch to the collectors that the plan names. One goroutine uses it, but for Status.
type exporter struct {
	sw   string // and its host, as collectors are told
	log  *slog.Logger
	last export.Config

	mu   sync.Mutex
	now  *export.Exporter // nil while it is closed, and where it could not be made
	err  error
	past []export.Status // of exports that have ended: a collector's counts go on
}

// Exporters make what sends the records of a switch: with host, the name of this host, collectors are told whose they are.
func Exporters(host string, log *slog.Logger) func(now meter.Instant, sw string, x plan.IPFIX) Collectors {
	return func(now meter.Instant, sw string, x plan.IPFIX) Collectors {
		e := &exporter{sw: "switch " + sw + " on " + host, log: log.With("switch", sw)}
		e.Configure(now, x)
		return e
	}
}

// config is what the plan asks for.
func (e *exporter) config(x plan.IPFIX) export.Config {
	c := export.Config{Domain: x.ObservationDomain, DomainName: e.sw, MTU: x.MTU, TemplateEvery: x.TemplateEvery, TemplateMessages: x.TemplatePackets, Log: e.log}
	if a, err := netip.ParseAddr(x.SwitchAddress); err == nil {
		c.Source = a
	}
	for _, to := range x.Collectors {
		c.Collectors = append(c.Collectors, export.Collector{Address: to.Address, Port: to.Port, Shape: export.Shape(to.Shape)})
	}
	return c
}

// Configure takes over other settings. Where they are about the export, its sessions begin anew.
func (e *exporter) Configure(now meter.Instant, x plan.IPFIX) {
	c := e.config(x)
	if e.now != nil && sameExport(c, e.last) {
		return
	}
	e.Close(now)
	next, err := export.New(now, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err, e.last = err, c
	if err == nil {
		e.now = next
	}
}

func sameExport(a, b export.Config) bool {
	return slices.Equal(a.Collectors, b.Collectors) && a.Domain == b.Domain && a.Source == b.Source && a.MTU == b.MTU &&
		a.TemplateEvery == b.TemplateEvery && a.TemplateMessages == b.TemplateMessages
}

// Budget implements meter.Exporter.
func (e *exporter) Budget(now meter.Instant) int {
	if e.now == nil {
		return 1 << 20
	}
	return e.now.Budget(now)
}

// Export implements meter.Exporter.
func (e *exporter) Export(now meter.Instant, points flow.Points, records []flow.Record) {
	if e.now != nil {
		e.now.Export(now, points, records)
	}
}

// Tick implements meter.Exporter.
func (e *exporter) Tick(now meter.Instant, state func() meter.State) {
	if e.now != nil {
		e.now.Tick(now, state)
	}
}

// Status says how the export to each collector does, and what keeps it from being made.
func (e *exporter) Status() ([]export.Status, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now == nil {
		return slices.DeleteFunc(slices.Clone(e.past), func(s export.Status) bool { return !slices.Contains(e.last.Collectors, s.Collector) }), e.err
	}
	all := e.now.Status()
	for i := range all {
		for k := range e.past {
			if e.past[k].Collector == all[i].Collector {
				addStatus(&all[i], &e.past[k])
			}
		}
	}
	return all, nil
}

// addStatus adds the counts of an export that has ended.
func addStatus(to, past *export.Status) {
	to.Messages, to.Octets, to.Records, to.Unshaped = to.Messages+past.Messages, to.Octets+past.Octets, to.Records+past.Records, to.Unshaped+past.Unshaped
	to.Lost.Records, to.Lost.Packets, to.Lost.Bytes = to.Lost.Records+past.Lost.Records, to.Lost.Packets+past.Lost.Packets, to.Lost.Bytes+past.Lost.Bytes
}

// closed is the state of a collector while nothing is metered.
const closed export.State = api.CollectorClosed

// Close ends the sessions. What was counted of each collector stays.
func (e *exporter) Close(now meter.Instant) {
	if e.now == nil {
		return
	}
	e.now.Close(now)
	all, _ := e.Status() // fails only without an export
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range all {
		all[i].State, all[i].Since = closed, now.Wall
	}
	for _, s := range e.past { // of a collector that is named again some day
		if !slices.ContainsFunc(all, func(t export.Status) bool { return t.Collector == s.Collector }) && len(all) < mostPast {
			all = append(all, s)
		}
	}
	e.now, e.past = nil, all
}

// mostPast bounds how many collectors are remembered.
const mostPast = 64
