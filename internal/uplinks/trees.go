package uplinks

import (
	"fmt"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/stp"
)

// Trees says at which uplinks a physical switch speaks spanning tree, and where its port does not forward yet: the link
// is up, and guests reach nobody (S172).
type Trees struct {
	host  Host
	limit event.Limiter[plan.PortID]
	trees *linkproto.Listener[stp.Port]
	done  chan struct{}
}

// FollowTrees starts to listen.
func FollowTrees(h Host, open linkproto.Opener) *Trees {
	t := &Trees{host: h, limit: h.Limit, done: make(chan struct{})}
	t.trees = linkproto.StartTrees(open, h.Log, func(r []linkproto.HeardReport[stp.Port]) {
		h.Post(t.done, func() { t.reported(r) })
	})
	return t
}

// Tree returns what is said at the other end of an uplink; false if nothing is.
func (t *Trees) Tree(uplink plan.PortID) (linkproto.Heard[stp.Port], bool) {
	return t.trees.Heard(uplink)
}

// Why returns what is wrong with an uplink whose other end does not forward; none for nothing.
func (t *Trees) Why(uplink plan.PortID) problem.Problem {
	heard, ok := t.trees.Heard(uplink)
	if !ok || !heard.What.Discards {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.STPDiscards, Peer: heard.What.Bridge.String(), Since: heard.Since}
}

// Close ends the listening.
func (t *Trees) Close() error {
	close(t.done)
	return t.trees.Close()
}

// Settled updates which uplinks are listened on.
func (t *Trees) Settled(now InForce) {
	want := map[plan.PortID]linkproto.Uplink{}
	for _, sw := range now.Plan.Switches {
		for _, u := range sw.Uplinks {
			if d, ok := now.Devices[u.ID]; ok {
				want[u.ID] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.Facts[u.ID].Up && !u.Blocked}
			}
		}
	}
	t.trees.Own(now.own())
	t.trees.Want(want)
}

// reported publishes what a bridge says of its port, and when it says so no more; it runs in the loop.
func (t *Trees) reported(list []linkproto.HeardReport[stp.Port]) {
	for _, r := range list {
		if !t.limit.Allow(r.ID, time.Now()) {
			continue
		}
		p := r.Heard.What
		e := event.Event{Kind: event.Neighbour, Switch: r.ID.Switch, Uplink: r.ID.Name}
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
		t.host.Events.Publish(e)
		t.host.Log.Info(e.Text, "switch", r.ID.Switch)
	}
}
