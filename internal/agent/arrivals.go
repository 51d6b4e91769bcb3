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
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

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
func (a *Agent) ConnectIncoming(ctx context.Context, q api.Connect) (*api.Applied, error) {
	out := &api.Applied{}
	return out, a.tried(ctx, a.doAttached, &guard{what: "port connect " + q.Name, within: q.ConfirmWithin}, out, func() error {
		p := q.Port
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
