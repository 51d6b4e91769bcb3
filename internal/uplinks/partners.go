package uplinks

import (
	"fmt"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/linkproto"
)

// Partners says at which uplinks that are in no LAG the physical switch speaks LACP. Such a switch uses one of the
// links, or none, for as long as nobody answers: the guests of the other uplinks reach nobody (S141).
type Partners struct {
	host     Host
	limit    event.Limiter[plan.PortID]
	partners *linkproto.Listener[linkproto.Partner]
	done     chan struct{}
}

// FollowPartners starts to listen.
func FollowPartners(h Host, open linkproto.Opener) *Partners {
	p := &Partners{host: h, limit: h.Limit, done: make(chan struct{})}
	p.partners = linkproto.StartPartners(open, h.Log, func(r []linkproto.HeardReport[linkproto.Partner]) {
		h.Post(p.done, func() { p.reported(r) })
	})
	return p
}

// Why returns what is wrong with an uplink that is in no LAG and at whose other end LACP is spoken; none if nobody
// speaks it there.
func (p *Partners) Why(uplink plan.PortID) problem.Problem {
	who, ok := p.partners.Heard(uplink)
	if !ok {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.LACPWithoutLAG, Peer: who.What.System.String(), Have: int(who.What.Key),
		Since: who.Since}
}

// Close ends the listening.
func (p *Partners) Close() error {
	close(p.done)
	return p.partners.Close()
}

// Settled updates which uplinks are listened on.
func (p *Partners) Settled(now InForce) {
	want := map[plan.PortID]linkproto.Uplink{}
	for _, sw := range now.Plan.Switches {
		for _, u := range sw.Uplinks {
			if d, ok := now.Devices[u.ID]; ok && sw.LAGOf(u.ID.Name) == nil {
				want[u.ID] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.Facts[u.ID].Up && !u.Blocked}
			}
		}
	}
	p.partners.Own(now.own())
	p.partners.Want(want)
}

// reported publishes who began to speak LACP, and who ended; it runs in the loop.
func (p *Partners) reported(list []linkproto.HeardReport[linkproto.Partner]) {
	for _, r := range list {
		if !p.limit.Allow(r.ID, time.Now()) {
			continue
		}
		e := event.Event{Kind: event.Neighbour, Switch: r.ID.Switch, Uplink: r.ID.Name}
		who := fmt.Sprintf("%s key %d", r.Heard.What.System, r.Heard.What.Key)
		e.To = "LACP partner " + who
		e.Text = fmt.Sprintf("uplink %s: the other end speaks LACP (%s), and the uplink is in no LAG", r.ID.Name, who)
		if r.Gone {
			e.From, e.To = e.To, ""
			e.Text = fmt.Sprintf("uplink %s: the other end speaks LACP no more", r.ID.Name)
		}
		p.host.Events.Publish(e)
		p.host.Log.Info(e.Text, "switch", r.ID.Switch)
	}
}
