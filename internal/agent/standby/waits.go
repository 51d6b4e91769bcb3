package standby

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/guest"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Document is what the agent remembers of waits: state.State has it. Its methods are those of that name.
type Document interface {
	WaitOf(plan.PortID) *state.Wait
	BeginWait(state.Wait)
	PutWait(state.Wait)
	EndWait(id plan.PortID, unsure bool)
	DropWait(plan.PortID)
}

// Host is what the part needs of its host. Its functions are called in the loop.
type Host struct {
	active.Reader
	Log      *slog.Logger
	Events   *event.Bus
	Complain func(what string, err error)
	// Kernel has the waits of the switch program.
	Kernel   func() dataplane.Waits
	Document Document
	// Waits are those of the document; the list is replaced and never changed in place. Last is the highest number
	// given to a wait.
	Waits *[]state.Wait
	Last  *uint32
	// HasDevice reports whether a port has its device.
	HasDevice func(plan.PortID) bool
	// Activate changes facts of what is active at once; where it can't, the reconcile that follows does.
	Activate func(edit func(plan.Facts)) error
	// Partly: the last plan was applied only in part.
	Partly func() bool
	// Announce announces the port whose wait of that number is over.
	Announce func(wait uint32)
	// GiveMAC returns to a run-time port the MAC that it lacked during a wait.
	GiveMAC func(*state.Wait)
	// Changed is called when waits have begun or ended, before the reconcile that follows; Followed after it.
	Changed, Followed func()
	// Settle reconciles at once, SettleSoon when the share of CPU time allows it, SettleNext after the call that is
	// being answered. Complaint is what failed last.
	Settle, SettleSoon, SettleNext func()
	Complaint                      func() string
}

// Part has the ports that wait. Only the agent's loop uses it.
type Part struct {
	host Host
	// plan is the one whose ports wait; nil before the first reconcile.
	plan *plan.Plan
	// again has the hypervisor of a port asked where its guest runs: it is reported even if it is as before.
	again []func(p *plan.Port)

	adapters guest.Adapters         // what QEMU monitors showed
	domains  map[string]guest.Run   // what libvirt said last, by domain
	overdue  map[plan.PortID]uint32 // waits reported as long, by their numbers
}

// New returns the part.
func New(h Host) *Part {
	return &Part{host: h, adapters: guest.Adapters{}, domains: map[string]guest.Run{}}
}

// Ask adds how a port's hypervisor is asked where its guest runs. It is called before the loop runs.
func (wt *Part) Ask(again func(p *plan.Port)) { wt.again = append(wt.again, again) }

// SeenBy is what a QEMU monitor showed last.
func (wt *Part) SeenBy(socket string) guest.Sight { return wt.adapters[socket] }

// Monitors is how many QEMU monitors have shown something.
func (wt *Part) Monitors() int { return len(wt.adapters) }

// Onto adds to a port's fact what its QEMU shows of the adapter, and returns its problem; none for nothing.
func (wt *Part) Onto(p *plan.Port, f *plan.Fact) problem.Problem { return wt.adapters.Onto(p, f) }

// Fact adds to a port's fact whether the port waits, and returns its problem; none for nothing.
func (wt *Part) Fact(id plan.PortID, f *plan.Fact) problem.Problem {
	w := wt.host.Document.WaitOf(id)
	if w != nil && w.MAC.IsZero() && w.InPlaceOf == "" {
		wt.take(id, w, presence.Device(&w.Wait, f.Up))
		w = wt.host.Document.WaitOf(id)
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

// Elsewhere reports whether the guest of a port is known to run elsewhere.
func (wt *Part) Elsewhere(id plan.PortID) bool {
	w := wt.host.Document.WaitOf(id)
	return w != nil && w.Silent() && !w.Doubt
}

// take takes a step with a port's wait; w is nil for a port without one. It reports whether anything changed.
func (wt *Part) take(id plan.PortID, w *state.Wait, step presence.Step) (changed bool) {
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
		wt.Begin(next)
	case presence.End:
		return wt.Wake(w, step)
	case presence.Over:
		wt.woke(w, step)
	case presence.Note:
		wt.host.Document.PutWait(next)
		switch {
		case w.Unsure():
			wt.publish(event.Awake, id, "its guest runs here again")
		case w.Doubt && !next.Doubt:
			wt.publish(event.Waiting, id, next.Text())
		}
	case presence.Forget:
		wt.host.Document.DropWait(id)
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

// SawRuns processes what the QEMU monitors now report about where guests run.
func (wt *Part) SawRuns(news map[string]guest.Sight) {
	wt.adapters.Take(news)
	changed := wt.lookForAwake()
	for _, sw := range wt.plan.Switches {
		for _, p := range sw.Ports {
			if s, told := news[p.Monitor.Socket]; told && p.Monitor.Socket != "" {
				changed = wt.saw(p, s.Run, observe.WaitQEMUStopped, "its QEMU runs it") || changed
			}
		}
	}
	if changed {
		wt.Follow()
	}
}

// SawDomains processes what libvirt now reports about where guests run. A monitor that answers has precedence.
func (wt *Part) SawDomains(news map[string]guest.Run) {
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
		wt.Follow()
	}
}

// saw starts or ends the wait of a port by what a hypervisor reports about its guest.
func (wt *Part) saw(p *plan.Port, run guest.Run, left observe.WaitEvidence, here string) (changed bool) {
	w := wt.host.Document.WaitOf(p.ID)
	return wt.take(p.ID, w, presence.Saw(presenceOf(w), run, left, here))
}

// Begin starts the wait of a port. A doubt is not published: it is over soon.
func (wt *Part) Begin(w state.Wait) {
	w.Since = time.Now()
	wt.host.Document.BeginWait(w)
	if !w.Doubt {
		wt.publish(event.Waiting, w.ID, w.Text())
	}
}

// Wake ends a wait, in the kernel first.
func (wt *Part) Wake(w *state.Wait, step presence.Step) (ended bool) {
	if err := wt.host.Kernel().End(w.ID, w.Number); err != nil {
		wt.host.Complain("end the wait of a port", err)
		return false
	}
	wt.woke(w, step)
	return true
}

// woke records that a wait is over.
func (wt *Part) woke(w *state.Wait, step presence.Step) {
	wt.host.Announce(w.Number)
	id, after, doubt := w.ID, time.Since(w.Since).Round(time.Millisecond), w.Doubt
	wt.host.Document.EndWait(id, step.Next.Doubt)
	switch {
	case step.Next.Doubt:
		wt.publish(event.Awake, id, fmt.Sprintf("a frame of its guest came %s after its hypervisor had stopped "+
			"it: the port speaks, and the hypervisor is asked again", after))
		wt.askAgain(id)
	case !doubt: // otherwise nobody was informed that it waited
		wt.publish(event.Awake, id, fmt.Sprintf("its guest runs here: %s, after a wait of %s", step.Why, after))
	}
}

// said is what a port's hypervisor said last about where its guest runs: nothing yet while the agent starts.
func (wt *Part) said(id plan.PortID) guest.Run {
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
func (wt *Part) askAgain(id plan.PortID) {
	if p := wt.plan.Port(id); p != nil {
		for _, ask := range wt.again {
			ask(p)
		}
	}
}

func (wt *Part) publish(k event.Kind, id plan.PortID, text string) {
	wt.host.Events.Publish(event.Event{Kind: k, Switch: id.Switch, Port: id.Name, Text: "port " + id.Name + ": " +
		text})
	wt.host.Log.Info(string(k), "port", id.String(), "what", text)
}

// ToldAwake processes the program's report that a waiting port has sent a frame.
func (wt *Part) ToldAwake(e dataplane.Told) {
	w := wt.host.Document.WaitOf(e.Port)
	if w != nil && w.Number == e.Wait && wt.take(e.Port, w, presence.Sent(&w.Wait, e.Wait, wt.said(e.Port))) {
		wt.Follow()
	}
}

// lookForAwake finds the waits that the program has ended and whose report was lost.
func (wt *Part) lookForAwake() (changed bool) {
	if !slices.ContainsFunc(*wt.host.Waits, func(w state.Wait) bool { return w.Silent() }) {
		return false
	}
	over, err := wt.host.Kernel().Over()
	if err != nil {
		wt.host.Complain("follow the ports that wait for their guests", err)
		return false
	}
	for _, w := range *wt.host.Waits {
		changed = wt.take(w.ID, &w, presence.Sent(&w.Wait, over[w.ID], wt.said(w.ID))) || changed
	}
	return changed
}

// Taken makes a port wait that was just connected and has a monitor, until its QEMU says whether the guest runs here.
func (wt *Part) Taken(p *plan.Port) {
	w := wt.host.Document.WaitOf(p.ID)
	wt.take(p.ID, w, presence.Connected(presenceOf(w), p.Monitor.Socket != "", wt.adapters[p.Monitor.Socket].Run))
}

// EndDoubts ends the waits for QEMUs that do not answer.
func (wt *Part) EndDoubts() (ended bool) {
	now := time.Now()
	for _, w := range *wt.host.Waits {
		ended = wt.take(w.ID, &w, presence.Tick(&w.Wait, now)) || ended
	}
	return ended
}

// Watch is called every second.
func (wt *Part) Watch() {
	changed := wt.lookForAwake()
	if wt.EndDoubts() || changed {
		wt.Follow()
	}
	wt.host.Followed()
	wt.tellOverdue()
}

// tellOverdue publishes one event for each wait that has become long. A restarted agent publishes it again, since the
// earlier events are gone.
func (wt *Part) tellOverdue() {
	told := map[plan.PortID]uint32{}
	for _, w := range *wt.host.Waits {
		if !w.Overdue(time.Now()) {
			continue
		}
		told[w.ID] = w.Number
		if wt.overdue[w.ID] != w.Number {
			wt.publish(event.Overdue, w.ID, w.Text()+fmt.Sprintf("; nothing has come from it for %s",
				time.Since(w.Since).Round(time.Second)))
			wt.host.SettleSoon() // to show it at the port
		}
	}
	wt.overdue = told
}

// Resume takes over the waits of the previous agent, also those that it had no time to write down.
func (wt *Part) Resume() error {
	over, err := wt.host.Kernel().Over()
	if err != nil {
		return err
	}
	begun, err := wt.host.Kernel().Begun()
	if err != nil {
		return err
	}
	for _, numbers := range []map[plan.PortID]uint32{over, begun} {
		for _, n := range numbers { // also if that agent's state is lost
			*wt.host.Last = max(*wt.host.Last, n)
		}
	}
	wt.lookForAwake()
	for id, n := range begun {
		if over[id] < n {
			w := wt.host.Document.WaitOf(id)
			wt.take(id, w, presence.Resumed(presenceOf(w), n))
		}
	}
	return nil
}

// Follow makes changed waits active at once, before anything is written to disk; the rest follows.
func (wt *Part) Follow() {
	wt.activate()
	wt.host.Changed()
	wt.host.SettleSoon()
	wt.host.Followed()
}

// activate changes nothing but waits in what is active. If it can't, the reconcile that follows does.
func (wt *Part) activate() {
	err := wt.host.Activate(func(facts plan.Facts) {
		for _, w := range *wt.host.Waits {
			if f, ok := facts[w.ID]; ok {
				f.Wait, f.Left, f.Awake = w.Number, w.Left, w.Awake
				facts[w.ID] = f
			}
		}
	})
	if err != nil {
		wt.host.Complain("activate which ports wait for their guests", err)
	}
}

// Keep removes the waits of ports that are gone, and of those whose device went down since, and returns to ports
// the MACs that they lacked while another port had the same. changed reports whether the configuration has changed.
func (wt *Part) Keep(now *active.Draft) (changed bool) {
	wt.plan = now.Plan
	for _, w := range *wt.host.Waits {
		gone := !wt.host.HasDevice(w.ID) && (w.Awake || w.Left) && wt.host.Active().Applied != nil // its device is gone
		if wt.plan.Port(w.ID) == nil || gone && !w.Beside() {
			wt.host.Document.DropWait(w.ID)
			continue
		}
		if w.MAC.IsZero() || wt.othersWith(w) {
			continue
		}
		wt.host.GiveMAC(&w)
		wt.host.Document.PutWait(w)
		changed = true
	}
	return changed
}

// othersWith reports whether another port of the switch has the MAC of a wait.
func (wt *Part) othersWith(w state.Wait) bool {
	return slices.ContainsFunc(wt.plan.Switch(w.ID.Switch).Ports, func(p *plan.Port) bool {
		return p.ID != w.ID && p.InitialMAC == w.MAC
	})
}

// Rivals adds a problem to a port that shares its MAC with another port while the guests of both run: it names the port
// that gets the frames.
func (wt *Part) Rivals(now *active.Draft, sw *plan.Switch, facts plan.Facts) {
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

// Close is there for the table of parts.
func (wt *Part) Close() error { return nil }

// Told ends the wait of a port because somebody says that its guest runs here. What the port's hypervisor says counts
// first.
func (wt *Part) Told(p *plan.Port) error {
	w := wt.host.Document.WaitOf(p.ID)
	step, believed := presence.Told(presenceOf(w), wt.adapters[p.Monitor.Socket].Run)
	if !believed {
		return api.NewError(api.Invalid, fmt.Sprintf("port %s stays silent: its QEMU says at %s that the guest does "+
			"not run here (%s); let the QEMU run it (\"cont\" at its monitor), or end that QEMU", p.ID.Name,
			p.Monitor.Socket, w.Text()))
	}
	if wt.take(p.ID, w, step) {
		wt.Follow()
	}
	return nil
}
