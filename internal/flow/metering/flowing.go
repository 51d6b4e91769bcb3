package metering

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// Options are the fixed settings of a Runner.
type Options struct {
	Log *slog.Logger
	// Dir is where the flow tables are: they survive the agent, and need not survive the host.
	Dir string
	// Origin names the kernel's tables; see meter.Options.
	Origin string
	Source flow.Source
	// Locator finds the endpoints of flows that cross between hosts; flow.NoLocator when nil.
	Locator flow.Locator
	// Retire, unless nil, is called before the last drain.
	Retire func() error
	// Export begins the export of a switch's records.
	Export func(now meter.Instant, sw string, x plan.IPFIX) Collectors
	// Every is how often the kernel's tables are drained at least; 1 s when 0. See meter.Options.
	Every time.Duration
}

// Collectors exports the records of a switch.
type Collectors interface {
	meter.Exporter
	// Configure applies other settings.
	Configure(meter.Instant, plan.IPFIX)
	// Status returns the state of the export to each collector, in the order of the configuration. Any goroutine
	// may call it.
	Status() ([]export.Status, error)
	// Close ends the export.
	Close(meter.Instant)
}

const (
	// stopWithin bounds how long the last records may take when the agent stops.
	stopWithin = 3 * time.Second
	// again is how soon a failed step is tried again.
	again = time.Second
)

// Runner runs the metering of an agent.
type Runner struct {
	o     Options
	words words
	// followed is when the loop last checked what is wanted, by meter.Instant.Up.
	followed time.Duration
	changed  chan struct{} // contains an element when something else is wanted
	stop     chan struct{}
	done     chan struct{}

	wishes sync.Mutex
	wanted map[string]demand // of the active plan, by switch; replaced as a whole

	// mu is held by the loop while it changes the fields below, and by readers; never for long.
	mu      sync.Mutex
	meter   *meter.Meter // nil until it could be opened
	kept    map[string]*switchMeter
	exports map[string]Collectors // of those switches in the plan that were ever metered
	failure error                 // why metering does not work, nil when it does
	begun   bool                  // a drain has succeeded
}

// Start begins; nothing is metered before Settled gets a plan.
func Start(o Options) *Runner {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Locator == nil {
		o.Locator = flow.NoLocator{}
	}
	r := &Runner{o: o, words: newWords(o.Locator), changed: make(chan struct{}, 1), stop: make(chan struct{}),
		done: make(chan struct{}),
		kept: map[string]*switchMeter{}, exports: map[string]Collectors{}}
	go r.run()
	return r
}

// Settled applies the settings of the active plan. portGroups are the names of each switch's port groups, including
// those without a port. left are the ports whose guests have left this host: their flows end, and what the guests send
// and receive from then on is counted where they run (S79). It does not block.
func (r *Runner) Settled(p *plan.Plan, portGroups map[string][]string, left map[plan.PortID]bool) {
	wanted := map[string]demand{}
	for _, sw := range p.Switches {
		wanted[sw.Name] = demand{sw.IPFIX, metered(sw, func(m plan.Monitoring) bool { return m.IPFIX.V }),
			metered(sw, plan.Monitoring.Ingress), leftOf(sw, left),
			membersOf(sw), portGroups[sw.Name]}
	}
	r.wishes.Lock()
	same := r.wanted != nil && maps.EqualFunc(r.wanted, wanted, func(a, b demand) bool {
		return maps.Equal(a.metered, b.metered) && maps.Equal(a.left, b.left) && a.settings.Equal(b.settings)
	})
	r.wanted = wanted
	r.wishes.Unlock()
	if same {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// metered are the ports and uplinks of the switch, and its tunnel, whose monitoring fulfils such.
func metered(sw *plan.Switch, such func(plan.Monitoring) bool) map[plan.PortID]bool {
	all := map[plan.PortID]bool{}
	for _, p := range sw.Ports {
		if such(p.Policy.Monitoring) {
			all[p.ID] = true
		}
	}
	for _, u := range sw.Uplinks {
		if such(u.Monitoring) {
			all[u.ID] = true
		}
	}
	if t := sw.Tunnel; t != nil && such(t.Monitoring) {
		all[t.ID] = true
	}
	return all
}

// leftOf are those of the ports that belong to the switch.
func leftOf(sw *plan.Switch, left map[plan.PortID]bool) map[plan.PortID]bool {
	own := map[plan.PortID]bool{}
	for id := range left {
		if id.Switch == sw.Name {
			own[id] = true
		}
	}
	return own
}

// Close drains the counts from the kernel, reports every flow, sends the records, and ends.
func (r *Runner) Close() error {
	close(r.stop)
	<-r.done
	return nil
}

// run is the loop.
func (r *Runner) run() {
	defer close(r.done)
	var due <-chan time.Time // nil while no flows are stored
	for {
		changed := false
		select {
		case <-r.stop:
			r.fail(r.end())
			return
		case <-r.changed:
			changed = true
		case <-due:
		}
		wait, err := r.turn(changed)
		r.fail(err)
		due = nil
		if wait >= 0 {
			due = time.After(wait)
		}
	}
}

// fail records what prevents metering, and logs it once.
func (r *Runner) fail(err error) {
	r.mu.Lock()
	before := r.failure
	r.failure = err
	r.mu.Unlock()
	if err != nil && (before == nil || before.Error() != err.Error()) {
		r.o.Log.Error("flows", "err", err)
	}
}

// turn does the work that is due, and returns after what time the next turn is; below 0: when it is woken.
func (r *Runner) turn(changed bool) (time.Duration, error) {
	m, err := r.open()
	if err != nil {
		return again, err
	}
	now, err := meter.Now()
	if err != nil {
		return again, err
	}
	var errConfigure error
	if configure := changed || r.failure != nil; configure || now.Up-r.followed >= r.o.Every {
		errConfigure, r.followed = r.follow(m, now, configure), now.Up
	}
	if r.begun && len(r.kept) == 0 && flows(m) == 0 {
		return -1, errConfigure
	}
	wait, err := m.Step(now) // the first also drains what was counted for an earlier agent
	r.begun = r.begun || err == nil
	r.endPorts(m, now)
	if err = errors.Join(errConfigure, err); err != nil {
		wait = max(wait, again)
	}
	return wait, err
}

// open continues with the existing tables, the first time.
func (r *Runner) open() (*meter.Meter, error) {
	if r.meter != nil {
		return r.meter, nil
	}
	m, err := meter.New(meter.Options{Dir: r.o.Dir, Origin: r.o.Origin, Source: r.o.Source, Log: r.o.Log,
		Every: r.o.Every})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.meter = m
	r.mu.Unlock()
	return m, nil
}

func flows(m *meter.Meter) (n int) {
	for _, s := range m.Statistics() {
		n += s.Flows
	}
	return n
}

// follow makes the meter store the wanted flows. The flows of a switch that is no longer metered are ended once their
// counts have been drained from the kernel. configure: even if no switch was removed.
func (r *Runner) follow(m *meter.Meter, now meter.Instant, configure bool) error {
	left, wanted := m.Statistics(), r.demands()
	var gone []*switchMeter
	for name, w := range wanted {
		k := r.kept[name]
		if k == nil && (len(w.metered) > 0 || left[name].Flows > 0) {
			k = &switchMeter{settings: w.settings, export: r.export(now, name, w.settings),
				leaving: map[plan.PortID]time.Duration{}}
			r.keep(name, k)
			configure = true
		}
		if k == nil {
			continue
		}
		if !k.settings.Equal(w.settings) {
			k.settings = w.settings
			k.export.Configure(now, w.settings)
		}
		k.meter(w.metered, w.left, now)
	}
	for name, k := range r.kept {
		switch {
		case len(wanted[name].metered) > 0:
			k.leaves = 0
		case k.leaves == 0:
			k.leaves = now.Up
		case now.Up >= k.leaves+2*r.o.Every: // a drain has begun since
			gone, configure = append(gone, k), true
			r.keep(name, nil)
		}
	}
	if !configure {
		return nil
	}
	err := m.Configure(now, r.settings())
	for _, k := range gone {
		k.export.Close(now)
	}
	r.forget(wanted)
	return err
}

// end reports every flow one last time.
func (r *Runner) end() error {
	if r.meter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	var err error
	if r.o.Retire != nil {
		err = r.o.Retire()
	}
	if len(r.kept) > 0 || flows(r.meter) > 0 {
		err = errors.Join(err, r.meter.Stop(ctx, meter.Now))
	}
	now, late := meter.Now()
	for _, k := range r.kept {
		k.export.Close(now)
	}
	return errors.Join(err, late)
}
