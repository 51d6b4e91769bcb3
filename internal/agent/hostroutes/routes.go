package hostroutes

import (
	"fmt"
	"net/netip"

	"heddle/internal/agent/active"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/hostroute"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Devices are those of the host.
type Devices interface {
	DeviceAt(index uint32) (hostdev.Device, bool, error)
	SetRoutes(d hostdev.Device, want ...hostroute.Route) (added []hostroute.Route, err error)
}

// Host is what the routes need of their host.
type Host struct {
	Devices func() Devices
	// Doubt reports whether the kernel is to be asked about what was set before.
	Doubt func() bool
	// Restored says that something of a port was taken away, and is there again.
	Restored func(port plan.PortID, uplink bool, device, what string)
}

// Routes gives the interfaces of host ports the default routes of the plan, and takes them back. Routes of others
// stay.
type Routes struct {
	host Host

	// done is what was set last, and on which interface: while that is the same, the kernel is not asked unless there
	// is doubt.
	done map[plan.PortID]string
}

// New returns routes of which none is set.
func New(h Host) *Routes { return &Routes{host: h, done: map[plan.PortID]string{}} }

// Close does nothing: the routes stay.
func (r *Routes) Close() error { return nil }

// Prepare makes the routes of all host ports those of the plan. The interfaces are up: the kernel keeps no route of
// one that is down. A port of which the route can't be set says why, and it is tried again.
func (r *Routes) Prepare(now *active.Draft) {
	seen := make(map[plan.PortID]bool, len(r.done))
	for _, b := range now.Bounds {
		if b.Port == nil || b.Port.Role != spec.Host {
			continue
		}
		seen[b.ID] = true
		if err := r.set(b); err != nil {
			delete(r.done, b.ID)
			if !now.Reported(b.ID) {
				now.Report(b.ID, problem.Failed(problem.HostInterface, b.Port.Device, err))
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
func (r *Routes) set(b active.Bound) error {
	host, ok, err := r.host.Devices().DeviceAt(b.Device.Peer.Index)
	if err != nil || !ok || b.Device.Peer.Elsewhere || host.Name != b.Port.Device || !host.AdminUp {
		delete(r.done, b.ID) // the routes go with the device
		return err
	}
	p := b.Port
	state := fmt.Sprint(host.Index, host.Born, p.Gateway, p.Metric, p.Table, p.Addresses)
	same := r.done[b.ID] == state
	if same && !r.host.Doubt() {
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
	added, err := r.host.Devices().SetRoutes(host, want...)
	if err != nil {
		return err
	}
	r.done[b.ID] = state
	for i := range added {
		if same {
			r.host.Restored(b.ID, false, host.Name, "the route "+added[i].String())
		}
	}
	return nil
}
