package agent

import (
	"heddle/internal/agent/devices"
	"heddle/internal/binding"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/memory"
)

// follower is a part of the agent with timers or sockets of its own, such as LACP. It works in goroutines of its own and
// reaches the agent's state by post alone.
type follower interface {
	// Settled is called in the loop after every reconcile, also when nothing changed. It must not block.
	Settled(uplinks.InForce)
	// Close ends the part and waits for its goroutines; the kernel goes on forwarding.
	Close() error
}

// follow adds a part of the agent, before the loop runs.
func (a *Agent) follow(f follower) {
	a.followers = append(a.followers, f)
	a.closers = append(a.closers, f.Close)
}

func (a *Agent) tellFollowers(bounds []bound) {
	now := uplinks.InForce{Plan: a.plan, Facts: a.applied.Facts, Devices: make(map[plan.PortID]hostdev.Device, len(bounds))}
	for _, b := range bounds {
		now.Devices[b.id] = b.device
	}
	for _, f := range a.followers {
		f.Settled(now)
	}
	if a.flows != nil {
		a.flows.Settled(a.plan, portGroupNames(a.cfg))
	}
}

// portGroupNames are the names of each switch's port groups.
func portGroupNames(cfg *spec.Config) map[string][]string {
	all := map[string][]string{}
	if cfg == nil {
		return all
	}
	for i := range cfg.Switches {
		sw := &cfg.Switches[i]
		for k := range sw.PortGroups {
			all[sw.Name] = append(all[sw.Name], sw.PortGroups[k].Name)
		}
	}
	return all
}

// post has f run in the loop, from any goroutine but the loop's own; false when the loop has ended.
func (a *Agent) post(f func()) bool {
	select {
	case a.calls <- f:
		return true
	case <-a.stopped:
		return false
	}
}

// postUnless has f run in the loop unless done is closed first.
func (a *Agent) postUnless(done <-chan struct{}, f func()) {
	select {
	case a.calls <- f:
	case <-a.stopped:
	case <-done:
	}
}

// uplinkHost is what the protocols and the load balancing on uplinks share with the agent.
func (a *Agent) uplinkHost() uplinks.Host {
	return uplinks.Host{Log: a.log, Memory: &a.state.Memory, Events: a.events, Verdicts: a.verdicts, Post: a.postUnless, Settle: a.settle, SettleSoon: a.settleSoon, Limit: tellLimit()}
}

// followUplinks has the protocols spoken on the uplinks.
func (a *Agent) followUplinks(open linkproto.Opener) {
	host := a.uplinkHost()
	a.lags.Start(open)
	a.neighbours = uplinks.FollowLLDP(host, uplinks.Self{Chassis: devices.DerivedMAC(plan.PortID{Name: "chassis"}, a.place), Version: a.version}, open)
	a.follow(a.lags)
	a.follow(a.neighbours)
	a.follow(uplinks.FollowBeacons(host, open))
}

// followLoad has ports moved off loaded uplinks.
func (a *Agent) followLoad(o uplinks.LoadOptions) {
	p := uplinks.NewLoad(a.uplinkHost(), meter{a}, o)
	p.Start()
	a.follow(p)
}

// meter measures with the agent's kernel and devices.
type meter struct{ a *Agent }

func (m meter) Applied() *binding.Desired                           { return m.a.applied }
func (m meter) Counters() (map[plan.PortID]observe.Counters, error) { return m.a.kernel.Counters() }
func (m meter) Speed(device string) float64                         { return m.a.dev.Speed(device) }
func (m meter) Complain(what string, err error)                     { m.a.complain(what, err) }

// lagDevices are the devices of the uplinks, as LACP knows them.
func lagDevices(bounds []bound) map[plan.PortID]memory.LAGDevice {
	devices := map[plan.PortID]memory.LAGDevice{}
	for _, b := range bounds {
		if b.uplink != nil {
			devices[b.id] = memory.LAGDevice{Index: b.device.Index, MAC: b.device.MAC}
		}
	}
	return devices
}
