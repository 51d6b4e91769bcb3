package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/devices"
	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane/compile"
	"heddle/internal/host/hostnet"
	"heddle/internal/host/reach"
	"heddle/internal/plan"
	"heddle/internal/spec/printable"
)

// A change that affects the path to the host's own addresses is put on trial (S81). Those who can be asked are asked
// first, outside the loop; the change is made after its undo record is on disk; then they are asked again, and the
// change stays or is undone automatically.

// triedWithin is how long a change may stay unconfirmed if somebody can be asked: with the time that undoing takes, the
// host is reachable again within 30 s.
const triedWithin = 20 * time.Second

// guard is one command's guard over its change.
type guard struct {
	what   string
	within time.Duration // the operator's; 0 if not given
	// controllers: a controller wants the change, and controllers are asked whether it stays.
	controllers bool
	// asked: the interfaces have been asked, and it is known who answers through them.
	asked      bool
	interfaces []reach.Interface
	asks       []reach.Ask
	// change is the change on trial, nil if the command does not affect a path to the host.
	change *adopt.Change
}

// needsAsking is the error for a change that cannot be made before somebody has been asked.
type needsAsking struct {
	risks      []reach.Risk
	interfaces []reach.Interface
	own        map[[6]byte]bool // MACs of this host's ports
}

func (n *needsAsking) Error() string { return "the change concerns " + risksText(n.risks) }

// beingTried is the error while another change is on trial.
type beingTried struct{ decided <-chan struct{} }

func (b *beingTried) Error() string { return "another change is being tried" }

// tried runs a command's change in the loop. If the change affects the path to the host's own addresses, tried returns
// when it is decided whether the change stays, or at once if only the operator can decide. f may be called several
// times; it changes the state only through changer.change.
func (tr *trials) tried(ctx context.Context, in func(context.Context, func() error) error, g *guard, out *api.Applied,
	f func() error) error {
	for {
		err := in(ctx, func() error {
			*out = api.Applied{Changes: []api.Change{}}
			return tr.underGuard(g, f)
		})
		var other *beingTried
		var ask *needsAsking
		switch {
		case errors.As(err, &other):
			err = tr.awaitOther(ctx, other)
		case errors.As(err, &ask):
			err = tr.askBefore(ctx, g, ask)
		default:
			if err == nil {
				err = tr.awaitDecision(ctx, g, out)
			}
			return err
		}
		if err != nil {
			return err
		}
	}
}

// underGuard runs one attempt of a command in the loop.
func (tr *trials) underGuard(g *guard, f func() error) error {
	if err := tr.busy(); err != nil {
		return err
	}
	if err := checkWindow(g.within); err != nil {
		return err
	}
	tr.guard = g
	defer func() { tr.guard = nil }()
	if err := f(); err != nil {
		return err
	}
	if g.change != nil {
		tr.carryOver(g.change)
		tr.watchChange(g.change)
	}
	return nil
}

func checkWindow(d time.Duration) error {
	if d != 0 && (d < adopt.LeastWait || d > adopt.MostWait) {
		return api.NewError(api.Invalid, fmt.Sprintf("the time to confirm is %s: use %s to %s", d, adopt.LeastWait,
			adopt.MostWait))
	}
	return nil
}

// busy returns an error while a change is on trial. The caller waits for a trial that is decided by answers, but not
// for one that an operator must confirm.
func (tr *trials) busy() error {
	c := tr.records.journal.Change
	switch {
	case c == nil, c.Controllers: // a guest may start meanwhile
		return nil
	case len(c.Asks) > 0 || c.Phase != adopt.Waiting:
		return &beingTried{tr.decided}
	}
	return api.NewError(api.Invalid, fmt.Sprintf("%q concerns the way to this host's own addresses and is not "+
		"confirmed yet: confirm it (heddle confirm), or wait %s until it goes back; nothing was changed",
		c.What, tr.left(c).Round(time.Second)))
}

// busyForAdoption is the error for a move of the host's addresses while a change is on trial.
func (tr *trials) busyForAdoption() error {
	if c := tr.records.journal.Change; c != nil {
		return api.NewError(api.Invalid, fmt.Sprintf("%q concerns the way to this host's own addresses and is being "+
			"tried: wait until it is decided (heddle events); nothing was changed", c.What))
	}
	return nil
}

func (tr *trials) awaitOther(ctx context.Context, other *beingTried) error {
	select {
	case <-other.decided:
		return nil
	case <-tr.Stopped():
		return errors.New("the agent is stopping")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askBefore asks those who could show that the host is reached, and refuses a change if nobody can be asked.
func (tr *trials) askBefore(ctx context.Context, g *guard, n *needsAsking) error {
	asks, err := reach.Before(ctx, tr.records.net, n.interfaces, func(mac [6]byte) bool { return n.own[mac] })
	if err != nil {
		return fmt.Errorf("ask by which way this host is reached; nothing was changed: %w", err)
	}
	g.asked, g.interfaces, g.asks = true, n.interfaces, asks
	if len(asks) == 0 && g.within == 0 && leadsOutside(n.risks) {
		return api.NewError(api.Invalid, nobodyToAsk(n.risks)+"; nothing was changed")
	}
	return nil
}

func nobodyToAsk(risks []reach.Risk) string {
	return fmt.Sprintf("the change concerns the way to this host's own addresses (%s), and nobody answers there who "+
		"could be asked whether the host is still reached: "+
		"give --confirm-within DURATION, such as 2m, and confirm with \"heddle confirm\"; without that the change "+
		"goes back by itself", risksText(risks))
}

func leadsOutside(risks []reach.Risk) bool {
	return slices.ContainsFunc(risks, func(r reach.Risk) bool { return r.Outside })
}

func risksText(risks []reach.Risk) string {
	var texts []string
	for _, r := range risks {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, "; ")
}

// guardChange is called by change before anything is done: an error refuses the change. A change that must be tried is
// written to disk.
func (tr *trials) guardChange(before intent) error {
	g := tr.guard
	if g == nil || tr.Active().Plan == nil {
		return nil
	}
	next, err := tr.ports.resolve(tr.ports.cfg)
	if err != nil {
		return err
	}
	risks := reach.Risks(tr.Active().Plan, next, tr.reachHost())
	if len(risks) == 0 {
		tr.ports.next = next
		return nil
	}
	if err := tr.settleControllers(); err != nil {
		return err
	}
	if r := tr.records.journal.Open(); r != nil {
		return api.NewError(api.Invalid, fmt.Sprintf("the change concerns the way to this host's own addresses (%s), "+
			"and the adoption of %s by %s is not finished: confirm it first (heddle host-port confirm %s)",
			risksText(risks), r.Config.Device, r.Port.Name, printable.ShellWord(r.Port.Name)))
	}
	interfaces, err := tr.interfaces(risks)
	if err != nil {
		return err
	}
	if g.controllers {
		g.asked, g.interfaces = true, interfaces
	}
	if !g.asked || !slices.Equal(g.interfaces, interfaces) {
		return &needsAsking{risks, interfaces, tr.ownMACs()}
	}
	if len(g.asks) > 0 || g.within > 0 || g.controllers { // otherwise only the one who asks can be cut off
		if err := tr.rememberChange(g, before, risks); err != nil {
			return err
		}
	}
	tr.ports.next = next
	return nil
}

// reachHost returns what package reach needs to know about this host.
func (tr *trials) reachHost() reach.Host {
	return reach.Host{
		Addressed: func(device string) bool {
			d, ok, err := tr.dev.Device(device)
			return err == nil && ok && d.HostTraffic
		},
		MAC: func(id plan.PortID) plan.MAC { return devices.DerivedMAC(id, tr.place) },
	}
}

// interfaces returns the interfaces through which somebody is asked: those at risk and, for uplinks, the VLAN devices
// on them.
func (tr *trials) interfaces(risks []reach.Risk) (list []reach.Interface, err error) {
	for _, r := range risks {
		list = append(list, reach.Interface{Device: r.Device, Outside: r.Outside})
		d, ok, err := tr.dev.Device(r.Device)
		if err != nil {
			return nil, err
		}
		if !ok || !r.Uplink {
			continue
		}
		stacked, err := tr.records.net.VLANDevices(d.Index)
		if err != nil {
			return nil, err
		}
		for _, name := range stacked {
			list = append(list, reach.Interface{Device: name, Outside: true})
		}
	}
	return list, nil
}

// ownMACs returns the MACs behind this host's ports: frames for them do not leave the host.
func (tr *trials) ownMACs() map[[6]byte]bool {
	own := map[[6]byte]bool{}
	for _, sw := range tr.Active().Plan.Switches {
		for i, e := range compile.EffectiveMACs(sw, tr.Active().Applied.Facts) {
			own[e.MAC] = true
			own[sw.Ports[i].InitialMAC] = true
		}
	}
	learned, err := tr.kernel.MACs()
	if err != nil {
		tr.Complain("read the learned MACs", err)
	}
	for _, e := range learned {
		own[e.MAC] = true
	}
	return own
}

// rememberChange writes the undo record of the change to disk before the change is made.
func (tr *trials) rememberChange(g *guard, before intent, risks []reach.Risk) error {
	place, err := instance.Place()
	if err != nil {
		return err
	}
	now, err := hostnet.Boottime()
	if err != nil {
		return err
	}
	c := &adopt.Change{Phase: adopt.Waiting, What: g.what, Place: place, Risks: risks, Asks: g.asks, MadeAt: now,
		Within: g.within, Controllers: g.controllers,
		Ports: tr.connected.before(before), Kept: before.kept, KeptObjects: before.definition.Kept(),
		Numbers: tr.state.Numbers}
	switch {
	case c.Controllers:
		c.Within = adopt.ControllersWithin
	case c.Within == 0:
		c.Within = triedWithin
	}
	if before.config != tr.state.Config {
		c.File = &before.config
	}
	if before.definition.Given() != tr.definition.Given() {
		c.Slice = &adopt.SliceBefore{Was: before.definition.Given()}
	}
	if !slices.EqualFunc(before.uplinks, tr.state.Maintenance, state.Maintenance.Same) {
		was := append([]state.Maintenance{}, before.uplinks...) // an empty list is not the same as unchanged (nil)
		c.Uplinks = &was
	}
	for _, i := range g.interfaces {
		if has, ok := tr.hasNow(i.Device); ok {
			c.Interfaces = append(c.Interfaces, has)
		}
	}
	tr.records.journal.Change = c
	if err := tr.records.journal.Save(); err != nil {
		tr.records.journal.Change = nil
		return err
	}
	g.change, tr.decided = c, make(chan struct{})
	return nil
}

// hasNow returns what the host has on the interface.
func (tr *trials) hasNow(device string) (has adopt.Interface, ok bool) {
	d, ok, err := tr.dev.Device(device)
	if err != nil || !ok {
		return has, false
	}
	if has.Config, err = tr.records.net.Survey(d.Name, d.Index); err == nil {
		has.Settings, err = tr.records.net.Carried(d.Name)
	}
	if err != nil {
		tr.log.Warn("what the host has on an interface is not known, and is not put back", "device", device, "err", err)
	}
	return has, err == nil
}

// dropChange removes the record of a change that was not made after all.
func (tr *trials) dropChange() error {
	if tr.guard == nil || tr.guard.change == nil {
		return nil
	}
	tr.guard.change, tr.records.journal.Change = nil, nil
	close(tr.decided)
	return tr.records.journal.Save()
}
