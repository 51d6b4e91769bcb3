package metering

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/meter"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// exporter sends the records of a switch to the collectors that the plan names. One goroutine uses it; any goroutine
// may call Status.
type exporter struct {
	o        ExportOptions
	sw       string // its name
	log      *slog.Logger
	last     export.Config
	lost     lost // what later exporters must not forget
	reporter reporter

	mu   sync.Mutex
	now  *export.Exporter // nil while it is closed, and if it could not be made
	err  error
	past []export.Status // of exports that have ended: a collector's counts continue
}

// ExportOptions are the options for the export of every switch.
type ExportOptions struct {
	Host string // the name of this host, which collectors get with the records
	Dir  string // of the flow tables; what collectors were not sent is stored there for the next agent
	Log  *slog.Logger
	// Locator finds the endpoints of flows that cross between hosts; flow.NoLocator when nil.
	Locator flow.Locator
	// Publish gets the changes of a collector's state.
	Publish func(event.Event)
}

// Exporters returns a function that makes the exporter of a switch.
func Exporters(o ExportOptions) func(now meter.Instant, sw string, x plan.IPFIX) Collectors {
	return func(now meter.Instant, sw string, x plan.IPFIX) Collectors {
		e := &exporter{o: o, sw: sw, log: o.Log.With("switch", sw), reporter: newReporter(sw, o.Publish)}
		var err error
		if e.lost, err = readLost(o.Dir, sw); err != nil {
			e.log.Warn("what flow collectors were not sent before is not known", "err", err)
		}
		e.Configure(now, x)
		return e
	}
}

// config is the configuration according to the plan.
func (e *exporter) config(x plan.IPFIX) export.Config {
	c := export.Config{TLS: map[export.Collector]export.TLS{}, Domain: x.ObservationDomain, DomainName: "switch " +
		e.sw + " on " + e.o.Host, Lost: e.lost.of, Counted: e.lost.counted, MTU: x.MTU, Locator: e.o.Locator,
		TemplateEvery:    x.TemplateEvery,
		TemplateMessages: x.TemplatePackets, Log: e.log}
	if a, err := netip.ParseAddr(x.SwitchAddress); err == nil {
		c.Source = a
	}
	for _, to := range x.Collectors {
		k := export.Collector{Address: to.Address, Port: to.Port, Shape: export.Shape(to.Shape),
			Transport: transport(to)}
		c.Collectors = append(c.Collectors, k)
		if k.Transport == export.OverTLS {
			c.TLS[k] = export.TLS(to.TLS)
		}
	}
	return c
}

// Configure applies other settings. If they concern the export, its sessions begin anew.
func (e *exporter) Configure(now meter.Instant, x plan.IPFIX) {
	c := e.config(x)
	if e.now != nil && sameExport(c, e.last) {
		return
	}
	e.Close(now)
	c.Lost = e.lost.of // with what was lost until now
	next, err := export.New(now, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err, e.last = err, c
	if err == nil {
		e.now = next
	}
}

// transport is how messages get to a collector.
func transport(to plan.Collector) export.Transport {
	return export.Transport(cmp.Or(to.Transport, spec.TransportUDP))
}

// nameOf is a collector's name in the words of the configuration.
func nameOf(c export.Collector) string {
	return plan.Collector{Address: c.Address, Port: c.Port, Transport: spec.Transport(c.Transport)}.String()
}

func sameExport(a, b export.Config) bool {
	return slices.Equal(a.Collectors, b.Collectors) && maps.Equal(a.TLS, b.TLS) && a.Domain == b.Domain &&
		a.Source == b.Source && a.MTU == b.MTU &&
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
		e.note(now)
	}
}

// note saves what collectors were not sent, and reports changes of their states.
func (e *exporter) note(now meter.Instant) {
	all := e.now.Status()
	if err := e.lost.note(all); err != nil {
		e.log.Warn("what flow collectors were not sent is forgotten if the agent is killed", "err", err)
	}
	e.reporter.report(all, now.Wall)
}

// Status returns the state of the export to each collector, or the error that prevents the export.
func (e *exporter) Status() ([]export.Status, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now == nil {
		return slices.DeleteFunc(slices.Clone(e.past), func(s export.Status) bool {
			return !slices.Contains(e.last.Collectors, s.Collector)
		}), e.err
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

// addStatus adds the counts of an export that has ended, except for losses, which were handed on.
func addStatus(to, past *export.Status) {
	to.Messages, to.Octets, to.Records, to.Unshaped = to.Messages+past.Messages, to.Octets+past.Octets, to.Records+
		past.Records, to.Unshaped+past.Unshaped
	to.Unsure.Add(past.Unsure)
}

// closed is the state of a collector while nothing is metered.
const closed export.State = api.CollectorClosed

// Close ends the sessions. The counts of each collector stay.
func (e *exporter) Close(now meter.Instant) {
	if e.now == nil {
		return
	}
	e.now.Close(now)
	e.note(now)
	e.reporter.forget()
	all, _ := e.Status() // fails only without an export
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range all {
		all[i].State, all[i].Since, all[i].Why = closed, now.Wall, ""
	}
	for _, s := range e.past { // of a collector that may be named again later
		if !slices.ContainsFunc(all, func(t export.Status) bool { return t.Collector == s.Collector }) &&
			len(all) < mostPast {
			all = append(all, s)
		}
	}
	e.now, e.past = nil, all
}

// mostPast limits how many collectors are remembered.
const mostPast = 64
