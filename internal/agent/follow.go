package agent

import (
	"maps"
	"slices"

	"heddle/internal/hostdev"
	"heddle/internal/plan"
)

// inForce is what the agent has put into the kernel. It is not changed afterwards.
type inForce struct {
	plan  *plan.Plan
	facts plan.Facts
	// devices are those behind the ports and uplinks that are connected.
	devices map[plan.PortID]hostdev.Device
}

// follower is a part of the agent with timers or sockets of its own, such as LACP. It works in goroutines of its own and
// reaches the agent's state by post alone.
type follower interface {
	// settled is called in the loop after every reconcile, also when nothing changed. It must not block.
	settled(inForce)
	// close ends the part and waits for its goroutines; the kernel goes on forwarding.
	close() error
}

// follow adds a part of the agent, before the loop runs.
func (a *Agent) follow(f follower) {
	a.followers = append(a.followers, f)
	a.closers = append(a.closers, f.close)
}

func (a *Agent) tellFollowers(bounds []bound) {
	now := inForce{plan: a.plan, facts: a.applied.Facts, devices: make(map[plan.PortID]hostdev.Device, len(bounds))}
	for _, b := range bounds {
		now.devices[b.id] = b.device
	}
	for _, f := range a.followers {
		f.settled(now)
	}
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

// verdicts are why uplinks are not used though their links are up, by who says so.
type verdicts map[plan.PortID]map[string]string

// why is the reason not to use the uplink, "" for none; the first by the name of who says so.
func (v verdicts) why(uplink plan.PortID) string {
	for _, by := range slices.Sorted(maps.Keys(v[uplink])) {
		return v[uplink][by]
	}
	return ""
}

// set changes what one part says about an uplink, "" for nothing against it, and tells whether that is new.
func (v verdicts) set(uplink plan.PortID, by, why string) bool {
	if v[uplink][by] == why {
		return false
	}
	if why == "" {
		delete(v[uplink], by)
		return true
	}
	if v[uplink] == nil {
		v[uplink] = map[string]string{}
	}
	v[uplink][by] = why
	return true
}
