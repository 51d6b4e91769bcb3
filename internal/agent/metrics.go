package agent

import (
	"context"

	"heddle/internal/agent/metrics"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// openMetrics makes the metrics, and opens their listener if one is configured.
func (a *Agent) openMetrics(o Options) (err error) {
	a.meters = metrics.NewAgent()
	if a.answers.registry, err = metrics.NewHost(a.service(), a.meters, a.name, a.version, a.kernel.MACTable(),
		a.started); err != nil {
		return err
	}
	if o.Metrics.Address == "" {
		return nil
	}
	if a.scrapes, err = o.Metrics.Open(); err != nil {
		return err
	}
	a.closers = append(a.closers, func() error { _ = a.scrapes.Close(); return nil }) // the server may have closed it
	return nil
}

// serveMetrics answers scrapes until ctx ends. If it can't, the agent continues: the switch is more important.
func (a *Agent) serveMetrics(ctx context.Context, o Options) error {
	if a.scrapes == nil {
		return nil
	}
	a.log.Info("metrics are served", "at", a.scrapes.Addr().String())
	if err := metrics.Serve(ctx, a.scrapes, o.Metrics.Guard(metrics.Handler(a.answers.registry, a.log)),
		a.log); err != nil {
		a.log.Error("serve metrics", "err", err)
	}
	return nil
}

// Metrics returns all metrics in Prometheus' text format.
func (an *answers) Metrics(context.Context) (string, error) { return metrics.Text(an.registry) }

// Sample implements metrics.Source. The loop gives the state it has; the kernel is read outside the loop.
func (an *answers) Sample(ctx context.Context) (ports []metrics.Port, switches []string, err error) {
	var before *dataplane.CounterReader
	var base map[plan.PortID]observe.Base
	at := map[plan.PortID]uint32{}
	err = an.Do(ctx, func() error {
		ports, switches = an.samplePorts()
		before, base = an.kernel.CounterReader(), an.state.Bases()
		for id, x := range an.Active().Applied.Attachments {
			at[id] = x.Ifindex
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	var lost map[uint32]hostdev.Losses
	if an.losses != nil {
		if lost, err = an.losses.All(); err != nil {
			return nil, nil, err
		}
	}
	read := ports[:0]
	for _, p := range ports {
		if !before.Has(p.ID) { // its plan is not active yet
			continue
		}
		if p.Counters, err = before.Read(p.ID); err != nil {
			return nil, nil, err
		}
		p.Counters = base[p.ID].With(p.Counters)
		if index, connected := at[p.ID]; connected {
			p.Lost = lost[index]
		}
		read = append(read, p)
	}
	read, err = unmoved(ctx, an.shared, counting{reader: before}, read, func(p metrics.Port) plan.PortID {
		return p.ID
	})
	return read, switches, err
}

// samplePorts returns the loop's state of every port and uplink.
func (an *answers) samplePorts() (ports []metrics.Port, switches []string) {
	src := an.source()
	for _, sw := range an.Active().Plan.Switches {
		switches = append(switches, sw.Name)
		for _, u := range sw.Uplinks {
			state, _ := src.UplinkState(u)
			ports = append(ports, metrics.Port{ID: u.ID, Uplink: true, State: state})
		}
		if t := sw.Tunnel; t != nil {
			state, _ := src.StateOf(t.ID, false)
			ports = append(ports, metrics.Port{ID: t.ID, Uplink: true, State: state})
		}
		for _, p := range sw.Ports {
			state, _ := src.StateOf(p.ID, p.Policy.Blocked.V)
			m := metrics.Port{ID: p.ID, PortGroup: p.PortGroup, State: state}
			if l := p.Policy.Learning; l.Enabled.V {
				m.MACLimit = l.Limit.V
			}
			ports = append(ports, m)
		}
	}
	return ports, switches
}
