package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// Activate records that the guest of a waiting port runs here.
func (c *commands) Activate(ctx context.Context, q api.Activate) error {
	return c.Do(ctx, func() error {
		p := planned(c.Active().Plan, q.Port)
		if p == nil {
			return c.ports.noPort(q.Port)
		}
		if err := c.meant().refuses(q.Port, q.Of); err != nil {
			return err
		}
		return c.waiting.told(p)
	})
}

// told ends the wait of a port because somebody says that its guest runs here. What the port's hypervisor says counts
// first.
func (wt *waiting) told(p *plan.Port) error {
	w := wt.state.WaitOf(p.ID)
	step, believed := presence.Told(presenceOf(w), wt.adapters[p.Monitor.Socket].Run)
	if !believed {
		return api.NewError(api.Invalid, fmt.Sprintf("port %s stays silent: its QEMU says at %s that the guest does "+
			"not run here (%s); let the QEMU run it (\"cont\" at its monitor), or end that QEMU", p.ID.Name,
			p.Monitor.Socket, w.Text()))
	}
	if wt.take(p.ID, w, step) {
		wt.followWaits()
	}
	return nil
}

// ConnectIncoming makes a port whose guest will arrive by migration: the port waits for it. If a port of that name
// serves the guest until then, the new port stands beside it, and replaces it when the guest runs. It takes nothing
// from another guest: only a hook that has just given its guest the device may do that (Reconnect).
func (c *commands) ConnectIncoming(ctx context.Context, q api.Incoming) (*api.Applied, error) {
	if err := c.Do(ctx, func() error { return c.meant().refusesHost(q.Host) }); err != nil {
		return nil, err
	}
	return c.connectIncoming(ctx, q, func(p spec.Port) error {
		if err := c.meant().refusesHost(q.Host); err != nil {
			return err
		}
		return (admission{c.shared, c.ports, q, api.CameByController(ctx)}).refuses(p)
	})
}

// connectIncoming is ConnectIncoming; refuses says by an error why the port must not be made.
func (c *commands) connectIncoming(ctx context.Context, q api.Incoming, refuses func(spec.Port) error) (*api.Applied,
	error) {
	out := &api.Applied{}
	if err := c.checkBerth(ctx, q); err != nil {
		return nil, err
	}
	nic, err := c.statics.claim(ctx, q.Connect, true)
	if err != nil {
		return nil, err
	}
	defer c.statics.claimed(nic)
	return out, c.trials.tried(ctx, c.attaching.doAttached, &guard{what: "port connect " + q.Name,
		within: q.ConfirmWithin}, out, c.looking(q.Device, func() error {
		p := q.Port
		if p.Switch == "" {
			p.Switch = c.ports.onlySwitch()
		}
		if c.ports.declared(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s is declared in %s: take another name, or take it "+
				"out there first", p.Name, c.ports.declarer(p.Name)))
		}
		set := p.Policy
		p = c.ports.withKept(p)
		if nic != nil {
			p.MAC = cmp.Or(p.MAC, nic.MAC)
		}
		if c.records.adopted(p.Name) != nil {
			return api.NewError(api.Invalid, fmt.Sprintf("port %s has the host's own addresses: give them back first "+
				"(heddle host-port release %s)", p.Name, printable.ShellWord(p.Name)))
		}
		if err := refuses(p); err != nil {
			return err
		}
		judge := admission{c.shared, c.ports, q, api.CameByController(ctx)}
		w := c.waiting.incoming(&p)
		if w.InPlaceOf != "" {
			if err := judge.refusesBeside(); err != nil {
				return err
			}
		}
		if c.waiting.comesAlready(p, w) {
			return nil
		}
		ports, changes, err := c.ports.replacing(p)
		if err != nil {
			return err
		}
		connects := c.ports.connects(p, ports, set)
		err = c.effect.timed(out, 0, func() error {
			return c.changer.change(func() {
				connects()
				(owned{c.shared}).gives(p, nic, api.CameByController(ctx))
				c.waiting.beginIncoming(p, w)
				c.statics.connected(p.Name, nic)
			})
		})
		if err != nil {
			return err
		}
		out.Changes = changes
		if why := c.attaching.whyNotServed(w.ID); !why.None() {
			out.Warnings = append(out.Warnings, fmt.Sprintf("port %s: %s", p.Name, why.Text()))
		}
		return nil
	}))
}

// beginIncoming starts the wait of a port that was connected for a guest that will arrive by migration.
func (wt *waiting) beginIncoming(p spec.Port, w state.Wait) {
	if o, ok := wt.state.Overrides[w.InPlaceOf]; ok { // for example that it is blocked
		wt.state.Overrides[p.Name] = o
	}
	wt.beginWait(w)
}

// Expect announces that the ports of a guest are about to be connected, and that the guest will arrive by migration. It
// is refused where this host lacks what the guest needs beside its ports.
func (c *commands) Expect(ctx context.Context, q api.Expect) error {
	return c.Do(ctx, func() error {
		if err := c.berth().refusesGuest(q); err != nil {
			return err
		}
		all, forced := maps.Clone(c.state.Expected), maps.Clone(c.state.Forced)
		if all == nil {
			all = map[string]time.Time{}
		}
		maps.DeleteFunc(all, func(_ string, at time.Time) bool { return time.Since(at) >= expectFor })
		if q.Guest == "" || len(all) >= abi.MaxPorts {
			return api.NewError(api.Invalid, "say whose ports are to be expected: the guest's name, as the names of "+
				"its ports begin")
		}
		all[q.Guest] = time.Now()
		maps.DeleteFunc(forced, func(name string, _ bool) bool { return all[name].IsZero() || name == q.Guest })
		if q.Force {
			if forced == nil {
				forced = map[string]bool{}
			}
			forced[q.Guest] = true
		}
		expected, was := c.state.Expected, c.state.Forced
		c.state.Expected, c.state.Forced = all, forced
		if err := c.ports.save(); err != nil {
			c.state.Expected, c.state.Forced = expected, was
			return err
		}
		return nil
	})
}

// announces is the kind of guests that are announced, as the owners of their ports begin.
const announces = "libvirt"

// expected reports whether the port's guest is expected to arrive by migration. forced: whatever this host lacks. Only
// libvirt's hook announces guests, so that a container of the same name, which has an owner of its kind, is not meant.
func (wt *waiting) expected(p api.Connect) (is, forced bool) {
	if kind, _, has := strings.Cut(p.Owner, "/"); has && kind != announces {
		return false, false
	}
	for name, at := range wt.state.Expected {
		if since := time.Since(at); strings.HasPrefix(p.Name, name+"/") && since >= 0 && since < expectFor {
			is, forced = true, forced || wt.state.Forced[name]
		}
	}
	return is, forced
}

// isExpected is expected, called from outside the loop.
func (c *commands) isExpected(ctx context.Context, q api.Connect) (is, forced bool) {
	err := c.Do(ctx, func() error { is, forced = c.waiting.expected(q); return nil })
	return err == nil && is, forced
}

// whole returns a run-time port with the settings that it lacks while another port has its MAC.
func (wt *waiting) whole(p spec.Port) spec.Port {
	if w := wt.state.WaitOf(plan.PortID{Switch: p.Switch, Name: p.Name}); w != nil {
		own := *w
		own.Give(&p)
	}
	return p
}

// comesAlready reports whether there is such a run-time port for a guest that arrives by migration. A repeated request
// for a guest that has arrived, on the same device, does not make the port wait again.
func (wt *waiting) comesAlready(p spec.Port, w state.Wait) bool {
	have, before := wt.ports.runTime(p.Name), wt.state.WaitOf(w.ID)
	if have == nil || before == nil || !(owned{wt.shared}).hasTaken(*have) {
		return false
	}
	if !reflect.DeepEqual(*have, p) || before.Monitor != w.Monitor {
		return false
	}
	return before.Awake || !before.Left && !before.Doubt
}

// incoming returns the wait of a port for its guest. The port gets another name while a port of its name serves the
// guest, and no MAC while another port of the switch has that MAC.
func (wt *waiting) incoming(p *spec.Port) state.Wait {
	w := state.Wait{Wait: presence.Wait{Why: observe.WaitAnnounced}}
	if have := wt.ports.runTime(p.Name); have != nil && have.Device != p.Device && wt.serves(*have) {
		w.InPlaceOf = p.Name
		p.Name += state.IncomingName
	}
	w.ID = plan.PortID{Switch: p.Switch, Name: p.Name}
	mac, err := plan.ParseMAC(p.MAC)
	if err != nil || mac.IsZero() {
		return w
	}
	for _, other := range wt.Active().Config.Ports {
		if m, err := plan.ParseMAC(other.MAC); err == nil && m == mac && other.Switch == p.Switch &&
			other.Name != p.Name && other.Device != p.Device {
			w.Take(p)
			return w
		}
	}
	return w
}

// serves reports whether a port's device exists and is up.
func (wt *waiting) serves(p spec.Port) bool {
	return wt.Active().Applied.Facts[plan.PortID{Switch: p.Switch, Name: p.Name}].Up
}

// succeedAll lets ports whose guests have arrived replace the ports that they were made to replace.
func (wt *waiting) succeedAll() {
	for _, w := range wt.state.Waits {
		if w.Awake && w.InPlaceOf != "" {
			if err := wt.succeed(w); err != nil {
				wt.Complain("give a port that a guest has moved to its name", err)
				wt.settler.retry = true
			}
		}
	}
}

// succeed renames two ports after a migration: the guest's new port gets the name of its old port. The old port is
// kept under another name, silent, until its QEMU ends, because the guest may come back.
func (wt *waiting) succeed(w state.Wait) error {
	port := plan.PortID{Switch: w.ID.Switch, Name: w.InPlaceOf}
	left := plan.PortID{Switch: w.ID.Switch, Name: w.InPlaceOf + state.LeftName}
	if wt.ports.runTime(left.Name) != nil { // of an earlier migration
		i := slices.IndexFunc(wt.state.Ports, func(p spec.Port) bool { return p.Name == left.Name })
		if err := wt.change(wt.ports.disconnects(i, true)); err != nil {
			return err
		}
	}
	was, now := wt.ports.runTime(port.Name), wt.ports.runTime(w.ID.Name)
	if now == nil {
		return nil
	}
	if err := wt.kernel.Succeed(port, w.ID, left); err != nil {
		return err
	}
	wt.state.Succeed(port, w.ID, left, was != nil)
	wt.holding.renameBorn(port, w.ID, left)
	wt.renamePorts(port, w.ID.Name, left)
	wt.ports.cfg, _ = wt.ports.layers().merge()
	wt.ports.stale, wt.effect.redo = true, true
	wt.settler.settle()
	return nil
}

// renamePorts gives the run-time ports of a migration within the host their names, and the MAC to the port whose guest
// runs. The port that the guest has left waits, unless its guest still runs.
func (wt *waiting) renamePorts(port plan.PortID, successor string, left plan.PortID) {
	wt.state.Ports = slices.Clone(wt.state.Ports)
	was, now := wt.ports.runTime(port.Name), wt.ports.runTime(successor)
	if was != nil {
		was.Name = left.Name
		if w := wt.state.WaitOf(left); w == nil || w.Awake {
			wt.beginWait(state.Wait{ID: left,
				Wait: presence.Wait{Left: true, Why: observe.WaitSentElsewhere}})
		}
		wt.state.WaitOf(left).Take(was)
	}
	now.Name = port.Name
	w := wt.state.WaitOf(port)
	w.InPlaceOf = ""
	w.Give(now)
	if o, ok := wt.state.Overrides[successor]; ok {
		wt.state.Overrides[port.Name] = o
		delete(wt.state.Overrides, successor)
	}
}
