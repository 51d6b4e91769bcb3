package metering

import (
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// demand is what the plan demands for a switch.
type demand struct {
	settings plan.IPFIX
	metered  map[plan.PortID]bool // ports and uplinks
	ingress  map[plan.PortID]bool // those of them where incoming frames are metered
	left     map[plan.PortID]bool // ports whose guests have left this host
	places   map[plan.PortID]member
	groups   []string // all port groups, including those without a port
}

// switchMeter is a switch whose flows are stored. Only the loop uses it, except for the export.
type switchMeter struct {
	settings plan.IPFIX
	export   Collectors
	// leaves is when metering was switched off, by meter.Instant.Up; 0 while it is on. Counts from before that may
	// still come.
	leaves time.Duration
	// metered are the ports and uplinks whose flows are stored, left those of them whose guests have left this host.
	// leaving are those that are no longer metered or were left, whose flows have not ended yet, with the time since
	// when.
	metered map[plan.PortID]bool
	left    map[plan.PortID]bool
	leaving map[plan.PortID]time.Duration
}

func (r *Runner) demands() map[string]demand {
	r.wishes.Lock()
	defer r.wishes.Unlock()
	return r.wanted
}

// keep records that a switch's flows are stored or, with nil, no longer.
func (r *Runner) keep(name string, k *switchMeter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k == nil {
		delete(r.kept, name)
		return
	}
	r.kept[name], r.exports[name] = k, k.export
}

// forget drops the exports of switches that no longer exist.
func (r *Runner) forget(wanted map[string]demand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.exports {
		if _, planned := wanted[name]; !planned && r.kept[name] == nil {
			delete(r.exports, name)
		}
	}
}

// export begins the export of a switch's records, or continues the previous one.
func (r *Runner) export(now meter.Instant, name string, x plan.IPFIX) Collectors {
	c := r.exports[name]
	if c == nil {
		return r.o.Export(now, name, x)
	}
	c.Configure(now, x)
	return c
}

// meter updates which ports and uplinks are metered, and which ports' guests have left: the flows of such a port end,
// unless its guest is back before that is done.
func (k *switchMeter) meter(now, left map[plan.PortID]bool, at meter.Instant) {
	for id := range k.metered {
		if !now[id] {
			k.leaving[id] = at.Up
		}
	}
	for id := range now {
		switch {
		case !left[id]:
			delete(k.leaving, id)
		case !k.left[id]:
			k.leaving[id] = at.Up
		}
	}
	k.metered, k.left = now, left
}

// endPorts ends the flows of ports and uplinks that are no longer metered, and of those whose guests have left, once
// all their counts have been drained from the kernel.
func (r *Runner) endPorts(m *meter.Meter, now meter.Instant) {
	for _, k := range r.kept {
		gone := map[plan.PortID]bool{}
		for id, since := range k.leaving {
			if now.Up >= since+2*r.o.Every {
				gone[id] = true
				delete(k.leaving, id)
			}
		}
		if len(gone) > 0 {
			m.EndAt(now, func(p flow.Point) bool { return gone[p.ID] })
		}
	}
}

// settings are how the flows of each switch are stored.
func (r *Runner) settings() map[string]meter.Switch {
	all := make(map[string]meter.Switch, len(r.kept))
	for name, k := range r.kept {
		x := k.settings
		all[name] = meter.Switch{Exporter: k.export, Settings: meter.Settings{ActiveTimeout: x.ActiveTimeout,
			IdleTimeout: x.IdleTimeout,
			MaxFlows:    x.MaxFlows, Biflow: x.Biflow, InternalOnly: x.InternalOnly, Sampling: x.SamplingRate}}
	}
	return all
}
