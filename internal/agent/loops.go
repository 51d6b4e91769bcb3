package agent

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
	"heddle/internal/uplinks/loops"
)

// looping is what the agent knows about loops in the network. Only the agent's loop uses it. The zero value looks for
// none.
type looping struct {
	*shared
	ports   *ports
	settler *settler

	machine *loops.Machine
	sender  loops.Sender
	relay   loops.Relay
	prober  *prober
	timer   *time.Timer
	joints  []loops.Joint // of the devices last seen
	in      *plan.Plan    // the plan for which joints were last computed
}

func (l *looping) begin(blocks []loops.Block, p *prober) {
	l.machine, l.prober = loops.New(blocks), p
	// Never fails (crypto/rand).
	_, _ = rand.Read(l.sender.ID[:])
	_, _ = rand.Read(l.sender.Key[:])
}

func (l *looping) blocked(id plan.PortID) (loops.Block, bool) {
	if l.machine == nil {
		return loops.Block{}, false
	}
	return l.machine.Blocked(id)
}

func (l *looping) changes() []loops.Change {
	if l.machine == nil {
		return nil
	}
	return l.machine.Changes()
}

// problem returns the problem of a port that is blocked because of a network loop; none for other ports.
func (l *looping) problem(id plan.PortID) problem.Problem {
	b, blocked := l.blocked(id)
	switch {
	case !blocked:
		return problem.Problem{}
	case b.Seen:
		return problem.Problem{Code: problem.LoopSeen, Peer: id.Name, Since: b.Since, Detail: b.Why}
	}
	return problem.Problem{Code: problem.LoopProbed, Peer: id.Name, Since: b.Since, Detail: b.Why}
}

// loopsDue is ready when the next step of a search for loops is due.
func (l *looping) loopsDue() <-chan time.Time {
	if l.timer == nil {
		return nil
	}
	return l.timer.C
}

// seeLoops notes, before a plan is activated, which ports exist and which network loops their devices show.
func (l *looping) seeLoops(now *plan.Plan, bounds []bound) {
	if l.machine == nil {
		return
	}
	at := time.Now()
	there := make(map[plan.PortID]bool, len(bounds))
	for _, b := range bounds {
		there[b.id] = true
		if b.port != nil && !b.port.Policy.LoopDetection.V {
			l.machine.Free(b.id, at)
		}
	}
	isThere := func(id plan.PortID) bool { return there[id] }
	l.machine.Keep(isThere)
	l.relay.Keep(isThere)
	if joints := jointsOf(bounds); l.in != now || !slices.Equal(joints, l.joints) {
		l.joints, l.in = joints, now
		l.machine.See(loops.Ways(now, joints), at)
	}
	l.state.Loops = l.machine.Blocks()
	l.wakeForLoops()
}

// closesLoop returns which network loops a configuration would close through devices that can be seen. A loop that
// exists without the configuration, because somebody joined devices just now, is no fault of the change: its port is
// about to be blocked.
func (l *looping) closesLoop(cfg *spec.Config) (lines []string) {
	if l.machine == nil || len(cfg.Switches) == 0 {
		return nil
	}
	closed := l.closedBy(cfg)
	if len(closed) == 0 {
		return nil
	}
	var before []loops.Loop
	if l.ports.cfg != nil {
		before = l.closedBy(l.ports.cfg)
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
func (l *looping) closedBy(cfg *spec.Config) []loops.Loop {
	joints := jointsOf(l.boundBy(cfg))
	if len(joints) == 0 {
		return nil
	}
	p, err := l.ports.resolve(cfg)
	if err != nil {
		return nil // reported where the plan is made
	}
	return loops.Find(loops.Ways(p, joints))
}

// boundBy returns the ports and uplinks of a configuration with the devices that exist.
func (s *shared) boundBy(cfg *spec.Config) (all []bound) {
	add := func(sw, name, device string) {
		if d, ok, err := s.dev.Device(device); device != "" && ok && err == nil {
			all = append(all, bound{id: plan.PortID{Switch: sw, Name: name}, device: d})
		}
	}
	for _, sw := range cfg.Switches {
		for _, u := range sw.Uplinks {
			add(sw.Name, u.Name, u.Device)
		}
	}
	for _, p := range cfg.Ports {
		if p.Role != spec.Host {
			add(p.Switch, p.Name, p.Device)
		}
	}
	return all
}

// jointsOf returns the veth pairs of which both ends are ports or uplinks.
func jointsOf(bounds []bound) (joints []loops.Joint) {
	by := map[uint32]plan.PortID{}
	for _, b := range bounds {
		if d := b.device; d.Kind == hostdev.Veth && !d.Peer.Elsewhere {
			if other, ok := by[d.Peer.Index]; ok {
				joints = append(joints, loops.Joint{A: other, B: b.id})
			}
			by[d.Index] = b.id
		}
	}
	return joints
}

func (l *looping) wakeForLoops() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if next := l.machine.Next(); !next.IsZero() {
		l.timer = time.NewTimer(time.Until(next))
	}
}

// goOnWithLoops sends the probes that are due, and blocks or unblocks ports.
func (l *looping) goOnWithLoops() {
	if l.machine == nil || l.Active().Applied == nil {
		return
	}
	send, changes := l.machine.Due(time.Now())
	for _, s := range send {
		l.prober.send(l.probes(s))
	}
	if len(changes) > 0 {
		l.settler.settle()
		l.tellLoops(changes)
	}
	l.wakeForLoops()
}

// tellLoops reports which ports were blocked and unblocked.
func (l *looping) tellLoops(changes []loops.Change) {
	for _, c := range changes {
		e := about("port", c.Port)
		e.Kind, e.From, e.To = event.Loop, "in service", "blocked"
		e.Text = fmt.Sprintf("port %s is blocked because of a loop: %s", c.Port.Name, c.Why)
		if c.Lifted {
			e.From, e.To = e.To, e.From
			e.Text = fmt.Sprintf("port %s is in service again: no loop goes through it any more", c.Port.Name)
			l.log.Info(e.Text, "switch", c.Port.Switch)
		} else {
			l.log.Warn(e.Text, "switch", c.Port.Switch)
		}
		l.events.Publish(e)
	}
}

// heardOfLoop processes a sign of a loop, or a probe that was received.
func (l *looping) heardOfLoop(t dataplane.Told) {
	if l.machine == nil || l.Active().Applied == nil {
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
		l.log.Debug("a probe for loops came in", "port", t.Port.String(), "what", err)
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
func (l *looping) sendOn(t dataplane.Told, in loops.End) {
	port := l.Active().Applied.Plan.Port(t.Port)
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
func (l *looping) endFor(id plan.PortID, vlan uint16, ad bool) (loops.End, bool) {
	if u := l.Active().Applied.Plan.Uplink(id); u != nil {
		seg, ok := loops.SegmentOf(id.Switch, &plan.VLAN{Mode: plan.VLANTrunk, Set: u.VLANs}, true, vlan, ad)
		return loops.End{ID: id, Number: u.Number, Uplink: true, Segment: seg}, ok
	}
	p := l.Active().Applied.Plan.Port(id)
	if p == nil {
		return loops.End{}, false
	}
	e, ok := loops.EndOf(p), false
	e.Segment, ok = loops.SegmentOf(id.Switch, &p.Policy.VLAN.V, false, vlan, ad)
	return e, ok
}

// endOf returns where a probe of this agent was sent from, false if that port no longer exists.
func (l *looping) endOf(p loops.Probe) (loops.End, bool) {
	at := func(e loops.End) (loops.End, bool) {
		e.Segment = loops.Segment{Switch: e.ID.Switch, VLAN: p.VLAN, AD: p.AD}
		return e, true
	}
	for _, sw := range l.Active().Applied.Plan.Switches {
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

// retryLoop tries at once to unblock a port that was blocked because of a loop, and reports it; it does nothing if the
// port was not blocked for that.
func (l *looping) retryLoop(id plan.PortID) []string {
	switch b, blocked := l.blocked(id); {
	case !blocked:
		return nil
	case l.machine.Retry(id, time.Now()):
		l.goOnWithLoops()
		return []string{fmt.Sprintf("port %s was blocked because of a loop (%s): it is being tried now, and comes "+
			"back if no loop goes through it any more; "+
			"see heddle port show %s", id.Name, b.Why, printable.ShellWord(id.Name))}
	default:
		return []string{fmt.Sprintf("port %s stays blocked because of a loop that its devices make (%s): take one of "+
			"them away, "+
			"or set security: {loopDetection: false} on its port group", id.Name, b.Why)}
	}
}
