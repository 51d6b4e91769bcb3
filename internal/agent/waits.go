package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/dataplane"
	"heddle/internal/host/guest"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// A port waits while its guest runs elsewhere: the guest will arrive by migration, or has left by migration (S99). The
// port is not announced, its MAC does not count as this host's, and no copy is delivered to it. The program ends a wait
// by itself at the port's first frame. The agent starts waits, and ends them when QEMU or an operator says that the
// guest runs.

// expectFor is how long an announced guest is expected.
const expectFor = time.Minute

// waiting owns the ports that wait.
type waiting struct {
	*shared
	ports   *ports
	effect  *effect
	settler *settler
	teaming *teaming
	holding *holding
	// plan is the one whose ports wait; nil before the first reconcile.
	plan *plan.Plan
	// change makes one change of the desired state.
	change func(edit func()) error
	// followed is called when waits have begun or ended.
	followed func()
	// again has the hypervisor of a port asked where its guest runs: it is reported even if it is as before.
	again []func(p *plan.Port)

	adapters guest.Adapters         // what QEMU monitors showed
	domains  map[string]guest.Run   // what libvirt said last, by domain
	overdue  map[plan.PortID]uint32 // waits reported as long, by their numbers
}

// waitFact adds to a port's fact whether the port waits, and returns its problem; none for nothing.
func (wt *waiting) waitFact(id plan.PortID, f *plan.Fact) problem.Problem {
	w := wt.state.WaitOf(id)
	if w != nil && w.MAC.IsZero() && w.InPlaceOf == "" {
		wt.take(id, w, presence.Device(&w.Wait, f.Up))
		w = wt.state.WaitOf(id)
	}
	if w == nil {
		return problem.Problem{}
	}
	f.Wait, f.Left, f.Awake = w.Number, w.Left, w.Awake
	if !w.Overdue(time.Now()) {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.GuestOverdue, Peer: id.Name, Since: w.Since, Detail: w.Why.Text()}
}

// elsewhere reports whether the guest of a port is known to run elsewhere.
func (wt *waiting) elsewhere(id plan.PortID) bool {
	w := wt.state.WaitOf(id)
	return w != nil && w.Silent() && !w.Doubt
}

// take takes a step with a port's wait; w is nil for a port without one. It reports whether anything changed.
func (wt *waiting) take(id plan.PortID, w *state.Wait, step presence.Step) (changed bool) {
	next := state.Wait{ID: id, Wait: step.Next}
	if w != nil {
		next.MAC, next.Monitor = w.MAC, w.Monitor
		if !step.Next.Left {
			next.InPlaceOf = w.InPlaceOf
		}
	}
	switch step.Do {
	case presence.Nothing:
		return false
	case presence.Begin:
		wt.beginWait(next)
	case presence.End:
		return wt.wake(w, step)
	case presence.Over:
		wt.woke(w, step)
	case presence.Note:
		wt.state.PutWait(next)
		switch {
		case w.Unsure():
			wt.publishWait(event.Awake, id, "its guest runs here again")
		case w.Doubt && !next.Doubt:
			wt.publishWait(event.Waiting, id, next.Text())
		}
	case presence.Forget:
		wt.state.DropWait(id)
	}
	return true
}

// presenceOf is the part of a port's record by which its presence is decided; nil without a record.
func presenceOf(w *state.Wait) *presence.Wait {
	if w == nil {
		return nil
	}
	return &w.Wait
}

// sawRuns processes what the QEMU monitors now report about where guests run.
func (wt *waiting) sawRuns(news map[string]guest.Sight) {
	changed := wt.lookForAwake()
	for _, sw := range wt.plan.Switches {
		for _, p := range sw.Ports {
			if s, told := news[p.Monitor.Socket]; told && p.Monitor.Socket != "" {
				changed = wt.saw(p, s.Run, observe.WaitQEMUStopped, "its QEMU runs it") || changed
			}
		}
	}
	if changed {
		wt.followWaits()
	}
}

// sawDomains processes what libvirt now reports about where guests run. A monitor that answers has precedence.
func (wt *waiting) sawDomains(news map[string]guest.Run) {
	maps.Copy(wt.domains, news)
	maps.DeleteFunc(wt.domains, func(_ string, run guest.Run) bool { return run == guest.RunUnknown })
	changed := wt.lookForAwake()
	for _, sw := range wt.plan.Switches {
		for _, p := range sw.Ports {
			run, told := news[p.Domain]
			if told && p.Domain != "" &&
				(p.Monitor.Socket == "" || wt.adapters[p.Monitor.Socket].Run == guest.RunUnknown) {
				changed = wt.saw(p, run, observe.WaitLibvirtStopped, "libvirt says that it runs") || changed
			}
		}
	}
	if changed {
		wt.followWaits()
	}
}

// saw starts or ends the wait of a port by what a hypervisor reports about its guest.
func (wt *waiting) saw(p *plan.Port, run guest.Run, left observe.WaitEvidence, here string) (changed bool) {
	w := wt.state.WaitOf(p.ID)
	return wt.take(p.ID, w, presence.Saw(presenceOf(w), run, left, here))
}

// beginWait starts the wait of a port. A doubt is not published: it is over soon.
func (wt *waiting) beginWait(w state.Wait) {
	w.Since = time.Now()
	wt.state.BeginWait(w)
	if !w.Doubt {
		wt.publishWait(event.Waiting, w.ID, w.Text())
	}
}

// wake ends a wait, in the kernel first.
func (wt *waiting) wake(w *state.Wait, step presence.Step) (ended bool) {
	if err := wt.kernel.Waits().End(w.ID, w.Number); err != nil {
		wt.Complain("end the wait of a port", err)
		return false
	}
	wt.woke(w, step)
	return true
}

// woke records that a wait is over.
func (wt *waiting) woke(w *state.Wait, step presence.Step) {
	wt.teaming.announceAwake(w.Number)
	id, after, doubt := w.ID, time.Since(w.Since).Round(time.Millisecond), w.Doubt
	wt.state.EndWait(id, step.Next.Doubt)
	switch {
	case step.Next.Doubt:
		wt.publishWait(event.Awake, id, fmt.Sprintf("a frame of its guest came %s after its hypervisor had stopped "+
			"it: the port speaks, and the hypervisor is asked again", after))
		wt.askAgain(id)
	case !doubt: // otherwise nobody was informed that it waited
		wt.publishWait(event.Awake, id, fmt.Sprintf("its guest runs here: %s, after a wait of %s", step.Why, after))
	}
}

// said is what a port's hypervisor said last about where its guest runs: nothing yet while the agent starts.
func (wt *waiting) said(id plan.PortID) guest.Run {
	if wt.plan == nil {
		return guest.RunUnknown
	}
	p := wt.plan.Port(id)
	if p == nil {
		return guest.RunUnknown
	}
	if run := wt.adapters[p.Monitor.Socket].Run; run != guest.RunUnknown {
		return run
	}
	return wt.domains[p.Domain]
}

// askAgain has a port's hypervisor asked where its guest runs.
func (wt *waiting) askAgain(id plan.PortID) {
	if p := wt.plan.Port(id); p != nil {
		for _, ask := range wt.again {
			ask(p)
		}
	}
}

func (wt *waiting) publishWait(k event.Kind, id plan.PortID, text string) {
	e := about("port", id)
	e.Kind, e.Text = k, "port "+id.Name+": "+text
	wt.events.Publish(e)
	wt.log.Info(string(k), "port", id.String(), "what", text)
}

// toldAwake processes the program's report that a waiting port has sent a frame.
func (wt *waiting) toldAwake(e dataplane.Told) {
	w := wt.state.WaitOf(e.Port)
	if w != nil && w.Number == e.Wait && wt.take(e.Port, w, presence.Sent(&w.Wait, e.Wait, wt.said(e.Port))) {
		wt.followWaits()
	}
}

// lookForAwake finds the waits that the program has ended and whose report was lost.
func (wt *waiting) lookForAwake() (changed bool) {
	if !slices.ContainsFunc(wt.state.Waits, func(w state.Wait) bool { return w.Silent() }) {
		return false
	}
	over, err := wt.kernel.Waits().Over()
	if err != nil {
		wt.Complain("follow the ports that wait for their guests", err)
		return false
	}
	for _, w := range wt.state.Waits {
		changed = wt.take(w.ID, &w, presence.Sent(&w.Wait, over[w.ID], wt.said(w.ID))) || changed
	}
	return changed
}

// doubt makes a port wait that was just connected and has a monitor, until its QEMU says whether the guest runs here.
func (wt *waiting) doubt(p *plan.Port) {
	w := wt.state.WaitOf(p.ID)
	wt.take(p.ID, w, presence.Connected(presenceOf(w), p.Monitor.Socket != "", wt.adapters[p.Monitor.Socket].Run))
}

// endDoubts ends the waits for QEMUs that do not answer.
func (wt *waiting) endDoubts() (ended bool) {
	now := time.Now()
	for _, w := range wt.state.Waits {
		ended = wt.take(w.ID, &w, presence.Tick(&w.Wait, now)) || ended
	}
	return ended
}

// watchWaits is called every second.
func (wt *waiting) watchWaits() {
	changed := wt.lookForAwake()
	if wt.endDoubts() || changed {
		wt.followWaits()
	}
	wt.succeedAll()
	wt.tellOverdue()
}

// tellOverdue publishes one event for each wait that has become long. A restarted agent publishes it again, since the
// earlier events are gone.
func (wt *waiting) tellOverdue() {
	told := map[plan.PortID]uint32{}
	for _, w := range wt.state.Waits {
		if !w.Overdue(time.Now()) {
			continue
		}
		told[w.ID] = w.Number
		if wt.overdue[w.ID] != w.Number {
			wt.publishWait(event.Overdue, w.ID, w.Text()+fmt.Sprintf("; nothing has come from it for %s",
				time.Since(w.Since).Round(time.Second)))
			wt.settler.settleSoon() // to show it at the port
		}
	}
	wt.overdue = told
}

// resumeWaits takes over the waits of the previous agent, also those that it had no time to write down.
func (wt *waiting) resumeWaits() error {
	over, err := wt.kernel.Waits().Over()
	if err != nil {
		return err
	}
	begun, err := wt.kernel.Waits().Begun()
	if err != nil {
		return err
	}
	for _, numbers := range []map[plan.PortID]uint32{over, begun} {
		for _, n := range numbers { // also if that agent's state is lost
			wt.state.LastWait = max(wt.state.LastWait, n)
		}
	}
	wt.lookForAwake()
	for id, n := range begun {
		if over[id] < n {
			w := wt.state.WaitOf(id)
			wt.take(id, w, presence.Resumed(presenceOf(w), n))
		}
	}
	return nil
}

// followWaits makes changed waits active at once, before anything is written to disk; the rest follows.
func (wt *waiting) followWaits() {
	wt.activateWaits()
	wt.followed()
	wt.settler.settleSoon()
	wt.succeedAll()
}

// activateWaits changes nothing but waits in what is active. If it can't, the reconcile that follows does.
func (wt *waiting) activateWaits() {
	if !wt.effect.changes() {
		return
	}
	now, err := wt.effect.change(func(facts plan.Facts) {
		for _, w := range wt.state.Waits {
			if f, ok := facts[w.ID]; ok {
				f.Wait, f.Left, f.Awake = w.Number, w.Left, w.Awake
				facts[w.ID] = f
			}
		}
	}, wt.teaming.formed())
	if err != nil {
		wt.Complain("activate which ports wait for their guests", err)
		return
	}
	wt.teaming.moved(now)
}

// keepWaits removes the waits of ports that are gone, and of those whose device went down since, and returns to ports
// the MACs that they lacked while another port had the same. changed reports whether the configuration has changed.
func (wt *waiting) keepWaits(now *active.Draft) (changed bool) {
	wt.plan = now.Plan
	for _, w := range wt.state.Waits {
		gone := wt.state.Of(w.ID) == nil && (w.Awake || w.Left) && wt.Active().Applied != nil // its device is gone
		if wt.plan.Port(w.ID) == nil || gone && !w.Beside() {
			wt.state.DropWait(w.ID)
			continue
		}
		if w.MAC.IsZero() || wt.othersWith(w) {
			continue
		}
		wt.state.Ports = slices.Clone(wt.state.Ports)
		if run := wt.ports.runTime(w.ID.Name); run != nil {
			w.Give(run)
		}
		wt.state.PutWait(w)
		changed = true
	}
	if changed {
		wt.ports.cfg, _ = wt.ports.layers().merge()
	}
	return changed
}

// othersWith reports whether another port of the switch has the MAC of a wait.
func (wt *waiting) othersWith(w state.Wait) bool {
	return slices.ContainsFunc(wt.plan.Switch(w.ID.Switch).Ports, func(p *plan.Port) bool {
		return p.ID != w.ID && p.InitialMAC == w.MAC
	})
}

// rivals adds a problem to a port that shares its MAC with another port while the guests of both run: it names the port
// that gets the frames.
func (wt *waiting) rivals(now *active.Draft, sw *plan.Switch, facts plan.Facts) {
	by := map[plan.MAC]*plan.Port{}
	for _, p := range sw.Ports {
		f, ok := facts[p.ID]
		if !ok || !f.Up || f.Waits() || p.InitialMAC.IsZero() {
			continue
		}
		other := by[p.InitialMAC]
		if other == nil {
			by[p.InitialMAC] = p
			continue
		}
		winner, loser := other, p
		if f.Wait > facts[other.ID].Wait {
			winner, loser = p, other
			by[p.InitialMAC] = p
		}
		now.Report(loser.ID, problem.Problem{Code: problem.RivalGuest, Peer: winner.ID.Name,
			MAC: p.InitialMAC.String()})
	}
}
