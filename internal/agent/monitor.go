package agent

import (
	"context"

	"heddle/internal/host/guest"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// monitors watches the QEMU monitors of the ports whose guests run: those whose device has carrier.
type monitors struct{ *guest.Monitors }

// watchMonitors adds the part of the agent that watches QEMU monitors.
func (a *Agent) watchMonitors() {
	m := guest.Watch(func(ctx context.Context, news map[string]guest.Sight) {
		a.PostUnless(ctx.Done(), func() {
			a.waiting.SawRuns(news)
			a.settler.settleSoon()
		})
	})
	a.follow("monitors", monitors{m})
	a.waiting.Ask(func(p *plan.Port) { m.Again(p.Monitor.Socket) })
}

// Settled updates which monitors are watched.
func (m monitors) Settled(now uplinks.InForce) {
	wanted := map[string][]string{}
	for _, sw := range now.Plan.Switches {
		for _, p := range sw.Ports {
			if d, ok := now.Devices[p.ID]; ok && d.Up() && p.Monitor.Socket != "" {
				wanted[p.Monitor.Socket] = append(wanted[p.Monitor.Socket], p.Monitor.NIC)
			}
		}
	}
	m.Want(wanted)
}
