package agent

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/loadbalance"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/state"
)

// LoadOptions change load-based teaming, for labs.
type LoadOptions struct {
	// Window is how long the load is measured before ports move; 0 is loadbalance.Interval.
	Window time.Duration
	// Speed is taken as every uplink's, bits per second; 0: what its device says.
	Speed float64
}

// assumedSpeed is that of a device that does not tell its own, bits per second.
const assumedSpeed = 10e9

// loadPart moves ports off loaded uplinks (S47, S48). It only assigns them: the teams that form then, and what is announced, are as
// after any other change.
type loadPart struct {
	a      *Agent
	o      LoadOptions
	window loadbalance.Window[plan.PortID] // in the loop only
	done   chan struct{}
	ticks  sync.WaitGroup
}

func (a *Agent) followLoad(o LoadOptions) {
	o.Window = cmp.Or(o.Window, loadbalance.Interval)
	p := &loadPart{a: a, o: o, done: make(chan struct{})}
	p.ticks.Go(p.run)
	a.follow(p)
}

func (p *loadPart) run() {
	tick := time.NewTicker(p.o.Window)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			p.a.postUnless(p.done, func() { p.balance(time.Now()) })
		}
	}
}

func (p *loadPart) close() error {
	close(p.done)
	p.ticks.Wait()
	return nil
}

// settled forgets the assignments of ports that are gone or choose otherwise now.
func (p *loadPart) settled(now inForce) {
	p.a.state.Assigned = slices.DeleteFunc(p.a.state.Assigned, func(s state.Assignment) bool {
		port := now.plan.Port(s.ID)
		_, connected := now.facts[s.ID]
		return !connected || port == nil || !mayHave(port, s.Uplink)
	})
}

// mayHave says whether load-based teaming may give the port that uplink.
func mayHave(p *plan.Port, uplink string) bool {
	t := p.Policy.Teaming
	return t.Policy.V == spec.LoadBased && slices.Contains(t.Active.V, uplink)
}

// assigned is the uplink given to a port, "" for none.
func assigned(st *state.State, p *plan.Port) string {
	for _, a := range st.Assigned {
		if a.ID == p.ID && mayHave(p, a.Uplink) {
			return a.Uplink
		}
	}
	return ""
}

// balance ends a window and moves ports; it runs in the loop.
func (p *loadPart) balance(now time.Time) {
	a := p.a
	if a.applied == nil || !slices.ContainsFunc(a.applied.Plan.Switches, balanced) {
		p.window.Forget()
		return
	}
	counters, err := a.kernel.Counters()
	if err != nil {
		a.complain("read the load of the uplinks", err)
		return
	}
	rates, ok := p.window.Next(now, traffic(a.applied.Plan, counters), p.o.Window)
	if !ok {
		return
	}
	moved := false
	for _, sw := range a.applied.Plan.Switches {
		if !balanced(sw) {
			continue
		}
		for _, m := range loadbalance.Balance(p.uplinks(sw, rates), p.ports(sw, rates)) {
			a.state.Assign(plan.PortID{Switch: sw.Name, Name: m.Port}, m.To)
			a.log.Info("a port moves off a loaded uplink", "switch", sw.Name, "port", m.Port, "from", m.From, "to", m.To, "load", fmt.Sprintf("%.0f %%", m.Load))
			moved = true
		}
	}
	if moved {
		a.settle()
	}
}

// balanced says whether a switch has a port with load-based teaming.
func balanced(sw *plan.Switch) bool {
	return slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.Policy.Teaming.Policy.V == spec.LoadBased })
}

// traffic is what the uplinks of a plan had by their wires, and its ports by their uplinks.
func traffic(p *plan.Plan, counters map[plan.PortID]dataplane.Counters) map[plan.PortID]loadbalance.Bytes {
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

// uplinks are the usable uplinks of a switch with their load.
func (p *loadPart) uplinks(sw *plan.Switch, rates map[plan.PortID]loadbalance.Rate) (list []loadbalance.Uplink) {
	for _, u := range sw.Uplinks {
		r, known := rates[u.ID]
		if f, ok := p.a.applied.Facts[u.ID]; known && ok && f.Usable() {
			list = append(list, loadbalance.Uplink{Name: u.ID.Name, Speed: p.speed(u.Device), In: r.In, Out: r.Out})
		}
	}
	return list
}

// speed is that of a device, bits per second.
func (p *loadPart) speed(device string) float64 {
	if p.o.Speed > 0 {
		return p.o.Speed
	}
	if bits := p.a.dev.Speed(device); bits > 0 {
		return bits
	}
	return assumedSpeed
}

// ports are the ports that may move, with the uplink each uses and those it might use.
func (p *loadPart) ports(sw *plan.Switch, rates map[plan.PortID]loadbalance.Rate) (list []loadbalance.Port) {
	for _, port := range sw.Ports {
		f, ok := p.a.applied.Facts[port.ID]
		r, known := rates[port.ID]
		use := p.a.applied.UplinksInUse(sw, port)
		if !ok || !known || port.Policy.Teaming.Policy.V != spec.LoadBased || len(use) != 1 {
			continue
		}
		x := loadbalance.Port{Name: port.ID.Name, Uplink: use[0], In: r.In, Out: r.Out}
		for _, name := range port.Policy.Teaming.Active.V {
			u, ok := p.a.applied.Facts[plan.PortID{Switch: sw.Name, Name: name}]
			if ok && u.Usable() && !slices.Contains(f.Resting, name) {
				x.Choices = append(x.Choices, name)
			}
		}
		list = append(list, x)
	}
	return list
}
