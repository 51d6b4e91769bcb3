package part

import (
	"fmt"
	"log/slog"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/loop"
	"heddle/internal/observe/event"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/linkproto"
)

// Feature is a capability that the agent's core does not know: a program lists those that its agent has.
type Feature struct {
	// Name is that of its part. After is the part of the core, or of a feature before it in the list, whose hooks are
	// called right before its own.
	Name, After string
	// New makes its part, before the loop runs and before anything is active.
	New func(Deps) (Part, error)
}

// Deps is what the core publishes to features.
type Deps struct {
	active.Reader
	*loop.Loop
	Log *slog.Logger
	// HostName is this machine's, StateDir the directory of what the agent keeps over a restart.
	HostName, StateDir string
	// Who is this host in its cluster; "" and "" while it is in none.
	Who func() (id, name string)
	// Publish tells those who follow events. Complain logs an error that may last; it is called in the loop.
	Publish  func(event.Event)
	Complain func(what string, err error)
	// Ask has the loop reconcile, if what the parts want is something else by now; it is called in the loop.
	Ask func()
	// Uplinks is what protocols on uplinks need. Open opens a device for their frames, SendPacket sends a packet by the
	// host's own routes.
	Uplinks    uplinks.Host
	Open       linkproto.Opener
	SendPacket linkproto.PacketSender
	// Plugged is where an uplink is plugged in, "" where that is not known; it is called from any goroutine. Speed is
	// that of a device in bits per second, 0 for unknown; it is called in the loop.
	Plugged func(uplink plan.PortID) string
	Speed   func(device string) float64
	// IsDefined reports whether controllers define a switch; it is called in the loop.
	IsDefined func(sw string) bool
}

// Talker has conversations with the controllers. They are asked for when the host begins to talk to them.
type Talker interface {
	Talks() []cluster.Talk
}

// Member is told, beside the loop, that the host has left its cluster.
type Member interface {
	LeftCluster()
}

// Preferrer knows which endpoints of other hosts to prefer where several can serve, and puts the others last; it is
// called in the loop.
type Preferrer interface {
	Prefer(sw string, r overlay.Reach) overlay.Reach
}

// Extend adds the parts of features, in this order, before the loop runs. After an error no more are added.
func (t *Table) Extend(list []Feature, d Deps) error {
	for _, f := range list {
		if err := t.place(f.Name, f.After); err != nil {
			return err
		}
		p, err := f.New(d)
		if err != nil {
			return fmt.Errorf("start %s: %w", f.Name, err)
		}
		t.Add(f.Name, p)
	}
	return t.Faults()
}

// place gives a part a place in the order, behind another one.
func (t *Table) place(name, after string) error {
	all := t.places()
	at := slices.Index(all, after)
	switch {
	case slices.Contains(all, name):
		return fmt.Errorf("feature %s of the agent has the name of another part", name)
	case at < 0:
		return fmt.Errorf("feature %s of the agent is to be called after %s, and there is no such part", name, after)
	}
	behind := slices.IndexFunc(t.list, func(n named) bool { return n.at > at })
	if behind < 0 {
		behind = len(t.list)
	}
	for i := range t.list[behind:] {
		t.list[behind+i].at++
	}
	t.order = slices.Insert(all, at+1, name)
	return nil
}

// places are the names of parts in their order.
func (t *Table) places() []string {
	if t.order == nil {
		t.order = order()
	}
	return t.order
}

// Find is the first part that has some methods; false where none has.
func Find[Methods any](t *Table) (m Methods, has bool) {
	for _, n := range t.list {
		if m, has = n.part.(Methods); has {
			return m, true
		}
	}
	return m, false
}

// Talks are the conversations of all parts.
func (t *Table) Talks() (list []cluster.Talk) {
	all(t, func(p Talker) { list = append(list, p.Talks()...) })
	return list
}

// LeftCluster calls the hooks of that name.
func (t *Table) LeftCluster() { all(t, func(p Member) { p.LeftCluster() }) }

// Prefer returns what is known of the endpoints of others in the order that the parts prefer.
func (t *Table) Prefer(sw string, r overlay.Reach) overlay.Reach {
	all(t, func(p Preferrer) { r = p.Prefer(sw, r) })
	return r
}
