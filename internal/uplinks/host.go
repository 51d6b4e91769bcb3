// Package uplinks does what happens at uplinks beside the frames of guests: LACP, LLDP and beacons with the physical
// network, and the balancing of load. Each part has goroutines of its own; what it finds out reaches the agent in the
// agent's loop.
package uplinks

import (
	"log/slog"
	"maps"
	"slices"

	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/memory"
)

// InForce is what the agent has put into the kernel. It is not changed afterwards.
type InForce struct {
	Plan  *plan.Plan
	Facts plan.Facts
	// Devices are those behind the ports and uplinks that are connected.
	Devices map[plan.PortID]hostdev.Device
}

// own are the addresses of this host's ports and uplinks as they are configured.
func (n InForce) own() linkproto.Own {
	own := linkproto.Own{}
	for _, sw := range n.Plan.Switches {
		for _, p := range sw.Ports {
			own[p.InitialMAC] = true
		}
		for _, u := range sw.Uplinks {
			if d, ok := n.Devices[u.ID]; ok {
				own[d.MAC] = true
			}
		}
	}
	return own
}

// Host is what the parts share with their agent. Memory and Verdicts are the loop's: the parts use them in what they
// post and in Settled.
type Host struct {
	Log      *slog.Logger
	Memory   *memory.Memory
	Events   *event.Bus
	Verdicts Verdicts
	// Post runs f in the loop unless done is closed, or the loop ends, first.
	Post func(done <-chan struct{}, f func())
	// Settle makes the agent apply what a part changed; it is called in the loop.
	Settle func()
	// SettleSoon does the same together with the changes of other parts, a moment later.
	SettleSoon func()
	// Limit is the rate limit of reports about one uplink.
	Limit event.Limiter[plan.PortID]
}

// Verdicts are why uplinks are not used though their links are up, by who says so.
type Verdicts map[plan.PortID]map[string]problem.Problem

// Why is the reason not to use the uplink, none for none; the first by the name of who says so.
func (v Verdicts) Why(uplink plan.PortID) problem.Problem {
	for _, by := range slices.Sorted(maps.Keys(v[uplink])) {
		return v[uplink][by]
	}
	return problem.Problem{}
}

// Set changes what one part says about an uplink, none for nothing against it, and tells whether that is new. The same
// with another detail is not.
func (v Verdicts) Set(uplink plan.PortID, by string, why problem.Problem) bool {
	isNew := !v[uplink][by].Same(why)
	if why.None() {
		delete(v[uplink], by)
		return isNew
	}
	if v[uplink] == nil {
		v[uplink] = map[string]problem.Problem{}
	}
	v[uplink][by] = why
	return isNew
}
