package agent

import (
	"context"

	"heddle/internal/host/domains"
	"heddle/internal/host/guest"
	"heddle/internal/uplinks"
)

// libvirtDomains follows the libvirt domains whose ports are up.
type libvirtDomains struct{ *domains.Domains }

// watchDomains adds the part of the agent that follows libvirt's domains through the sockets in dir; "" turns it off.
func (a *Agent) watchDomains(dir string) {
	if dir == "" {
		return
	}
	a.follow(libvirtDomains{domains.Watch(dir, func(ctx context.Context, news map[string]guest.Run) {
		a.postUnless(ctx.Done(), func() { a.waiting.sawDomains(news) })
	})})
}

// Settled updates which domains are followed.
func (l libvirtDomains) Settled(now uplinks.InForce) {
	wanted := map[string]bool{}
	for _, sw := range now.Plan.Switches {
		for _, p := range sw.Ports {
			if d, ok := now.Devices[p.ID]; ok && d.Up() && p.Domain != "" {
				wanted[p.Domain] = true
			}
		}
	}
	l.Want(wanted)
}
