package agent

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/event"
	"heddle/internal/guest"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/state"
	"heddle/internal/teams"
)

// A port waits while its guest runs elsewhere: one that is to arrive by a migration, or has left by one (S99). Nothing is announced for it,
// its MAC is not the host's, and no copy is handed to it. The program ends a wait by itself at the port's first frame; the agent begins
// waits, and ends them where QEMU or an operator says that the guest runs.

const (
	// waitLong is how long a port waits before that is a problem to be shown. It goes on waiting.
	waitLong = time.Minute
	// doubtAtMost is how long a port waits for its QEMU to say whether the guest runs here.
	doubtAtMost = 2 * time.Second
	// expectFor is how long a guest is expected whose manager has announced it.
	expectFor = time.Minute
)

// waitFact adds to a port's fact whether it waits, and gives what is wrong with that; "" for nothing.
func (a *Agent) waitFact(id plan.PortID, f *plan.Fact) string {
	w := a.state.WaitOf(id)
	if w == nil || a.waitEndsWith(w, f.Up) {
		return ""
	}
	f.Wait, f.Awake = w.Number, w.Awake
	if w.Awake || w.Left || w.Doubt || time.Since(w.Since) < waitLong {
		return ""
	}
	return fmt.Sprintf("%s. Nothing has come from it since %s; when it runs here, say so: heddle port activate %q",
		w.Text(), w.Since.Format(time.TimeOnly), id.Name)
}

// waitEndsWith forgets the wait of a port whose device shows that it is another guest's now: it went down when the wait was over, or came
// up again after the guest had left and its QEMU had ended.
func (a *Agent) waitEndsWith(w *state.Wait, up bool) bool {
	if !w.MAC.IsZero() || w.InPlaceOf != "" {
		return false
	}
	switch {
	case w.Awake && !up, w.Left && w.Down && up:
		a.state.DropWait(w.ID)
		return true
	case w.Left && !up && !w.Down:
		down := *w
		down.Down = true
		a.state.PutWait(down)
	}
	return false
}

// sawRuns takes in where guests run, by what their monitors say now.
func (a *Agent) sawRuns(news map[string]guest.Sight) {
	changed := false
	for _, sw := range a.plan.Switches {
		for _, p := range sw.Ports {
			if s, told := news[p.Monitor.Socket]; told && p.Monitor.Socket != "" {
				changed = a.judgeRun(p, s.Run) || changed
			}
		}
	}
	if changed {
		a.followWaits()
	}
}

// judgeRun begins or ends the wait of a port by what its monitor says. One migration begins one wait: what the guest itself has ended by a
// frame, a monitor that is late does not begin again.
func (a *Agent) judgeRun(p *plan.Port, run guest.Run) (changed bool) {
	w := a.state.WaitOf(p.ID)
	switch {
	case run == guest.RunWaits && (w == nil || w.Doubt && !w.Awake):
		begun := state.Wait{ID: p.ID, Why: "its QEMU waits for it"}
		if w != nil {
			begun.MAC, begun.Monitor, begun.InPlaceOf = w.MAC, w.Monitor, w.InPlaceOf
		}
		a.beginWait(begun)
	case run == guest.RunLeft && (w == nil || w.Awake):
		begun := state.Wait{ID: p.ID, Left: true, Why: "its QEMU has stopped it"}
		if w != nil {
			begun.MAC, begun.Monitor = w.MAC, w.Monitor
		}
		a.beginWait(begun)
	case run == guest.RunHere && w != nil && !w.Awake:
		return a.wake(w, "its QEMU runs it")
	default:
		return false
	}
	return true
}

// beginWait has a port wait from now on.
func (a *Agent) beginWait(w state.Wait) {
	w.Since = time.Now()
	a.state.BeginWait(w)
	a.publishWait(event.Waiting, w.ID, w.Text())
}

// wake ends a wait, in the kernel first.
func (a *Agent) wake(w *state.Wait, why string) (ended bool) {
	if err := a.kernel.Wake(w.ID, w.Number); err != nil {
		a.complain("end the wait of a port", err)
		return false
	}
	a.woke(w, why)
	return true
}

// woke notes that a wait is over.
func (a *Agent) woke(w *state.Wait, why string) {
	id, after, doubt := w.ID, time.Since(w.Since), w.Doubt
	a.state.EndWait(id)
	if doubt {
		return // nobody was told that it waited
	}
	a.publishWait(event.Awake, id, fmt.Sprintf("its guest runs here: %s, after a wait of %s", why, after.Round(time.Millisecond)))
}

func (a *Agent) publishWait(k event.Kind, id plan.PortID, text string) {
	e := a.at("port", id)
	e.Kind, e.Text = k, "port "+id.Name+": "+text
	a.events.Publish(e)
	a.log.Info(string(k), "port", id.String(), "what", text)
}

// toldAwake is the program's word that a port which waited has sent a frame.
func (a *Agent) toldAwake(e dataplane.Told) {
	w := a.state.WaitOf(e.Port)
	if w == nil || w.Awake || w.Number != e.Wait {
		return
	}
	a.woke(w, "it has sent a frame")
	a.followWaits()
}

// lookForAwake finds the waits that the program has ended while nobody heard of it.
func (a *Agent) lookForAwake() (changed bool) {
	if !slices.ContainsFunc(a.state.Waits, func(w state.Wait) bool { return !w.Awake }) {
		return false
	}
	over, err := a.kernel.Awake()
	if err != nil {
		a.complain("follow the ports that wait for their guests", err)
		return false
	}
	for _, w := range a.state.Waits {
		if !w.Awake && over[w.ID] >= w.Number {
			a.woke(&w, "it has sent a frame")
			changed = true
		}
	}
	return changed
}

// doubt has a port wait that was just connected and has a monitor, until its QEMU says whether the guest runs here: one that waits for
// a migration must not be announced before it has said so.
func (a *Agent) doubt(p *plan.Port) {
	if p.Monitor.Socket == "" || a.state.WaitOf(p.ID) != nil || a.adapters[p.Monitor.Socket].Run == guest.RunHere {
		return
	}
	a.state.BeginWait(state.Wait{ID: p.ID, Doubt: true, Since: time.Now(), Why: "its QEMU has not said yet whether the guest runs here"})
}

// endDoubts ends the waits for QEMUs that say nothing.
func (a *Agent) endDoubts() (ended bool) {
	for _, w := range a.state.Waits {
		if w.Doubt && !w.Awake && time.Since(w.Since) >= doubtAtMost {
			ended = a.wake(&w, "its QEMU does not say otherwise") || ended
		}
	}
	return ended
}

// watchWaits is called every second.
func (a *Agent) watchWaits() {
	changed := a.lookForAwake()
	if a.endDoubts() || changed {
		a.followWaits()
	}
	a.succeedAll()
	for _, w := range a.state.Waits {
		if d := time.Since(w.Since); !w.Awake && !w.Left && d >= waitLong && d < waitLong+2*sweepEvery {
			a.settleSoon() // to show that it waits long
		}
	}
}

// resumeWaits takes over what an agent before this one has left.
func (a *Agent) resumeWaits() error {
	over, err := a.kernel.Awake()
	if err != nil {
		return err
	}
	for _, n := range over { // also where the state of that agent is lost
		a.state.LastWait = max(a.state.LastWait, n)
	}
	a.lookForAwake()
	return nil
}

// followWaits makes what waits have become true at once, before anything is written to disk; then all the rest.
func (a *Agent) followWaits() {
	a.putWaitsInForce()
	a.settleSoon()
	a.succeedAll()
}

// putWaitsInForce changes nothing but waits in what is in force. When it can't, the reconcile that follows does.
func (a *Agent) putWaitsInForce() {
	if a.applied == nil || a.stale || a.redo {
		return
	}
	d := *a.applied
	d.Facts = maps.Clone(d.Facts)
	for _, w := range a.state.Waits {
		if f, ok := d.Facts[w.ID]; ok {
			f.Wait, f.Awake = w.Number, w.Awake
			d.Facts[w.ID] = f
		}
	}
	now := teams.Form(&d, a.formed())
	at, err := a.kernel.Reteam(d)
	if err != nil {
		a.complain("put into force which ports wait for their guests", err)
		return
	}
	a.applied, a.flip = &d, at
	a.state.Uses = now.Remember(d.Plan)
	a.moved(now)
}

// keepWaits forgets the waits of ports that are gone, and of those whose device went down since, and gives back the MACs that ports had to
// do without while another had the same. changed: the configuration has.
func (a *Agent) keepWaits() (changed bool) {
	for _, w := range a.state.Waits {
		gone := a.state.Of(w.ID) == nil && (w.Awake || w.Left) && a.applied != nil // its device is
		if a.plan.Port(w.ID) == nil || gone && !w.Beside() {
			a.state.DropWait(w.ID)
			continue
		}
		if w.MAC.IsZero() || a.othersWith(w) {
			continue
		}
		a.state.Ports = slices.Clone(a.state.Ports)
		if run := a.runTime(w.ID.Name); run != nil {
			w.Give(run)
		}
		a.state.PutWait(w)
		changed = true
	}
	if changed {
		a.cfg, _ = a.layers().merge()
	}
	return changed
}

// othersWith says whether another port of the switch has the MAC of a wait.
func (a *Agent) othersWith(w state.Wait) bool {
	return slices.ContainsFunc(a.plan.Switch(w.ID.Switch).Ports, func(p *plan.Port) bool {
		return p.ID != w.ID && p.InitialMAC == w.MAC
	})
}

// waitMACs gives ports that wait the MACs that their configuration can't have.
func (a *Agent) waitMACs(p *plan.Plan) {
	for _, w := range a.state.Waits {
		if port := p.Port(w.ID); port != nil && port.InitialMAC.IsZero() {
			port.InitialMAC = w.MAC
			if !w.MAC.IsZero() {
				port.Monitor = w.Monitor
			}
		}
	}
}

// rivals says of a port whose MAC another port has too, and whose guest runs as that one's does, who gets the frames.
func (a *Agent) rivals(sw *plan.Switch, facts plan.Facts) {
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
		a.problems[loser.ID] = fmt.Sprintf("the guest of port %s runs with the same MAC %s, and gets what is sent to it: stop one of the two guests",
			winner.ID.Name, p.InitialMAC)
	}
}

// Activate says that the guest of a port that waits for it runs here.
func (a *Agent) Activate(ctx context.Context, q api.Activate) error {
	return a.do(ctx, func() error {
		p := planned(a.plan, q.Port)
		if p == nil {
			return noPort(q.Port)
		}
		if w := a.state.WaitOf(p.ID); w != nil && !w.Awake && a.wake(w, "an operator said so") {
			a.followWaits()
		}
		return nil
	})
}

// ConnectIncoming makes a port whose guest is to arrive by a migration: it waits for it. Where a port of that name serves the guest until
// then, the new one stands beside it, and takes its place when the guest runs.
func (a *Agent) ConnectIncoming(ctx context.Context, p spec.Port) (*api.Applied, error) {
	out := &api.Applied{Changes: []api.Change{}}
	return out, a.doAttached(ctx, func() error {
		if p.Switch == "" && a.file != nil && len(a.file.Switches) == 1 {
			p.Switch = a.file.Switches[0].Name
		}
		if a.declared(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take another name, or take it out there and apply the file", p.Name, a.state.Config.File))
		}
		set := p.Policy
		p = a.withKept(p)
		w := a.incoming(&p)
		if a.comesAlready(p, w) {
			return nil
		}
		ports, changes, err := a.replacing(p)
		if err != nil {
			return err
		}
		connects := a.connects(p, ports, set)
		err = a.timed(out, 0, func() error { return a.change(func() { connects(); a.beginIncoming(p, w) }) })
		if err != nil {
			return err
		}
		out.Changes = changes
		if why := a.whyNotServed(w.ID); why != "" {
			out.Warnings = append(out.Warnings, fmt.Sprintf("port %s: %s", p.Name, why))
		}
		return nil
	})
}

// beginIncoming begins the wait of a port that was connected for a guest that is to arrive.
func (a *Agent) beginIncoming(p spec.Port, w state.Wait) {
	if o, ok := a.state.Overrides[w.InPlaceOf]; ok { // such as that it is blocked
		a.state.Overrides[p.Name] = o
	}
	a.beginWait(w)
}

// Expect says that the ports of a guest are about to be connected, and that it is to arrive by a migration.
func (a *Agent) Expect(ctx context.Context, q api.Expect) error {
	return a.do(ctx, func() error {
		all := maps.Clone(a.state.Expected)
		if all == nil {
			all = map[string]time.Time{}
		}
		maps.DeleteFunc(all, func(_ string, at time.Time) bool { return time.Since(at) >= expectFor })
		if q.Guest == "" || len(all) >= abi.MaxPorts {
			return api.NewError(api.Invalid, "say whose ports are to be expected: the guest's name, as the names of its ports begin")
		}
		all[q.Guest] = time.Now()
		a.state.Expected = all
		return a.save()
	})
}

// expected says whether the port's guest is.
func (a *Agent) expected(port string) bool {
	for name, at := range a.state.Expected {
		if since := time.Since(at); strings.HasPrefix(port, name+"/") && since >= 0 && since < expectFor {
			return true
		}
	}
	return false
}

// isExpected is expected, from outside of the loop.
func (a *Agent) isExpected(ctx context.Context, port string) (is bool) {
	err := a.do(ctx, func() error { is = a.expected(port); return nil })
	return err == nil && is
}

// whole is a run-time port with what it has to do without while another has its MAC.
func (a *Agent) whole(p spec.Port) spec.Port {
	if w := a.state.WaitOf(plan.PortID{Switch: p.Switch, Name: p.Name}); w != nil {
		own := *w
		own.Give(&p)
	}
	return p
}

// comesAlready says whether there is such a run-time port for a guest that is to arrive. Who says so once more of a guest that has arrived,
// at a device that it has had since, does not have it wait again.
func (a *Agent) comesAlready(p spec.Port, w state.Wait) bool {
	have, before := a.runTime(p.Name), a.state.WaitOf(w.ID)
	if have == nil || before == nil || !reflect.DeepEqual(*have, p) || before.Monitor != w.Monitor {
		return false
	}
	return before.Awake || !before.Left && !before.Doubt
}

// incoming is the wait of a port for its guest. The port gets another name while one of its own serves the guest, and no MAC while
// another port of the switch has it.
func (a *Agent) incoming(p *spec.Port) state.Wait {
	w := state.Wait{Why: "who connected it says so"}
	if have := a.runTime(p.Name); have != nil && have.Device != p.Device && a.serves(*have) {
		w.InPlaceOf = p.Name
		p.Name += state.IncomingName
	}
	w.ID = plan.PortID{Switch: p.Switch, Name: p.Name}
	mac, err := plan.ParseMAC(p.MAC)
	if err != nil || mac.IsZero() {
		return w
	}
	for _, other := range a.cfg.Ports {
		if m, err := plan.ParseMAC(other.MAC); err == nil && m == mac && other.Switch == p.Switch && other.Name != p.Name && other.Device != p.Device {
			w.Take(p)
			return w
		}
	}
	return w
}

// serves says whether a port's device is there and up.
func (a *Agent) serves(p spec.Port) bool {
	return a.applied.Facts[plan.PortID{Switch: p.Switch, Name: p.Name}].Up
}

// succeedAll lets ports whose guests have arrived take the places that they were made for.
func (a *Agent) succeedAll() {
	for _, w := range a.state.Waits {
		if w.Awake && w.InPlaceOf != "" {
			if err := a.succeed(w); err != nil {
				a.complain("give a port that a guest has moved to its name", err)
				a.retry = true
			}
		}
	}
}

// succeed gives the port that a guest has moved to the name of the one that it has left. That one is kept under another, silent, until its
// QEMU ends: its guest may come back.
func (a *Agent) succeed(w state.Wait) error {
	port := plan.PortID{Switch: w.ID.Switch, Name: w.InPlaceOf}
	left := plan.PortID{Switch: w.ID.Switch, Name: w.InPlaceOf + state.LeftName}
	if a.runTime(left.Name) != nil { // of a migration before
		i := slices.IndexFunc(a.state.Ports, func(p spec.Port) bool { return p.Name == left.Name })
		if err := a.change(a.disconnects(i, true)); err != nil {
			return err
		}
	}
	was, now := a.runTime(port.Name), a.runTime(w.ID.Name)
	if now == nil {
		return nil
	}
	if err := a.kernel.Succeed(port, w.ID, left); err != nil {
		return err
	}
	a.state.Succeed(port, w.ID, left, was != nil)
	a.renameBorn(port, w.ID, left)
	a.renamePorts(port, w.ID.Name, left)
	a.cfg, _ = a.layers().merge()
	a.stale, a.redo = true, true
	a.settle()
	return nil
}

// renamePorts gives the run-time ports of a migration within the host their names, and the MAC to the one whose guest runs. The one that
// it has left waits, unless it does.
func (a *Agent) renamePorts(port plan.PortID, successor string, left plan.PortID) {
	a.state.Ports = slices.Clone(a.state.Ports)
	was, now := a.runTime(port.Name), a.runTime(successor)
	if was != nil {
		was.Name = left.Name
		if w := a.state.WaitOf(left); w == nil || w.Awake {
			a.beginWait(state.Wait{ID: left, Left: true, Why: "it has sent a frame at the port in its place"})
		}
		a.state.WaitOf(left).Take(was)
	}
	now.Name = port.Name
	w := a.state.WaitOf(port)
	w.InPlaceOf = ""
	w.Give(now)
	if o, ok := a.state.Overrides[successor]; ok {
		a.state.Overrides[port.Name] = o
		delete(a.state.Overrides, successor)
	}
}

// renameBorn keeps what is known of the devices in hand with them.
func (a *Agent) renameBorn(port, successor, left plan.PortID) {
	if born, ok := a.born[port]; ok {
		a.born[left] = born
	}
	if born, ok := a.born[successor]; ok {
		a.born[port] = born
		delete(a.born, successor)
	}
}
