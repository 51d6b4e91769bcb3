package agent

import (
	"context"
	"os"

	"heddle/internal/agent/active"
	"heddle/internal/agent/benchmarks"
	"heddle/internal/agent/devices"
	"heddle/internal/agent/part"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/memory"
	"heddle/internal/uplinks/wire"
)

// follow adds a part of the agent, before the loop runs.
func (a *Agent) follow(name string, p part.Part) { a.parts.Add(name, p) }

// tellParts tells the parts what is active.
func (rc *reconciler) tellParts(bounds []active.Bound) {
	now := uplinks.InForce{Plan: rc.Active().Plan, Facts: rc.Active().Applied.Facts,
		Devices: make(map[plan.PortID]hostdev.Device, len(bounds)),
		Groups:  func(sw string) []*plan.Effective { return plan.OfGroups(rc.Active().Config, sw) }}
	for _, b := range bounds {
		now.Devices[b.ID] = b.Device
	}
	now.Reach, now.Tunnels = rc.Active().Applied.Reach, map[string]uint32{}
	for _, sw := range rc.Active().Plan.Switches {
		if sw.Tunnel != nil {
			now.Tunnels[sw.Name] = rc.Active().Applied.Attachments[sw.Tunnel.ID].Ifindex
		}
	}
	rc.parts.Settled(rc.Active(), now)
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
	a.follow("lacp", a.teaming.lags)
	a.follow("lldp", a.teaming.neighbours)
	partners, trees := uplinks.FollowPartners(host, open), uplinks.FollowTrees(host, open)
	storms := uplinks.FollowStorms(host, meter{a.shared})
	a.teaming.trees, a.teaming.watches = trees, []watch{partners, trees, storms}
	a.follow("partners", partners)
	a.follow("spanning-tree", trees)
	a.follow("storms", storms)
	a.follow("beacons", uplinks.FollowBeacons(host, open))
}

// followLoad starts moving ports off loaded uplinks.
func (a *Agent) followLoad(o uplinks.LoadOptions) {
	p := uplinks.NewLoad(a.uplinkHost(), meter{a.shared}, o)
	p.Start()
	a.follow("load", p)
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
func lagDevices(bounds []active.Bound) map[plan.PortID]memory.LAGDevice {
	devices := map[plan.PortID]memory.LAGDevice{}
	for _, b := range bounds {
		if b.Uplink != nil {
			devices[b.ID] = memory.LAGDevice{Index: b.Device.Index, MAC: b.Device.MAC}
		}
	}
	return devices
}

// extend adds the features that the program has beside the core, before the loop runs.
func (a *Agent) extend(list []part.Feature, open linkproto.Opener) error {
	name, err := os.Hostname()
	if err != nil {
		name = a.name
	}
	a.tunnels.Prefer(a.parts.Prefer)
	err = a.parts.Extend(list, part.Deps{Reader: a.Reader, Loop: a.Loop, Log: a.log, HostName: name,
		StateDir: a.store.Dir(), Who: a.connection.Who, Publish: a.events.Publish, Complain: a.Complain,
		Ask: a.settler.ask, Uplinks: a.uplinkHost(), Open: open, SendPacket: wire.SendPacket,
		Plugged: a.teaming.plugged, Speed: a.dev.Speed, IsDefined: a.locating.IsDefined})
	if line, has := part.Find[benchmarks.Uplinks](a.parts); has {
		a.benchmarking.Probe(line)
	}
	a.closers = append(a.closers, a.benchmarking.Close)
	return err
}

// featured answers the calls of the contract that a feature answers: without it, the host knows nothing of that.
type featured struct{ parts *part.Table }

// NetworkHealth is what the host knows of the physical network.
func (f featured) NetworkHealth(ctx context.Context) (*api.HostHealth, error) {
	by, has := part.Find[interface {
		NetworkHealth(ctx context.Context) (*api.HostHealth, error)
	}](f.parts)
	if !has {
		return &api.HostHealth{Alone: true, Findings: []api.NetworkFinding{}}, nil
	}
	return by.NetworkHealth(ctx)
}
