package agent

import (
	"fmt"
	"net/netip"

	"heddle/internal/agent/active"
	"heddle/internal/host/hostroute"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// routing gives the interfaces of host ports the default routes of the plan, and takes them back. Routes of others
// stay.
type routing struct {
	*shared
	restoring *restoring

	// done is what was set last, and on which interface: while that is the same, the kernel is not asked unless there
	// is doubt.
	done map[plan.PortID]string
}

// setAll makes the routes of all host ports those of the plan. The interfaces are up: the kernel keeps no route of
// one that is down. A port of which the route can't be set says why, and it is tried again.
func (r *routing) setAll(now *active.Draft, bounds []bound) {
	seen := make(map[plan.PortID]bool, len(r.done))
	for _, b := range bounds {
		if b.port == nil || b.port.Role != spec.Host {
			continue
		}
		seen[b.id] = true
		if err := r.set(b); err != nil {
			delete(r.done, b.id)
			if !now.Reported(b.id) {
				now.Report(b.id, problem.Failed(problem.HostInterface, b.port.Device, err))
			}
		}
	}
	for id := range r.done {
		if !seen[id] {
			delete(r.done, id)
		}
	}
}

// set makes the routes of one host port those of the plan. An end that was moved to another namespace is left alone.
func (r *routing) set(b bound) error {
	host, ok, err := r.dev.DeviceAt(b.device.Peer.Index)
	if err != nil || !ok || b.device.Peer.Elsewhere || host.Name != b.port.Device || !host.AdminUp {
		delete(r.done, b.id) // the routes go with the device
		return err
	}
	p := b.port
	state := fmt.Sprint(host.Index, host.Born, p.Gateway, p.Metric, p.Table, p.Addresses)
	same := r.done[b.id] == state
	if same && !r.restoring.doubt {
		return nil
	}
	var want []hostroute.Route
	if p.Gateway != "" {
		gateway, err := netip.ParseAddr(p.Gateway)
		if err != nil {
			return err
		}
		want = append(want, hostroute.Route{Gateway: gateway, Metric: uint32(p.Metric), Table: uint32(p.Table)})
	}
	added, err := r.dev.SetRoutes(host, want...)
	if err != nil {
		return err
	}
	r.done[b.id] = state
	for i := range added {
		if same {
			r.restoring.restored(b.id, false, host.Name, "the route "+added[i].String())
		}
	}
	return nil
}
