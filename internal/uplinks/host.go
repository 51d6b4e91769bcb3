package uplinks

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/memory"
)

// InForce is the state that the agent has made active in the kernel. It is not changed afterwards.
type InForce struct {
	Plan  *plan.Plan
	Facts plan.Facts
	// Devices are the devices of the connected ports and uplinks.
	Devices map[plan.PortID]hostdev.Device
	// Groups returns the policies of a switch's port groups that have VLANs; it is called in the loop.
	Groups func(sw string) []*plan.Effective
	// Reach is what is known of the tunnel endpoints of other hosts, Tunnels are the devices of tunnels, by switch.
	Reach   map[string]overlay.Reach
	Tunnels map[string]uint32
}

// own returns the configured addresses of this host's ports and uplinks.
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

// Host is what the parts share with their agent. Memory and Verdicts belong to the loop: the parts use them in
// functions that they post, and in Settled.
type Host struct {
	Log      *slog.Logger
	Memory   *memory.Memory
	Events   *event.Bus
	Verdicts Verdicts
	// Post runs f in the loop unless done is closed, or the loop ends, first.
	Post func(done <-chan struct{}, f func())
	// Settle makes the agent apply what a part changed; it is called in the loop.
	Settle func()
	// SettleSoon does the same a moment later, together with the changes of other parts.
	SettleSoon func()
	// Limit is the rate limit of reports about one uplink.
	Limit event.Limiter[plan.PortID]
}

// every runs f in the loop at each tick, until done is closed.
func (h Host) every(tick time.Duration, done <-chan struct{}, f func(now time.Time)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			h.Post(done, func() { f(time.Now()) })
		}
	}
}

// Verdicts are the reasons why uplinks are not used although their links are up, by uplink and by the name of the part
// that gives the reason.
type Verdicts map[plan.PortID]map[string]problem.Problem

// Why returns the reason not to use the uplink, none if there is none. Of several it returns that of the part whose
// name sorts first.
func (v Verdicts) Why(uplink plan.PortID) problem.Problem {
	for _, by := range slices.Sorted(maps.Keys(v[uplink])) {
		return v[uplink][by]
	}
	return problem.Problem{}
}

// Set changes the verdict of one part on an uplink, none for nothing against it, and reports whether it is new. The
// same reason with another detail is not new.
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
