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
	"heddle/internal/agent/held"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/standby"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// expectFor is how long an announced guest is expected.
const expectFor = time.Minute

// arrivals are the run-time ports of guests that arrive by migration, and the succession of ports within the host.
type arrivals struct {
	*shared
	connected *connected
	ports     *ports
	effect    *effect
	settler   *settler
	holding   *held.Part
	waiting   *standby.Part
	// change makes one change of the desired state.
	change func(edit func()) error
}

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
		return c.waiting.Told(p)
	})
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
		return (taking{c.shared, c.connected, c.ports, q, api.CameByController(ctx)}).refuses(p)
	})
}

// connectIncoming is ConnectIncoming; refuses says by an error why the port must not be made.
func (c *commands) connectIncoming(ctx context.Context, q api.Incoming, refuses func(spec.Port) error) (*api.Applied,
	error) {
	out := &api.Applied{}
	if err := c.admission.Check(ctx, q); err != nil {
		return nil, err
	}
	nic, err := c.statics.Claim(ctx, q.Connect, true)
	if err != nil {
		return nil, err
	}
	defer c.statics.Claimed(nic)
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
		judge := taking{c.shared, c.connected, c.ports, q, api.CameByController(ctx)}
		w := c.arrivals.incoming(&p)
		if w.InPlaceOf != "" {
			if err := judge.refusesBeside(); err != nil {
				return err
			}
		}
		if c.arrivals.comesAlready(p, w) {
			return nil
		}
		ports, changes, err := c.connected.replacing(p)
		if err != nil {
			return err
		}
		connects := c.ports.connects(p, ports, set)
		err = c.effect.timed(out, 0, func() error {
			return c.changer.change(func() {
				connects()
				(owned{c.shared}).gives(p, nic, api.CameByController(ctx))
				c.arrivals.beginIncoming(p, w)
				c.statics.Connected(p.Name, nic)
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
func (ar *arrivals) beginIncoming(p spec.Port, w state.Wait) {
	if o, ok := ar.state.Overrides[w.InPlaceOf]; ok { // for example that it is blocked
		ar.state.Overrides[p.Name] = o
	}
	ar.waiting.Begin(w)
}

// Expect announces that the ports of a guest are about to be connected, and that the guest will arrive by migration. It
// is refused where this host lacks what the guest needs beside its ports.
func (c *commands) Expect(ctx context.Context, q api.Expect) error {
	return c.Do(ctx, func() error {
		if err := c.admission.RefusesGuest(q); err != nil {
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
func (ar *arrivals) expected(p api.Connect) (is, forced bool) {
	if kind, _, has := strings.Cut(p.Owner, "/"); has && kind != announces {
		return false, false
	}
	for name, at := range ar.state.Expected {
		if since := time.Since(at); strings.HasPrefix(p.Name, name+"/") && since >= 0 && since < expectFor {
			is, forced = true, forced || ar.state.Forced[name]
		}
	}
	return is, forced
}

// isExpected is expected, called from outside the loop.
func (c *commands) isExpected(ctx context.Context, q api.Connect) (is, forced bool) {
	err := c.Do(ctx, func() error { is, forced = c.arrivals.expected(q); return nil })
	return err == nil && is, forced
}

// whole returns a run-time port with the settings that it lacks while another port has its MAC.
func (ar *arrivals) whole(p spec.Port) spec.Port {
	if w := ar.state.WaitOf(plan.PortID{Switch: p.Switch, Name: p.Name}); w != nil {
		own := *w
		own.Give(&p)
	}
	return p
}

// comesAlready reports whether there is such a run-time port for a guest that arrives by migration. A repeated request
// for a guest that has arrived, on the same device, does not make the port wait again.
func (ar *arrivals) comesAlready(p spec.Port, w state.Wait) bool {
	have, before := ar.connected.port(p.Name), ar.state.WaitOf(w.ID)
	if have == nil || before == nil || !(owned{ar.shared}).hasTaken(*have) {
		return false
	}
	if !reflect.DeepEqual(*have, p) || before.Monitor != w.Monitor {
		return false
	}
	return before.Awake || !before.Left && !before.Doubt
}

// incoming returns the wait of a port for its guest. The port gets another name while a port of its name serves the
// guest, and no MAC while another port of the switch has that MAC.
func (ar *arrivals) incoming(p *spec.Port) state.Wait {
	w := state.Wait{Wait: presence.Wait{Why: observe.WaitAnnounced}}
	if have := ar.connected.port(p.Name); have != nil && have.Device != p.Device && ar.serves(*have) {
		w.InPlaceOf = p.Name
		p.Name += state.IncomingName
	}
	w.ID = plan.PortID{Switch: p.Switch, Name: p.Name}
	mac, err := plan.ParseMAC(p.MAC)
	if err != nil || mac.IsZero() {
		return w
	}
	for _, other := range ar.Active().Config.Ports {
		if m, err := plan.ParseMAC(other.MAC); err == nil && m == mac && other.Switch == p.Switch &&
			other.Name != p.Name && other.Device != p.Device {
			w.Take(p)
			return w
		}
	}
	return w
}

// serves reports whether a port's device exists and is up.
func (ar *arrivals) serves(p spec.Port) bool {
	return ar.Active().Applied.Facts[plan.PortID{Switch: p.Switch, Name: p.Name}].Up
}

// Succeed lets ports whose guests have arrived replace the ports that they were made to replace.
func (ar *arrivals) Succeed() {
	for _, w := range ar.state.Waits {
		if w.Awake && w.InPlaceOf != "" {
			if err := ar.succeed(w); err != nil {
				ar.Complain("give a port that a guest has moved to its name", err)
				ar.settler.retry = true
			}
		}
	}
}

// succeed renames two ports after a migration: the guest's new port gets the name of its old port. The old port is
// kept under another name, silent, until its QEMU ends, because the guest may come back.
func (ar *arrivals) succeed(w state.Wait) error {
	port := plan.PortID{Switch: w.ID.Switch, Name: w.InPlaceOf}
	left := plan.PortID{Switch: w.ID.Switch, Name: w.InPlaceOf + state.LeftName}
	if ar.connected.port(left.Name) != nil { // of an earlier migration
		i := slices.IndexFunc(ar.state.Ports, func(p spec.Port) bool { return p.Name == left.Name })
		if err := ar.change(ar.ports.disconnects(i, true)); err != nil {
			return err
		}
	}
	was, now := ar.connected.port(port.Name), ar.connected.port(w.ID.Name)
	if now == nil {
		return nil
	}
	if err := ar.kernel.Succeed(port, w.ID, left); err != nil {
		return err
	}
	ar.state.Succeed(port, w.ID, left, was != nil)
	ar.holding.Rename(port, w.ID, left)
	ar.renamePorts(port, w.ID.Name, left)
	ar.ports.cfg, _ = ar.ports.layers().merge()
	ar.ports.stale, ar.effect.redo = true, true
	ar.settler.settle()
	return nil
}

// renamePorts gives the run-time ports of a migration within the host their names, and the MAC to the port whose guest
// runs. The port that the guest has left waits, unless its guest still runs.
func (ar *arrivals) renamePorts(port plan.PortID, successor string, left plan.PortID) {
	ar.state.Ports = slices.Clone(ar.state.Ports)
	was, now := ar.connected.port(port.Name), ar.connected.port(successor)
	if was != nil {
		was.Name = left.Name
		if w := ar.state.WaitOf(left); w == nil || w.Awake {
			ar.waiting.Begin(state.Wait{ID: left,
				Wait: presence.Wait{Left: true, Why: observe.WaitSentElsewhere}})
		}
		ar.state.WaitOf(left).Take(was)
	}
	now.Name = port.Name
	w := ar.state.WaitOf(port)
	w.InPlaceOf = ""
	w.Give(now)
	if o, ok := ar.state.Overrides[successor]; ok {
		ar.state.Overrides[port.Name] = o
		delete(ar.state.Overrides, successor)
	}
}

// Close is there for the table of parts.
func (ar *arrivals) Close() error { return nil }
