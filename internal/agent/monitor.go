package agent

import (
	"context"

	"heddle/internal/guest"
)

// monitors has the QEMU monitors watched of the ports whose guests run: those whose device has carrier.
type monitors struct{ *guest.Monitors }

// watchMonitors adds the part of the agent that watches QEMU monitors.
func (a *Agent) watchMonitors() {
	a.follow(monitors{guest.Watch(func(ctx context.Context, news map[string]guest.Sight) {
		a.postUnless(ctx.Done(), func() {
			a.adapters.Take(news)
			a.settleSoon()
		})
	})})
}

func (m monitors) close() error { return m.Close() }

func (m monitors) settled(now inForce) {
	wanted := map[string]int{}
	for _, sw := range now.plan.Switches {
		for _, p := range sw.Ports {
			if d, ok := now.devices[p.ID]; ok && d.Up() && p.Monitor.Socket != "" {
				wanted[p.Monitor.Socket]++
			}
		}
	}
	m.Want(wanted)
}
