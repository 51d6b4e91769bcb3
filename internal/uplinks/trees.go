package uplinks

import (
	"fmt"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/stp"
)

// Trees says at which uplinks a physical switch speaks spanning tree, and where its port does not forward yet: the link
// is up, and guests reach nobody (S172).
type Trees struct{ *hearing[stp.Port] }

// FollowTrees starts to listen.
func FollowTrees(h Host, open linkproto.Opener) *Trees {
	all := func(*plan.Switch, *plan.Uplink) bool { return true }
	return &Trees{hear(h, open, linkproto.StartTrees, all, tellTree)}
}

// Tree returns what is said at the other end of an uplink; false if nothing is.
func (t *Trees) Tree(uplink plan.PortID) (linkproto.Heard[stp.Port], bool) {
	return t.listener.Heard(uplink)
}

// Why returns what is wrong with an uplink whose other end does not forward; none for nothing.
func (t *Trees) Why(uplink plan.PortID) problem.Problem {
	heard, ok := t.listener.Heard(uplink)
	if !ok || !heard.What.Discards {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.STPDiscards, Peer: heard.What.Bridge.String(), Since: heard.Since}
}

// tellTree says what a bridge says of its port, and when it says so no more.
func tellTree(e *event.Event, r linkproto.HeardReport[stp.Port]) {
	p := r.Heard.What
	e.To = fmt.Sprintf("bridge %s port %d", p.Bridge, p.Number&0xfff)
	switch {
	case r.Gone:
		e.From, e.To = e.To, ""
		e.Text = fmt.Sprintf("uplink %s: the other end speaks spanning tree no more", r.ID.Name)
	case p.Discards:
		e.Text = fmt.Sprintf("uplink %s: spanning tree: %s does not forward yet", r.ID.Name, e.To)
	default:
		e.Text = fmt.Sprintf("uplink %s: the other end speaks spanning tree: %s, root %s", r.ID.Name, e.To, p.Root)
	}
}
