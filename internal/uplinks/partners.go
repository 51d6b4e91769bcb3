package uplinks

import (
	"fmt"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/linkproto"
)

// Partners says at which uplinks that are in no LAG the physical switch speaks LACP. Such a switch uses one of the
// links, or none, for as long as nobody answers: the guests of the other uplinks reach nobody (S141).
type Partners struct{ *hearing[linkproto.Partner] }

// FollowPartners starts to listen.
func FollowPartners(h Host, open linkproto.Opener) *Partners {
	alone := func(sw *plan.Switch, u *plan.Uplink) bool { return sw.LAGOf(u.ID.Name) == nil }
	return &Partners{hear(h, open, linkproto.StartPartners, alone, tellPartner)}
}

// Why returns what is wrong with an uplink that is in no LAG and at whose other end LACP is spoken; none if nobody
// speaks it there.
func (p *Partners) Why(uplink plan.PortID) problem.Problem {
	who, ok := p.listener.Heard(uplink)
	if !ok {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.LACPWithoutLAG, Peer: who.What.System.String(), Have: int(who.What.Key),
		Since: who.Since}
}

// tellPartner says who began to speak LACP, and who ended.
func tellPartner(e *event.Event, r linkproto.HeardReport[linkproto.Partner]) {
	who := fmt.Sprintf("%s key %d", r.Heard.What.System, r.Heard.What.Key)
	e.To = "LACP partner " + who
	e.Text = fmt.Sprintf("uplink %s: the other end speaks LACP (%s), and the uplink is in no LAG", r.ID.Name, who)
	if r.Gone {
		e.From, e.To = e.To, ""
		e.Text = fmt.Sprintf("uplink %s: the other end speaks LACP no more", r.ID.Name)
	}
}
