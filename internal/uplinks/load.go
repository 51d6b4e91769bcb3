package uplinks

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/teaming/loadbalance"
)

// LoadOptions change load-based teaming, for labs.
type LoadOptions struct {
	// Window is how long the load is measured before ports move; 0 is loadbalance.Interval.
	Window time.Duration
	// Speed replaces every uplink's speed, in bits per second; 0: the speed that the device reports.
	Speed float64
}

// assumedSpeed is the speed of a device that does not report one, in bits per second.
const assumedSpeed = 10e9

// Meter measures the load; it is used only in the loop.
type Meter interface {
	// Applied returns the active plan, nil before there is one.
	Applied() *binding.Desired
	Counters() (map[plan.PortID]observe.Counters, error)
	// Speed returns the speed of a device in bits per second, 0 if it does not report one.
	Speed(device string) float64
	// Complain reports a failure once.
	Complain(what string, err error)
}

// Load moves ports off loaded uplinks (S47, S48). It only assigns uplinks to ports: forming the teams and announcing
// the ports is done as after any other change.
type Load struct {
	host   Host
	meter  Meter
	o      LoadOptions
	window loadbalance.Window[plan.PortID] // in the loop only
	done   chan struct{}
	ticks  sync.WaitGroup
}

// NewLoad returns a Load that balances when Balance is called; after Start that happens at the end of every window.
func NewLoad(h Host, m Meter, o LoadOptions) *Load {
	o.Window = cmp.Or(o.Window, loadbalance.Interval)
	return &Load{host: h, meter: m, o: o, done: make(chan struct{})}
}

// Start starts to measure.
func (p *Load) Start() { p.ticks.Go(func() { p.host.every(p.o.Window, p.done, p.Balance) }) }

// Close ends the measurement.
func (p *Load) Close() error {
	close(p.done)
	p.ticks.Wait()
	return nil
}

// Settled removes the assignments of ports that are gone or that have another teaming policy now.
func (p *Load) Settled(now InForce) {
	p.host.Memory.Assigned = slices.DeleteFunc(p.host.Memory.Assigned, func(s memory.Assignment) bool {
		port := now.Plan.Port(s.ID)
		_, connected := now.Facts[s.ID]
		return !connected || port == nil || !memory.MayHave(port, s.Uplink)
	})
}

// Balance ends a window and moves ports; it runs in the loop.
func (p *Load) Balance(now time.Time) {
	inForce := p.meter.Applied()
	if inForce == nil || !slices.ContainsFunc(inForce.Plan.Switches, balanced) {
		p.window.Forget()
		return
	}
	counters, err := p.meter.Counters()
	if err != nil {
		p.meter.Complain("read the load of the uplinks", err)
		return
	}
	rates, ok := p.window.Next(now, traffic(inForce.Plan, counters), p.o.Window)
	if !ok {
		return
	}
	moved := false
	for _, sw := range inForce.Plan.Switches {
		if !balanced(sw) {
			continue
		}
		for _, m := range loadbalance.Balance(p.uplinks(inForce, sw, rates), p.ports(inForce, sw, rates)) {
			p.host.Memory.Assign(plan.PortID{Switch: sw.Name, Name: m.Port}, m.To)
			p.host.Log.Info("a port moves off a loaded uplink", "switch", sw.Name, "port", m.Port, "from", m.From, "to",
				m.To, "load", fmt.Sprintf("%.0f %%", m.Load))
			moved = true
		}
	}
	if moved {
		p.host.Settle()
	}
}

// balanced reports whether a switch has a port with load-based teaming.
func balanced(sw *plan.Switch) bool {
	return slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.Policy.Teaming.Policy.V == spec.LoadBased })
}

// traffic returns the bytes that the uplinks of a plan carried, and that its ports sent and received through uplinks.
func traffic(p *plan.Plan, counters map[plan.PortID]observe.Counters) map[plan.PortID]loadbalance.Bytes {
	out := make(map[plan.PortID]loadbalance.Bytes, len(counters))
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			c := counters[u.ID]
			var b loadbalance.Bytes
			for class := range c.BytesIn {
				b.In += c.BytesIn[class]
				b.Out += c.BytesOut[class]
			}
			out[u.ID] = b
		}
		for _, port := range sw.Ports {
			c := counters[port.ID]
			out[port.ID] = loadbalance.Bytes{In: c.BytesInFromPnic, Out: c.BytesOutToPnic}
		}
	}
	return out
}

// uplinks returns the usable uplinks of a switch with their load.
func (p *Load) uplinks(now *binding.Desired, sw *plan.Switch, rates map[plan.PortID]loadbalance.Rate) (
	list []loadbalance.Uplink) {
	for _, u := range sw.Uplinks {
		r, known := rates[u.ID]
		if f, ok := now.Facts[u.ID]; known && ok && u.Usable(f) {
			list = append(list, loadbalance.Uplink{Name: u.ID.Name, Speed: p.speed(u.Device), In: r.In, Out: r.Out})
		}
	}
	return list
}

// speed returns the speed of a device in bits per second.
func (p *Load) speed(device string) float64 {
	if p.o.Speed > 0 {
		return p.o.Speed
	}
	if bits := p.meter.Speed(device); bits > 0 {
		return bits
	}
	return assumedSpeed
}

// ports returns the ports that may move, each with the uplink it uses and those it may use.
func (p *Load) ports(now *binding.Desired, sw *plan.Switch, rates map[plan.PortID]loadbalance.Rate) (
	list []loadbalance.Port) {
	for _, port := range sw.Ports {
		f, ok := now.Facts[port.ID]
		r, known := rates[port.ID]
		use := compile.UplinksInUse(*now, sw, port)
		if !ok || !known || port.Policy.Teaming.Policy.V != spec.LoadBased || len(use) != 1 {
			continue
		}
		x := loadbalance.Port{Name: port.ID.Name, Uplink: use[0], In: r.In, Out: r.Out}
		for _, name := range port.Policy.Teaming.Active.V {
			u := sw.Uplink(name)
			at, ok := now.Facts[plan.PortID{Switch: sw.Name, Name: name}]
			if ok && u != nil && u.Usable(at) && !slices.Contains(f.Resting, name) {
				x.Choices = append(x.Choices, name)
			}
		}
		list = append(list, x)
	}
	return list
}
