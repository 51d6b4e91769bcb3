package agent

import (
	"os"

	"heddle/internal/agent/devices"
	"heddle/internal/binding"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/wire"
)

// follower is a part of the agent with timers or sockets of its own, such as LACP. It runs in its own goroutines and
// reaches the agent's state by post alone.
type follower interface {
	// Settled is called in the loop after every reconcile, also when nothing changed. It must not block.
	Settled(uplinks.InForce)
	// Close ends the part and waits for its goroutines; the kernel continues forwarding.
	Close() error
}

// follow adds a part of the agent, before the loop runs.
func (a *Agent) follow(f follower) {
	a.reconciler.followers = append(a.reconciler.followers, f)
	a.closers = append(a.closers, f.Close)
}

func (rc *reconciler) tellFollowers(bounds []bound) {
	now := uplinks.InForce{Plan: rc.Active().Plan, Facts: rc.Active().Applied.Facts,
		Devices: make(map[plan.PortID]hostdev.Device, len(bounds)),
		Groups:  func(sw string) []*plan.Effective { return plan.OfGroups(rc.Active().Config, sw) }}
	for _, b := range bounds {
		now.Devices[b.id] = b.device
	}
	now.Reach, now.Tunnels = rc.Active().Applied.Reach, map[string]uint32{}
	for _, sw := range rc.Active().Plan.Switches {
		if sw.Tunnel != nil {
			now.Tunnels[sw.Name] = rc.Active().Applied.Attachments[sw.Tunnel.ID].Ifindex
		}
	}
	for _, f := range rc.followers {
		f.Settled(now)
	}
	if rc.flowing.flows != nil {
		rc.flowing.flows.Settled(rc.Active().Plan, portGroupNames(rc.Active().Config), leftPorts(now.Facts))
	}
}

// leftPorts are the silent ports whose guests have left this host.
func leftPorts(facts plan.Facts) map[plan.PortID]bool {
	left := map[plan.PortID]bool{}
	for id, f := range facts {
		if f.Left && f.Waits() {
			left[id] = true
		}
	}
	return left
}

// portGroupNames returns the names of each switch's port groups.
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

// uplinkHost returns what the protocols and the load balancing on uplinks need from the agent.
func (a *Agent) uplinkHost() uplinks.Host {
	return uplinks.Host{Log: a.log, Memory: &a.state.Memory, Events: a.events, Verdicts: a.teaming.verdicts,
		Post: a.PostUnless, Settle: a.settler.settle, SettleSoon: a.settler.settleSoon, Limit: tellLimit()}
}

// followUplinks starts the protocols on the uplinks.
func (a *Agent) followUplinks(open linkproto.Opener) {
	host := a.uplinkHost()
	a.teaming.lags.Start(open)
	a.teaming.neighbours = uplinks.FollowLLDP(host,
		uplinks.Self{Chassis: devices.DerivedMAC(plan.PortID{Name: "chassis"}, a.place), Version: a.version}, open)
	a.follow(a.teaming.lags)
	a.follow(a.teaming.neighbours)
	partners, trees := uplinks.FollowPartners(host, open), uplinks.FollowTrees(host, open)
	storms := uplinks.FollowStorms(host, meter{a.shared})
	a.teaming.trees, a.teaming.watches = trees, []watch{partners, trees, storms}
	a.follow(partners)
	a.follow(trees)
	a.follow(storms)
	a.follow(uplinks.FollowBeacons(host, open))
	name, err := os.Hostname()
	if err != nil {
		name = a.name
	}
	p := &probing{who: a.membership.who, publish: func(e event.Event) {
		a.log.Warn("the physical network: "+e.Text, "switch", e.Switch)
		a.events.Publish(e)
	}}
	p.fabric = uplinks.FollowFabric(host, open, name, a.teaming.plugged, a.dev.Speed, p.tell)
	p.tunnels = uplinks.FollowTunnels(host, open, wire.SendPacket, name, a.locating.isDefined, p.tunnelled)
	a.membership.probing, a.tunnels.prefer, a.benchmarking.fabric = p, p.tunnels.Prefer, p.fabric
	a.closers = append(a.closers, a.benchmarking.Close)
	a.follow(p.fabric)
	a.follow(p.tunnels)
}

// followLoad starts moving ports off loaded uplinks.
func (a *Agent) followLoad(o uplinks.LoadOptions) {
	p := uplinks.NewLoad(a.uplinkHost(), meter{a.shared}, o)
	p.Start()
	a.follow(p)
}

// meter measures load with the agent's kernel and devices.
type meter struct{ *shared }

func (m meter) Applied() *binding.Desired                           { return m.Active().Applied }
func (m meter) Counters() (map[plan.PortID]observe.Counters, error) { return m.kernel.Counters() }

// Uplinks returns the counters of the uplinks of the active plan, without those that are not attached yet.
func (m meter) Uplinks() (map[plan.PortID]observe.Counters, error) {
	if m.Active().Applied == nil {
		return nil, nil
	}
	r := m.kernel.CounterReader()
	out := map[plan.PortID]observe.Counters{}
	for _, sw := range m.Active().Applied.Plan.Switches {
		for _, u := range sw.Uplinks {
			if !r.Has(u.ID) {
				continue
			}
			c, err := r.Read(u.ID)
			if err != nil {
				return nil, err
			}
			out[u.ID] = c
		}
	}
	return out, nil
}

func (m meter) Speed(device string) float64 { return m.dev.Speed(device) }

// lagDevices returns the devices of the uplinks in the form that LACP uses.
func lagDevices(bounds []bound) map[plan.PortID]memory.LAGDevice {
	devices := map[plan.PortID]memory.LAGDevice{}
	for _, b := range bounds {
		if b.uplink != nil {
			devices[b.id] = memory.LAGDevice{Index: b.device.Index, MAC: b.device.MAC}
		}
	}
	return devices
}
