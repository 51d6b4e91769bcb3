package loopsearch

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/agent/active"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/loops"
)

// Host is what the search needs of its host.
type Host struct {
	active.Reader
	Log    *slog.Logger
	Events *event.Bus
	// Bounds are the ports and uplinks of a configuration that have a device now.
	Bounds func(*spec.Config) []active.Bound
	// Blocks is the part's document: the ports that are blocked because of loops.
	Blocks *[]loops.Block
	// Resolve makes the plan of a configuration.
	Resolve func(*spec.Config) (*plan.Plan, error)
	// Ask has the reconcile follow what the part wants by now.
	Ask func()
	// Post runs a function in the loop, unless done is closed first.
	Post func(done <-chan struct{}, f func())
}

// Search finds loops in the network, and says which ports are to be blocked. Only the agent's loop uses it. Until it is
// started it looks for none.
type Search struct {
	host    Host
	machine *loops.Machine
	sender  loops.Sender
	relay   loops.Relay
	prober  *prober
	timer   *time.Timer
	closed  chan struct{}
	joints  []loops.Joint // of the devices last seen
	in      *plan.Plan    // the plan for which joints were last computed
}

// New returns a search that is not started.
func New(h Host) *Search { return &Search{host: h, closed: make(chan struct{})} }

// Start begins to look for loops; open opens a socket for probes.
func (l *Search) Start(open func() (announce.Sender, error)) {
	l.machine, l.prober = loops.New(*l.host.Blocks), startProber(l.host.Log, open)
	// Never fails (crypto/rand).
	_, _ = rand.Read(l.sender.ID[:])
	_, _ = rand.Read(l.sender.Key[:])
}

// Close ends the search. The ports that are blocked stay so.
func (l *Search) Close() error {
	close(l.closed)
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.prober == nil {
		return nil
	}
	return l.prober.close()
}

func (l *Search) blocked(id plan.PortID) (loops.Block, bool) {
	if l.machine == nil {
		return loops.Block{}, false
	}
	return l.machine.Blocked(id)
}

// Want returns the ports that are blocked because of a loop.
func (l *Search) Want(*active.Value) (w active.Want) {
	if l.machine == nil {
		return w
	}
	w.Blocked = map[plan.PortID]problem.Problem{}
	for _, b := range l.machine.Blocks() {
		code := problem.LoopProbed
		if b.Seen {
			code = problem.LoopSeen
		}
		w.Blocked[b.Port] = problem.Problem{Code: code, Peer: b.Port.Name, Since: b.Since, Detail: b.Why}
	}
	return w
}

// Settled tells which ports are blocked by now, and which are no longer.
func (l *Search) Settled(*active.Value) {
	if l.machine != nil {
		l.tell(l.machine.Changes())
	}
}

// Prepare notes, before a plan is activated, which ports exist and which network loops their devices show.
func (l *Search) Prepare(now *active.Draft) {
	if l.machine == nil {
		return
	}
	at := time.Now()
	there := make(map[plan.PortID]bool, len(now.Bounds))
	for _, b := range now.Bounds {
		there[b.ID] = true
		if b.Port != nil && !b.Port.Policy.LoopDetection.V {
			l.machine.Free(b.ID, at)
		}
	}
	isThere := func(id plan.PortID) bool { return there[id] }
	l.machine.Keep(isThere)
	l.relay.Keep(isThere)
	if joints := jointsOf(now.Bounds); l.in != now.Plan || !slices.Equal(joints, l.joints) {
		l.joints, l.in = joints, now.Plan
		l.machine.See(loops.Ways(now.Plan, joints), at)
	}
	*l.host.Blocks = l.machine.Blocks()
	l.wake()
}

// Closes returns which network loops a configuration would close through devices that can be seen. A loop that
// exists without the configuration, because somebody joined devices just now, is no fault of the change: its port is
// about to be blocked.
func (l *Search) Closes(cfg *spec.Config) (lines []string) {
	if l.machine == nil || len(cfg.Switches) == 0 {
		return nil
	}
	closed := l.closedBy(cfg)
	if len(closed) == 0 {
		return nil
	}
	var before []loops.Loop
	if cfg := l.host.Active().Config; cfg != nil {
		before = l.closedBy(cfg)
	}
	for _, loop := range closed {
		if _, blocked := l.blocked(loop.Port); loop.Port != (plan.PortID{}) && !blocked &&
			!slices.ContainsFunc(before, loop.Same) {
			lines = append(lines, fmt.Sprintf("port %s would close a loop: %s. Leave it out, or take one of the veth "+
				"pairs away; "+
				"where the guests open it themselves, set security: {loopDetection: false} on their port group",
				loop.Port.Name, loop))
		}
	}
	return lines
}

// closedBy returns the loops that a configuration closes with the present devices.
func (l *Search) closedBy(cfg *spec.Config) []loops.Loop {
	joints := jointsOf(l.host.Bounds(cfg))
	if len(joints) == 0 {
		return nil
	}
	p, err := l.host.Resolve(cfg)
	if err != nil {
		return nil // reported where the plan is made
	}
	return loops.Find(loops.Ways(p, joints))
}

// jointsOf returns the veth pairs of which both ends are ports or uplinks.
func jointsOf(bounds []active.Bound) (joints []loops.Joint) {
	by := map[uint32]plan.PortID{}
	for _, b := range bounds {
		if d := b.Device; d.Kind == hostdev.Veth && !d.Peer.Elsewhere {
			if other, ok := by[d.Peer.Index]; ok {
				joints = append(joints, loops.Joint{A: other, B: b.ID})
			}
			by[d.Index] = b.ID
		}
	}
	return joints
}

// wake has the search go on when its next step is due.
func (l *Search) wake() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if next := l.machine.Next(); !next.IsZero() {
		l.timer = time.AfterFunc(time.Until(next), func() { l.host.Post(l.closed, l.GoOn) })
	}
}

// GoOn sends the probes that are due, and blocks or unblocks ports.
func (l *Search) GoOn() {
	if l.machine == nil || l.host.Active().Applied == nil {
		return
	}
	send, changes := l.machine.Due(time.Now())
	for _, s := range send {
		l.prober.send(l.probes(s))
	}
	if len(changes) > 0 {
		l.host.Ask()
		l.tell(changes)
	}
	l.wake()
}

// tell reports which ports were blocked and unblocked.
func (l *Search) tell(changes []loops.Change) {
	for _, c := range changes {
		e := event.Event{Kind: event.Loop, Switch: c.Port.Switch, Port: c.Port.Name, From: "in service", To: "blocked"}
		e.Text = fmt.Sprintf("port %s is blocked because of a loop: %s", c.Port.Name, c.Why)
		if c.Lifted {
			e.From, e.To = e.To, e.From
			e.Text = fmt.Sprintf("port %s is in service again: no loop goes through it any more", c.Port.Name)
			l.host.Log.Info(e.Text, "switch", c.Port.Switch)
		} else {
			l.host.Log.Warn(e.Text, "switch", c.Port.Switch)
		}
		l.host.Events.Publish(e)
	}
}

// Heard processes a sign of a loop, or a probe that was received.
func (l *Search) Heard(t dataplane.Told) {
	if l.machine == nil || l.host.Active().Applied == nil {
		return
	}
	if t.Kind == abi.TellSign {
		l.machine.Signed(loops.Sign{Port: t.Port, Segment: loops.Segment{Switch: t.Port.Switch, VLAN: t.VLAN, AD: t.AD},
			Kind: t.Sign}, time.Now())
		return
	}
	in, ok := l.endFor(t.Port, t.VLAN, t.AD)
	if !ok {
		return
	}
	p, err := l.sender.Read(t.Probe)
	if err != nil { // another host's, or forged
		l.host.Log.Debug("a probe for loops came in", "port", t.Port.String(), "what", err)
		l.sendOn(t, in)
		return
	}
	if out, ok := l.endOf(p); ok {
		l.machine.Came(loops.Way{Out: out, In: in}, p.Round, time.Now())
	}
}

// sendOn forwards another host's probe that a port received, out of the uplinks of its segment, so that the other host
// learns that a path leads through this one. No guest receives it. A port whose guest may not send frames of others
// leads nowhere, and neither does a port that is blocked because of a loop: if it forwarded probes, the other host's
// end could never be unblocked.
func (l *Search) sendOn(t dataplane.Told, in loops.End) {
	port := l.host.Active().Applied.Plan.Port(t.Port)
	first, ok := l.sender.Other(t.Probe)
	if _, blocked := l.blocked(t.Port); port == nil || !ok || blocked || !port.Policy.ForgedTransmits.V {
		return
	}
	now := time.Now()
	if first {
		l.machine.Met(t.Port, now)
	}
	if l.relay.Take(t.Port, now) {
		l.prober.send(l.onward(t.Probe, in.Segment))
	}
}

// endFor returns the segment in which the port or uplink receives a frame with that tag, and false if it accepts no
// such frame.
func (l *Search) endFor(id plan.PortID, vlan uint16, ad bool) (loops.End, bool) {
	if u := l.host.Active().Applied.Plan.Uplink(id); u != nil {
		seg, ok := loops.SegmentOf(id.Switch, &plan.VLAN{Mode: plan.VLANTrunk, Set: u.VLANs}, true, vlan, ad)
		return loops.End{ID: id, Number: u.Number, Uplink: true, Segment: seg}, ok
	}
	p := l.host.Active().Applied.Plan.Port(id)
	if p == nil {
		return loops.End{}, false
	}
	e, ok := loops.EndOf(p), false
	e.Segment, ok = loops.SegmentOf(id.Switch, &p.Policy.VLAN.V, false, vlan, ad)
	return e, ok
}

// endOf returns where a probe of this agent was sent from, false if that port no longer exists.
func (l *Search) endOf(p loops.Probe) (loops.End, bool) {
	at := func(e loops.End) (loops.End, bool) {
		e.Segment = loops.Segment{Switch: e.ID.Switch, VLAN: p.VLAN, AD: p.AD}
		return e, true
	}
	for _, sw := range l.host.Active().Applied.Plan.Switches {
		for _, u := range sw.Uplinks {
			if u.Number == p.Number {
				return at(loops.End{ID: u.ID, Number: u.Number, Uplink: true})
			}
		}
		for _, port := range sw.Ports {
			if port.Number == p.Number {
				return at(loops.EndOf(port))
			}
		}
	}
	return loops.End{}, false
}

// Retry tries at once to unblock a port that was blocked because of a loop, and reports it; it does nothing if the
// port was not blocked for that.
func (l *Search) Retry(id plan.PortID) []string {
	switch b, blocked := l.blocked(id); {
	case !blocked:
		return nil
	case l.machine.Retry(id, time.Now()):
		l.GoOn()
		return []string{fmt.Sprintf("port %s was blocked because of a loop (%s): it is being tried now, and comes "+
			"back if no loop goes through it any more; "+
			"see heddle port show %s", id.Name, b.Why, printable.ShellWord(id.Name))}
	default:
		return []string{fmt.Sprintf("port %s stays blocked because of a loop that its devices make (%s): take one of "+
			"them away, "+
			"or set security: {loopDetection: false} on its port group", id.Name, b.Why)}
	}
}
