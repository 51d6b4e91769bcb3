package agent

import (
	"context"

	"heddle/internal/agent/linkstates"
	"heddle/internal/api"
	"heddle/internal/host/domains"
	"heddle/internal/host/guest"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks"
)

// libvirtDomains follows the libvirt domains whose ports are up, and those whose ports await them: one that runs, as
// after a start without an agent, has its ports connected.
type libvirtDomains struct {
	*domains.Domains
	awaits func(plan.PortID) bool
}

// Plugged connects and disconnects the ports of a libvirt domain, given by its description (XML), after a device was
// plugged or unplugged.
type Plugged func(ctx context.Context, s api.Service, xml string) error

// watchDomains adds the part of the agent that follows libvirt's domains through the sockets in dir; "" turns it off.
func (a *Agent) watchDomains(dir string, plugged Plugged) {
	if dir == "" {
		return
	}
	tell := func(ctx context.Context, news map[string]guest.Run) {
		a.PostUnless(ctx.Done(), func() { a.waiting.SawDomains(news) })
	}
	log := a.log
	d := domains.Watch(dir, tell, func(ctx context.Context, xml string) {
		if plugged == nil {
			return
		}
		if err := plugged(ctx, a.service(), xml); err != nil && ctx.Err() == nil {
			log.Warn("connect what was plugged into a libvirt domain", "err", err)
		}
	})
	a.follow("domains", libvirtDomains{d, func(id plan.PortID) bool {
		return a.Active().Problems[id].Code == problem.OwnerAwaited
	}})
	a.follow("link-states", linkstates.New(linkstates.Host{Log: log, Ask: a.settler.ask, Post: a.PostUnless}, dir))
	a.waiting.Ask(func(p *plan.Port) { d.Again(p.Domain) })
}

// Settled updates which domains are followed.
func (l libvirtDomains) Settled(now uplinks.InForce) { l.Want(l.followed(now)) }

// followed are the domains to follow, and those of them whose ports await them.
func (l libvirtDomains) followed(now uplinks.InForce) (wanted, awaited map[string]bool) {
	wanted, awaited = map[string]bool{}, map[string]bool{}
	for _, sw := range now.Plan.Switches {
		for _, p := range sw.Ports {
			d, ok := now.Devices[p.ID]
			switch {
			case p.Domain == "":
			case ok && d.Up():
				wanted[p.Domain] = true
			case l.awaits(p.ID):
				wanted[p.Domain], awaited[p.Domain] = true, true
			}
		}
	}
	return wanted, awaited
}
